"""This module fixes where things are below the root of a graph and what columns datasets have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, count

import lance
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import GraphCorrupt
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import arrow_type

MANIFEST = "__manifest"
BRANCHES = "__branches"
INTENTS = "__recovery"
RUNS = "__pipelines"
POSITIONS, IDS, VECTORS = "at", "ids", "vectors"
"""Folders of a run while it lasts: where rows stood, ids to be added up, vectors of texts."""
SCRATCH = "_scratch"
AUDIT = "_graph_commit_recoveries.lance"
PRIMARY_KEY = {b"lance-schema:unenforced-primary-key": b"true"}
PROPERTY_ID = b"omnigraph.stable_property_id"
EMBEDDING_MODEL = b"omnigraph.embedding_model"

_FOLDERS = {"node": "nodes", "edge": "edges"}


def dataset_path(kind: str, type_id: int, incarnation: int) -> str:
    """Return the path of the dataset of one lifetime of a type."""
    return f"{_FOLDERS[kind]}/{type_id:016x}-{incarnation:016x}"


def lineage_path(native: str | None) -> str:
    """Return the path of the manifest lineage of a branch; None is main."""
    return MANIFEST if native is None else f"{BRANCHES}/{native}"


def dataset_schema(kind: str, columns: Iterable[pa.Field]) -> pa.Schema:
    """Return the physical schema of a dataset with the given property columns."""
    fields = [pa.field("id", pa.string(), nullable=False, metadata=PRIMARY_KEY)]
    if kind == "edge":
        fields += [pa.field(name, pa.string(), nullable=False) for name in ("src", "dst")]
    return pa.schema([*fields, *columns])


def property_column(name: str, type_: PropertyType, property_id: int) -> pa.Field:
    """Return the column of one property, marked with the property's identity.

    It is nullable whatever the property is: required-ness is the validator's job.
    """
    field = (
        lance.blob_field(name) if type_.scalar is Scalar.BLOB else pa.field(name, arrow_type(type_))
    )
    mark = {PROPERTY_ID: f"{property_id:016x}".encode()}
    return field.with_metadata({**(field.metadata or {}), **mark})


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name for a new column: that of its property, unless another one has it.

    Case makes no difference: not every engine that reads a column tells names apart by it.

    >>> free_name("city", ["id", "City", "city_2"])
    'city_3'
    """
    used = {other.lower() for other in taken}
    numbers = (f"{name}_{number}" for number in count(2))
    return next(free for free in chain([name], numbers) if free.lower() not in used)


def physical_columns(schema: pa.Schema) -> dict[int, str]:
    """Return the column that holds each property, by identity; of several, the newest.

    Names of columns are those of the properties when they were added. A rename or drop changes no
    column; a wider type or a re-added name adds one. Looking up a property that no column holds
    raises GraphCorrupt: every version has a column for each property of its schema.
    """
    marked = ((field, (field.metadata or {}).get(PROPERTY_ID)) for field in schema)
    try:
        return _Columns((int(mark, 16), field.name) for field, mark in marked if mark is not None)
    except ValueError as error:
        message = "a column has an invalid property identity; `omnigraph verify --deep` names files"
        raise GraphCorrupt(message, cause=str(error)) from error


class _Columns(dict[int, str]):
    def __missing__(self, property_id: int) -> str:
        message = f"no column holds property {property_id:016x}"
        raise GraphCorrupt(f"{message}; `omnigraph verify --deep` names damaged files")


def embedding_model(column: pa.Field) -> str | None:
    """Return the model that made every vector of a column; None when nobody can say."""
    mark = (column.metadata or {}).get(EMBEDDING_MODEL)
    return None if mark is None else str(mark, "utf-8")


def to_physical(rows: pa.Table, schema: pa.Schema, names: Mapping[str, str]) -> pa.Table:
    """Return rows as a dataset stores them; `names` says which column each of theirs goes to."""
    fields = []
    columns = []
    for name in rows.column_names:
        field = schema.field(names[name])
        column = rows[name]
        fields.append(field)
        columns.append(_blobs(column, field.type) if is_blob(field) else column)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _blobs(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """Wrap bytes and URIs as Lance wants them."""
    chunks = []
    for chunk in column.chunks:
        nothing = pa.nulls(len(chunk), pa.uint64())
        parts = [pc.struct_field(chunk, "data"), pc.struct_field(chunk, "uri"), nothing, nothing]
        fields = list(type_.storage_type)
        mask = chunk.is_null() if chunk.null_count else None
        storage = pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
        chunks.append(pa.ExtensionArray.from_storage(type_, storage))
    return pa.chunked_array(chunks, type_)


def empty_table(schema: pa.Schema) -> pa.Table:
    """Return a table of this schema with no rows; blob columns need their own empty array."""
    columns = [
        lance.blob_array([]) if is_blob(field) else pa.array([], field.type) for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def is_blob(field: pa.Field) -> bool:
    """Tell whether a column holds blobs."""
    return isinstance(field.type, pa.BaseExtensionType)
