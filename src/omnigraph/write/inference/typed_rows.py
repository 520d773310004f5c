"""Infer from whatever people have, and read the rows of inferred types as a load takes them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa

from omnigraph.catalog import TypeKind
from omnigraph.errors import InvalidInput
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import arrow_type
from omnigraph.write.coercion import CoercionRules, coerce_column
from omnigraph.write.inference.column_profile import key_texts_of
from omnigraph.write.inference.infer import infer_schema
from omnigraph.write.inference.input_tables import find_input_files, memory_input
from omnigraph.write.inference.model import (
    InferredEdge,
    InferredProperty,
    InferredSchema,
    InferredType,
)
from omnigraph.write.inference.schema_text import schema_text


@dataclass(frozen=True, slots=True)
class Inference:
    """A schema inferred from data, and the data it was inferred from."""

    inferred: InferredSchema

    @property
    def schema(self) -> str:
        """The schema as `.pg` text, with the evidence for each choice as comments."""
        return schema_text(self.inferred)

    @property
    def warnings(self) -> list[str]:
        """What the data does not decide, or what would be lost."""
        return self.inferred.warnings

    def rows(self) -> dict[str, pa.RecordBatchReader]:
        """Return the rows by type, for `Graph.load`; readers of files are read once."""
        return typed_rows(self.inferred)


def infer(
    *inputs: str | os.PathLike[str] | Mapping[str, Any], encoding: str | None = None
) -> Inference:
    """Infer a schema from files, or from tables and data frames by the name of their type.

    `Type=FILE` names the type of a file; `encoding` is that of CSV and JSON files.

    >>> import pyarrow as pa
    >>> people = pa.table({"name": ["ada", "bo"]})
    >>> knows = pa.table({"from": ["ada"], "to": ["bo"]})
    >>> found = infer({"Person": people, "Knows": knows})
    >>> [type_.name for type_ in found.inferred.types]
    ['Person', 'Knows']
    """
    files = [os.fspath(one) for one in inputs if not isinstance(one, Mapping)]
    tables = [
        memory_input(*item) for one in inputs if isinstance(one, Mapping) for item in one.items()
    ]
    return Inference(infer_schema([*find_input_files(files, encoding), *tables]))


def typed_rows(schema: InferredSchema) -> dict[str, pa.RecordBatchReader]:
    """Return the rows of every type, by the names that `load` takes; each is read once."""
    return {
        f"{_kind(type_)}:{type_.name}": pa.RecordBatchReader.from_batches(
            _arrow_schema(type_), _batches(type_)
        )
        for type_ in schema.types
    }


def _kind(type_: InferredType) -> TypeKind:
    return TypeKind.EDGE if isinstance(type_, InferredEdge) else TypeKind.NODE


def _id_columns(type_: InferredType) -> dict[str, str]:
    """Return the columns with ids, by their names in a load."""
    ids = {} if type_.id_column is None else {"id": type_.id_column}
    if isinstance(type_, InferredEdge):
        ids |= {"src": type_.src.column, "dst": type_.dst.column}
    return ids


def _arrow_schema(type_: InferredType) -> pa.Schema:
    ids = [pa.field(name, pa.string()) for name in _id_columns(type_)]
    return pa.schema([*ids, *(pa.field(p.name, _loaded_type(p.type)) for p in type_.properties)])


def _loaded_type(type_: PropertyType) -> pa.DataType:
    return pa.large_binary() if type_.scalar is Scalar.BLOB else arrow_type(type_)


def _batches(type_: InferredType) -> Iterator[pa.RecordBatch]:
    ids, schema = _id_columns(type_), _arrow_schema(type_)
    names = list(dict.fromkeys([*ids.values(), *(p.column for p in type_.properties)]))
    for batch in type_.table.batches(names):
        if isinstance(type_, InferredEdge) and type_.is_reference:
            batch = batch.filter(batch.column(type_.dst.column).is_valid())
        columns = [_id_texts(batch, column) for column in ids.values()]
        columns += [_property(batch, p, type_) for p in type_.properties]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _id_texts(batch: pa.RecordBatch, column: str) -> pa.Array:
    texts = key_texts_of(batch.column(column)) if column in batch.schema.names else None
    return pa.nulls(batch.num_rows, pa.string()) if texts is None else texts


def _property(batch: pa.RecordBatch, property_: InferredProperty, type_: InferredType) -> pa.Array:
    if property_.column not in batch.schema.names:
        return pa.nulls(batch.num_rows, _loaded_type(property_.type))
    column = batch.column(property_.column)
    if property_.type.scalar is Scalar.BLOB:
        return column.cast(pa.large_binary())
    rules = CoercionRules(text=type_.table.is_text)
    return coerce_column(column, property_.type, partial(_refuse, property_, type_), rules)


def _refuse(
    property_: InferredProperty,
    type_: InferredType,
    row: int,
    value: Any,  # noqa: ANN401 - any value
    reason: str,
) -> NoReturn:
    message = f"column `{property_.column}` of {type_.table.label}: {reason}"
    raise InvalidInput(message, code="input_unreadable", file=type_.table.label)
