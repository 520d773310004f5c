"""This module reads columns of one version of a dataset by position: the place of a row in a scan.

A version never changes, so a position means the same row as long as the version is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset
from lance.file import LanceFileWriter
from lance.fragment import FragmentMetadata
from ulid import ULID

from omnigraph.errors import GraphCorrupt, NotFound
from omnigraph.storage.datasets import Datasets
from omnigraph.storage.error_translation import translate_errors

Positions = npt.NDArray[np.int64]
ROW_OFFSET = "_rowoffset"
_BATCH_ROWS = 65_536


def read_column(handle: LanceDataset, column: str) -> pa.Array:
    """Return one column of all rows."""
    with translate_errors(f"reading column {column}"):
        found = handle.to_table(columns=[column])[column]
        return found.chunk(0) if found.num_chunks == 1 else found.combine_chunks()


def column_chunks(handle: LanceDataset, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
    """Yield all rows of some columns in order, at least so many at a time."""
    with translate_errors("reading columns"):
        piece: list[pa.RecordBatch] = []
        for batch in handle.scanner(columns=list(columns)).to_batches():
            piece.append(batch)
            if sum(part.num_rows for part in piece) >= rows:
                yield pa.Table.from_batches(piece)
                piece = []
        if piece:
            yield pa.Table.from_batches(piece)


def id_ranks(ids: pa.Array) -> Positions:
    """Return numbers in the order of texts, by their bytes; equal texts have equal numbers."""
    ranks = pc.rank(ids, sort_keys="ascending", tiebreaker="dense")
    return np.asarray(ranks).astype(np.int64)


def positions_where(handle: LanceDataset, condition: str) -> Positions:
    """Return the positions of rows that satisfy a filter, ascending."""
    found = rows_where(handle, condition, [])[ROW_OFFSET]
    return np.sort(found.to_numpy().astype(np.int64))


def rows_where(
    handle: LanceDataset, condition: str, columns: Sequence[str], most: int | None = None
) -> pa.Table:
    """Return rows that satisfy a filter, with their positions as `_rowoffset`; at most so many."""
    wanted: dict[str, Any] = {"columns": [*columns, ROW_OFFSET], "filter": condition, "limit": most}
    try:
        with translate_errors("filtering rows"):
            return handle.to_table(**wanted)
    except (NotFound, GraphCorrupt):
        # A file of an index may be gone or damaged; what it finds is found without it, too.
        with translate_errors("filtering rows without an index"):
            return handle.scanner(**wanted, use_scalar_index=False).to_table()


@dataclass(frozen=True)
class RowAddressMap:
    """Where the rows of a version are, fragment by fragment."""

    fragments: Sequence[Any]
    firsts: Positions
    """The position of the first row of each fragment."""
    _live: dict[int, npt.NDArray[np.uint64]] = field(default_factory=dict)

    @classmethod
    def of(cls, handle: LanceDataset) -> RowAddressMap:
        """Look at the fragments of a version; nothing is read."""
        with translate_errors("reading row addresses"):
            fragments = handle.get_fragments()
            rows = [f.physical_rows - f.num_deletions for f in fragments]
        return cls(fragments, np.cumsum([0, *rows])[:-1].astype(np.int64))

    def at(self, positions: Positions) -> npt.NDArray[np.uint64]:
        """Return addresses by position; only fragments with deletions are looked into."""
        if not len(positions):
            return np.empty(0, np.uint64)
        numbers = np.searchsorted(self.firsts, positions, side="right") - 1
        offsets = (positions - self.firsts[numbers]).astype(np.uint64)
        found = np.empty(len(positions), np.uint64)
        for number in np.unique(numbers).tolist():
            here, fragment = numbers == number, self.fragments[number]
            if fragment.num_deletions:
                found[here] = self._live_rows(number)[offsets[here]]
            else:
                found[here] = np.uint64(fragment.fragment_id << 32) + offsets[here]
        return found

    def positions(self, addresses: npt.NDArray[np.uint64]) -> Positions:
        """Return the positions of rows by address."""
        numbers = {fragment.fragment_id: n for n, fragment in enumerate(self.fragments)}
        owners, offsets = addresses >> np.uint64(32), addresses & np.uint64(0xFFFFFFFF)
        found = np.empty(len(addresses), np.int64)
        for owner in np.unique(owners).tolist():
            here, number = owners == owner, numbers[owner]
            places = offsets[here].astype(np.int64)
            if self.fragments[number].num_deletions:
                places = np.searchsorted(self._live_rows(number), addresses[here])
            found[here] = self.firsts[number] + places
        return found

    def _live_rows(self, number: int) -> npt.NDArray[np.uint64]:
        if number not in self._live:
            with translate_errors("reading row addresses"):
                scanner = self.fragments[number].scanner(columns=[], with_row_address=True)
                self._live[number] = scanner.to_table()["_rowaddr"].to_numpy()
        return self._live[number]

    @property
    def nbytes(self) -> int:
        """How much memory addresses take at most."""
        looked_into = (int(f.physical_rows) for f in self.fragments if f.num_deletions)
        return int(self.firsts.nbytes) + 8 * sum(looked_into)


def rows_at(
    handle: LanceDataset, addresses: npt.NDArray[np.uint64], columns: Sequence[str]
) -> pa.Table:
    """Return rows by address, in the order asked for, each once for each time it is asked for."""
    with translate_errors("taking rows"):
        # Without stable row ids a row id is an address; `take` would count deletions for each row.
        return handle._take_rows(addresses.tolist(), columns=list(columns))


@dataclass(frozen=True, slots=True)
class FragmentRows:
    """A fragment of a version: what it physically is, and which of its rows are there.

    `offsets` are those rows; None means all `rows` of them.
    """

    key: str
    number: int
    rows: int
    offsets: npt.NDArray[np.uint32] | None = None


def list_fragments(handle: LanceDataset) -> list[FragmentRows]:
    """Return the fragments of a version in the order in which positions count their rows."""
    found = []
    with translate_errors("reading fragments"):
        for fragment in handle.get_fragments():
            key = " ".join(file.path for file in fragment.metadata.files)
            offsets = None
            if fragment.num_deletions:
                scanner = fragment.scanner(columns=[], with_row_address=True)
                offsets = scanner.to_table()["_rowaddr"].to_numpy().astype(np.uint32)
            rows = fragment.physical_rows if offsets is None else len(offsets)
            found.append(FragmentRows(key, fragment.fragment_id, rows, offsets))
    return found


def fragment_column(
    handle: LanceDataset, column: str, fragments: Sequence[FragmentRows]
) -> Iterator[pa.Array]:
    """Yield a column of some fragments, in their order."""
    wanted = {fragment.number for fragment in fragments}
    chosen = [f for f in handle.get_fragments() if f.fragment_id in wanted]
    with translate_errors(f"reading column {column}"):
        scanner = handle.scanner(columns=[column], fragments=chosen, batch_size=_BATCH_ROWS)
        for batch in scanner.to_batches():
            yield batch.column(0)


# ----------------------------------------------------------------------
# This module writes one column of a fragment as a file of its own, beside the files it has.
#
# The rows of the fragment stay where they are: only what the column holds changes. That is for
# fragments no published version refers to; what others may read never changes.


_REPLACED_FIELD_ID = -2
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
    with translate_errors("writing a column"):
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
        fields = [_REPLACED_FIELD_ID if field == number else field for field in known["fields"]]
        if any(field != _REPLACED_FIELD_ID for field in fields):
            files.append({**known, "fields": fields})
    document["files"] = [*files, dict(file)]
    return FragmentMetadata.from_json(json.dumps(document))
