"""This module writes one column of a fragment as a file of its own, beside the files it has.

The rows of the fragment stay where they are: only what the column holds changes. That is for
fragments no published version refers to; what others may read never changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from lance import LanceDataset
from lance.file import LanceFileWriter
from lance.fragment import FragmentMetadata
from ulid import ULID

from omnigraph.storage.datasets import Datasets
from omnigraph.storage.faults import translated

_REPLACED = -2
"""Stands for a column of a file that another file has now, as Lance's format says."""


def write_column(
    datasets: Datasets, path: str, base: LanceDataset, column: str, values: Iterable[pa.Array]
) -> dict[str, Any]:
    """Write a column for all rows of a fragment; return what the file is, as plain JSON values.

    `values` come piece by piece, in the order of the rows, those that are deleted included.
    """
    field, name = base.schema.field(column), f"{ULID()}.lance"
    numbers = {found.name(): found.id() for found in base.lance_schema.fields()}
    file = f"{path}/data/{name}"
    version = base.data_storage_version
    with translated("writing a column"):
        uri = datasets.location.child(file)
        schema = pa.schema([field])
        with LanceFileWriter(
            uri, schema, version=version, storage_options=datasets.options
        ) as writer:
            for piece in values:
                writer.write_batch(pa.record_batch([piece], schema=schema))
    major, minor = (int(part) for part in version.split("."))
    return {
        "path": name,
        "fields": [numbers[column]],
        "column_indices": [0],
        "file_major_version": major,
        "file_minor_version": minor,
        "file_size_bytes": datasets.objects.size(file),
        "base_id": None,
    }


def with_column(fragment: FragmentMetadata, file: Mapping[str, Any]) -> FragmentMetadata:
    """Return a fragment that has a column from a file; what it had of it before is forgotten."""
    [number] = file["fields"]
    document = fragment.to_json()
    files = []
    for known in document["files"]:
        fields = [_REPLACED if field == number else field for field in known["fields"]]
        if any(field != _REPLACED for field in fields):
            files.append({**known, "fields": fields})
    document["files"] = [*files, dict(file)]
    return FragmentMetadata.from_json(json.dumps(document))
