"""This module gives the dataset of a type the columns another schema wants.

Columns are only ever added: one for a new property, one for a wider type. What was renamed or
dropped keeps its column; only a hard drop writes a dataset anew, without the columns nobody has a
name for.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.catalog import AcceptedType, Property
from omnigraph.catalog.defaults import default_value
from omnigraph.errors import InvalidInput
from omnigraph.storage import stage
from omnigraph.storage.layout import free_name, is_blob, physical_columns, property_column
from omnigraph.types.arrow import arrow_type
from omnigraph.types.column import to_column


def needs_reshaping(old: AcceptedType, new: AcceptedType) -> bool:
    """Tell whether a dataset lacks a column for some property of the new state of its type."""
    before = {id_: old.definition.properties[name] for name, id_ in old.property_ids.items()}
    for name, property_ in new.definition.properties.items():
        former = before.get(new.property_ids[name])
        if former is None or arrow_type(former.type) != arrow_type(property_.type):
            return True
    return False


def reshape(base: Any, type_: AcceptedType, *, hard: bool) -> Any:  # noqa: ANN401 - Lance handles
    """Return a staged version with a column for every property, or the base if it has them.

    With `hard`, columns of dropped properties are left out.
    """
    made = _with_new_columns(base, type_)
    columns = physical_columns(base.schema)
    for name, property_ in type_.definition.properties.items():
        column = columns.get(type_.property_ids[name])
        if column is None and default_value(property_) is not None:
            made = _filled(made, type_, property_)
        elif column is not None and _is_narrow(base.schema.field(column), property_):
            made = _widened(made, type_, property_, column)
    return _without_dropped(made, type_) if hard else made


def _with_new_columns(base: Any, type_: AcceptedType) -> Any:  # noqa: ANN401 - Lance handles
    """Stage columns of nulls, all at once."""
    columns = physical_columns(base.schema)
    fields: list[pa.Field] = []
    for name, property_ in type_.definition.properties.items():
        if type_.property_ids[name] not in columns and default_value(property_) is None:
            fields.append(_field(base, type_, property_, fields))
    return stage.add_columns(base, fields) if fields else base


def _field(
    base: Any,  # noqa: ANN401 - a Lance handle
    type_: AcceptedType,
    property_: Property,
    others: list[pa.Field],
) -> pa.Field:
    name = free_name(property_.name, [*base.schema.names, *(field.name for field in others)])
    return property_column(name, property_.type, type_.property_ids[property_.name])


def _filled(base: Any, type_: AcceptedType, property_: Property) -> Any:  # noqa: ANN401 - as above
    value = to_column([default_value(property_)], property_.type)[0]
    return stage.fill_column(base, _field(base, type_, property_, []), value)


def _is_narrow(field: pa.Field, property_: Property) -> bool:
    return not is_blob(field) and bool(field.type != arrow_type(property_.type))


def _widened(base: Any, type_: AcceptedType, property_: Property, column: str) -> Any:  # noqa: ANN401
    wanted = arrow_type(property_.type)
    field = _field(base, type_, property_, [])
    return stage.widen_column(base, column, field, lambda old: old.cast(wanted))


def _without_dropped(base: Any, type_: AcceptedType) -> Any:  # noqa: ANN401 - as above
    marked = physical_columns(base.schema)
    kept = {marked[id_] for id_ in type_.property_ids.values()}
    system = [name for name in ("id", "src", "dst") if name in base.schema.names[: _system(type_)]]
    columns = [*system, *(name for name in base.schema.names if name in kept)]
    if len(columns) == len(base.schema.names):
        return base
    if any(is_blob(base.schema.field(name)) for name in columns):
        message = f"{type_.entity} has blobs and cannot be written anew; drop without data loss"
        raise InvalidInput(message, code="hard_drop_unsupported", type=type_.entity)
    return stage.rewrite(base, columns)


def _system(type_: AcceptedType) -> int:
    return 3 if type_.kind == "edge" else 1
