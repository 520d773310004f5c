"""Give the dataset of a type the columns that another schema needs.

Columns are only ever added: one for a new property, one for a wider type. What was renamed or
dropped keeps its column; only a hard drop rewrites a dataset, without the columns of dropped
properties.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from omnigraph.catalog import AcceptedType, Property
from omnigraph.catalog.defaults import default_value
from omnigraph.dataset_view.version_reader import system_columns
from omnigraph.errors import InvalidInput
from omnigraph.storage import staged_writes
from omnigraph.storage.layout import (
    is_blob,
    physical_columns,
    property_column,
    unused_column_name,
)
from omnigraph.types.arrow import arrow_type, to_column


def needs_reshaping(old: AcceptedType, new: AcceptedType) -> bool:
    """Return whether a dataset lacks a column for some property of the new state of its type."""
    before = {id_: old.definition.properties[name] for name, id_ in old.property_ids.items()}
    for name, property_ in new.definition.properties.items():
        former = before.get(new.property_ids[name])
        if former is None or arrow_type(former.type) != arrow_type(property_.type):
            return True
    return False


def reshape_dataset(base: Any, type_: AcceptedType, *, hard: bool) -> Any:  # noqa: ANN401 - Lance handles
    """Return a staged version with a column for every property, or the base if it has them.

    With `hard`, columns of dropped properties are left out.
    """
    columns = physical_columns(base.schema)
    staged = _with_null_columns(base, type_)
    for name, property_ in type_.definition.properties.items():
        column, default = columns.get(type_.property_ids[name]), default_value(property_)
        new = _new_field(staged.schema.names, type_, property_)
        if column is None and default is not None:
            value = to_column([default], property_.type)[0]
            staged = staged_writes.fill_column(staged, new, value)
        elif column is not None:
            old = base.schema.field(column)
            if not is_blob(old) and old.type != new.type:
                staged = staged_writes.widen_column(staged, column, new)
    return _without_dropped_columns(staged, type_) if hard else staged


def _with_null_columns(base: Any, type_: AcceptedType) -> Any:  # noqa: ANN401 - Lance handles
    """Stage the columns of new properties without a default, all at once."""
    columns, fields = physical_columns(base.schema), list[pa.Field]()
    for name, property_ in type_.definition.properties.items():
        if type_.property_ids[name] not in columns and default_value(property_) is None:
            taken = [*base.schema.names, *(field.name for field in fields)]
            fields.append(_new_field(taken, type_, property_))
    return staged_writes.add_columns(base, fields) if fields else base


def _new_field(taken: Iterable[str], type_: AcceptedType, property_: Property) -> pa.Field:
    name = unused_column_name(property_.name, taken)
    return property_column(name, property_.type, type_.property_ids[property_.name])


def _without_dropped_columns(base: Any, type_: AcceptedType) -> Any:  # noqa: ANN401 - Lance handles
    columns = physical_columns(base.schema)
    kept = {*system_columns(type_), *(columns[id_] for id_ in type_.property_ids.values())}
    names = [name for name in base.schema.names if name in kept]
    if len(names) == len(base.schema.names):
        return base
    if any(is_blob(base.schema.field(name)) for name in names):
        message = f"{type_.entity} has blobs and cannot be rewritten; drop without data loss"
        raise InvalidInput(message, code="hard_drop_unsupported", type=type_.entity)
    return staged_writes.rewrite_columns(base, names)
