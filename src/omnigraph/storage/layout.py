"""Paths below the root of a graph, columns of datasets, and files of their versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, count
from typing import Any, TypeAlias

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset
from lance.fragment import FragmentMetadata

from omnigraph.errors import GraphCorrupt
from omnigraph.storage.error_translation import translate_errors
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import arrow_type

MANIFEST = "__manifest"
BRANCHES = "__branches"
PROPOSALS = "__proposals"
"""The lineage of the events of proposals; also its ID."""
INTENTS = "__recovery"
TORN = "_torn"
"""Version files that a power failure left incomplete."""
PIPELINE_RUNS = "__pipelines"
POSITIONS, IDS, VECTORS, REMOVED, STAGED = "at", "ids", "vectors", "removed", "staged"
"""Temporary folders of a pipeline run: row positions, IDs (of older releases), vectors of texts,
IDs of entities to be removed, results of staging tasks."""
SCRATCH = "_scratch"
INDEX_FOLDER = "_indices/"
QUARANTINE = "_quarantine"
"""Damaged files that a repair set aside; omnigraph never reads or removes them."""
AUDIT = "_graph_commit_recoveries.lance"
PRIMARY_KEY = {b"lance-schema:unenforced-primary-key": b"true"}
PROPERTY_ID = b"omnigraph.stable_property_id"
EMBEDDING_MODEL = b"omnigraph.embedding_model"

_FOLDERS = {"node": "nodes", "edge": "edges"}


def dataset_path(kind: str, type_id: int, incarnation: int) -> str:
    """Return the path of the dataset of one incarnation of a type."""
    return f"{_FOLDERS[kind]}/{type_id:016x}-{incarnation:016x}"


def lineage_path(lineage_id: str | None) -> str:
    """Return the path of the manifest lineage of a branch; None is main."""
    if lineage_id == PROPOSALS:
        return PROPOSALS
    return MANIFEST if lineage_id is None else f"{BRANCHES}/{lineage_id}"


def dataset_schema(kind: str, columns: Iterable[pa.Field]) -> pa.Schema:
    """Return the physical schema of a dataset with the given property columns."""
    fields = [pa.field("id", pa.string(), nullable=False, metadata=PRIMARY_KEY)]
    if kind == "edge":
        fields += [pa.field(name, pa.string(), nullable=False) for name in ("src", "dst")]
    return pa.schema([*fields, *columns])


def property_column(name: str, type_: PropertyType, property_id: int) -> pa.Field:
    """Return the column of a property, with the property's identity in its metadata.

    It is always nullable: required properties are checked by the validator.
    """
    field = (
        lance.blob_field(name) if type_.scalar is Scalar.BLOB else pa.field(name, arrow_type(type_))
    )
    mark = {PROPERTY_ID: f"{property_id:016x}".encode()}
    return field.with_metadata({**(field.metadata or {}), **mark})


def unused_column_name(name: str, taken: Iterable[str]) -> str:
    """Return a name for a new column: that of its property, with a suffix if it is taken.

    Names are compared case-insensitively, because some engines do so.

    >>> unused_column_name("city", ["id", "City", "city_2"])
    'city_3'
    """
    used = {other.lower() for other in taken}
    numbers = (f"{name}_{number}" for number in count(2))
    return next(unused for unused in chain([name], numbers) if unused.lower() not in used)


def physical_columns(schema: pa.Schema) -> dict[int, str]:
    """Return the newest column of each property, by identity.

    A column has the name that its property had when it was added. Renaming or dropping a property
    does not change columns; widening its type or adding its name again adds one. Looking up a
    property without a column raises GraphCorrupt: every version has a column for each property of
    its schema.
    """
    marked = ((field, (field.metadata or {}).get(PROPERTY_ID)) for field in schema)
    try:
        return _PhysicalColumns(
            (int(mark, 16), field.name) for field, mark in marked if mark is not None
        )
    except ValueError as error:
        message = "a column has an invalid property identity; `omnigraph verify --deep` names files"
        raise GraphCorrupt(message, cause=str(error)) from error


ColumnLayout: TypeAlias = list[tuple[str, pa.DataType, bytes | None]]
"""The name, type and property of each column of a version, in order."""


def column_layout(schema: pa.Schema) -> ColumnLayout:
    """Return the columns of a version; equal layouts number columns equally.

    Lance finds a column in a file by its number, so only versions of equal layouts may share
    fragments. Branches that added the same properties in another order have different layouts.
    """
    return [(f.name, f.type, (f.metadata or {}).get(PROPERTY_ID)) for f in schema]


class _PhysicalColumns(dict[int, str]):
    def __missing__(self, property_id: int) -> str:
        message = f"no column holds property {property_id:016x}"
        raise GraphCorrupt(f"{message}; `omnigraph verify --deep` names damaged files")


def embedding_model(column: pa.Field) -> str | None:
    """Return the model that computed every vector of a column; None if unknown."""
    mark = (column.metadata or {}).get(EMBEDDING_MODEL)
    return None if mark is None else str(mark, "utf-8")


def to_stored(rows: pa.Table, fields: Sequence[pa.Field]) -> pa.Table:
    """Return rows as stored columns, one for each of theirs."""
    pairs = zip(rows.columns, fields, strict=True)
    columns = [_encode_blobs(c, field.type) if is_blob(field) else c for c, field in pairs]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _encode_blobs(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """Encode bytes and URIs as Lance blobs."""
    chunks = []
    for chunk in column.chunks:
        nulls = pa.nulls(len(chunk), pa.uint64())
        parts = [pc.struct_field(chunk, "data"), pc.struct_field(chunk, "uri"), nulls, nulls]
        fields = list(type_.storage_type)
        mask = chunk.is_null() if chunk.null_count else None
        storage = pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
        chunks.append(pa.ExtensionArray.from_storage(type_, storage))
    return pa.chunked_array(chunks, type_)


def empty_table(schema: pa.Schema) -> pa.Table:
    """Return an empty table of a schema, with empty arrays of blob columns."""
    columns = [
        lance.blob_array([]) if is_blob(field) else pa.array([], field.type) for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def is_blob(field: pa.Field) -> bool:
    """Return whether a column holds blobs."""
    return isinstance(field.type, pa.BaseExtensionType)


# --- files of a version --------------------------------------------------------------------------


_DETACHED = 1 << 63
_LATEST_FIRST = (1 << 64) - 1


def version_file(version: int) -> str:
    """Return the path of a version's manifest below its dataset."""
    if version >= _DETACHED:
        return f"_versions/d{version}.manifest"
    return f"_versions/{_LATEST_FIRST - version:020d}.manifest"


def is_stable_name(path: str) -> bool:
    """Return whether a file below a dataset is part of its versions: it is never overwritten."""
    return not path.startswith("_transactions/") and not path.endswith(".json")


def checksum_file(version: int) -> str:
    """Return the path of the checksums of a version below its dataset."""
    return f"_checksums/{version}.json"


def parse_version_file(path: str) -> int | None:
    """Return the version of a manifest path below a dataset, None for any other file.

    Detached versions, which have no order, return None.
    """
    name = path.removeprefix("_versions/").removesuffix(".manifest")
    if not name.isdigit() or version_file(_LATEST_FIRST - int(name)) != path:
        return None
    return _LATEST_FIRST - int(name)


def data_file_names(files: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of data files of a fragment.

    Their public attribute `path` creates a class at every access, which dominates the time.
    """
    return tuple(file._path for file in files)


def version_hint(path: str) -> str:
    """Return the file in which Lance notes the latest version of a dataset, on disks."""
    return f"{path}/_versions/latest_version_hint.json"


def referenced_files(handle: LanceDataset) -> set[str]:
    """Return the data and deletion files of a version, below its dataset."""
    with translate_errors("listing the files of a version"):
        files = {version_file(int(handle.version))}
        for fragment in handle.get_fragments():
            files |= {f"data/{name}" for name in data_file_names(fragment.data_files())}
            deletions = fragment.deletion_file()
            if deletions is not None:
                files.add(deletions)
        return files


def fragment_file_names(fragments: Iterable[FragmentMetadata]) -> list[str]:
    """Return the data and deletion files of fragments, below their dataset."""
    names = []
    for fragment in fragments:
        names += [f"data/{name}" for name in data_file_names(fragment.files)]
        if fragment.deletion_file is not None:
            names.append(fragment.deletion_file.path(fragment.id))
    return names


def manifests_first(paths: Iterable[str]) -> list[str]:
    """Sort files for removal: a version cannot be opened once one of its files is gone."""
    return sorted(paths, key=lambda path: (not path.endswith(".manifest"), path))


def same_files(one: LanceDataset, other: LanceDataset) -> bool:
    """Return whether two versions have the same data and deletion files."""
    files = [referenced_files(h) - {version_file(int(h.version))} for h in (one, other)]
    return files[0] == files[1]


def index_segment_ids(handle: LanceDataset) -> list[str]:
    """Return the IDs of the index segments of a version."""
    indexes: Any = handle.describe_indices()
    return [str(segment.uuid) for index in indexes for segment in index.segments]


def referenced_folders(handle: LanceDataset) -> set[str]:
    """Return the folders that a version needs, below its dataset: indexes and large blobs.

    Blobs too large for a data file are in a folder with the name of the data file.
    """
    with translate_errors("listing the folders of a version"):
        indexes = {f"_indices/{uuid}/" for uuid in index_segment_ids(handle)}
        data = (data_file_names(f.data_files()) for f in handle.get_fragments())
        return indexes | {
            f"data/{name.removesuffix('.lance')}/" for names in data for name in names
        }
