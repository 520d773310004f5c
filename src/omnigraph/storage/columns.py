"""Read columns of one version of a dataset by position; write a column of a fragment.

A position is the index of a row in a full scan. A version never changes, so a position refers to
the same row as long as the version exists.
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
_TEXT_ROWS, _TEXT_BATCHES = 8_192, 4
"""Rows of a batch of texts, and batches that are read ahead: texts may be long."""


def read_column(handle: LanceDataset, column: str) -> pa.Array:
    """Return one column of all rows."""
    with translate_errors(f"reading column {column}"):
        values = handle.to_table(columns=[column])[column]
        return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def column_chunks(handle: LanceDataset, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
    """Yield all rows of some columns in order, at least `rows` at a time."""
    with translate_errors("reading columns"):
        batches: list[pa.RecordBatch] = []
        for batch in handle.scanner(columns=list(columns)).to_batches():
            batches.append(batch)
            if sum(part.num_rows for part in batches) >= rows:
                yield pa.Table.from_batches(batches)
                batches = []
        if batches:
            yield pa.Table.from_batches(batches)


def stored_bytes(handle: LanceDataset) -> int:
    """Return the size of all data files of a version."""
    with translate_errors("reading the sizes of files"):
        files = (file for f in handle.get_fragments() for file in f.metadata.files)
        return sum(file.file_size_bytes or 0 for file in files)


def id_ranks(ids: pa.Array) -> Positions:
    """Return the dense ranks of IDs, ordered by their bytes."""
    ranks = pc.rank(ids, sort_keys="ascending", tiebreaker="dense")
    return np.asarray(ranks).astype(np.int64)


def positions_where(handle: LanceDataset, condition: str) -> Positions:
    """Return the positions of rows that satisfy a filter, ascending."""
    positions = rows_where(handle, condition, [])[ROW_OFFSET]
    return np.sort(positions.to_numpy().astype(np.int64))


def rows_where(
    handle: LanceDataset, condition: str, columns: Sequence[str], limit: int | None = None
) -> pa.Table:
    """Return rows that satisfy a filter, with their positions as `_rowoffset`."""
    request: dict[str, Any] = {
        "columns": [*columns, ROW_OFFSET],
        "filter": condition,
        "limit": limit,
    }
    try:
        with translate_errors("filtering rows"):
            return handle.to_table(**request)
    except (NotFound, GraphCorrupt):
        # A file of an index may be missing or damaged: the scan gives the same rows.
        with translate_errors("filtering rows without an index"):
            return handle.scanner(**request, use_scalar_index=False).to_table()


def live_addresses(fragment: Any) -> npt.NDArray[np.uint64]:  # noqa: ANN401 - a Lance fragment
    """Return the addresses of the live rows of a fragment, ascending."""
    return np.flatnonzero(live_mask(fragment)).astype(np.uint64) + np.uint64(
        fragment.fragment_id << 32
    )


def live_mask(fragment: Any) -> npt.NDArray[np.bool_]:  # noqa: ANN401 - a Lance fragment
    """Return which rows of a fragment are live."""
    deleted = _deleted_rows(fragment)
    if deleted is not None:
        mask = np.ones(fragment.physical_rows, np.bool_)
        mask[deleted] = False
        return mask
    mask = np.zeros(fragment.physical_rows, np.bool_)
    rows = fragment.scanner(columns=[], with_row_address=True).to_table()
    mask[np.asarray(rows["_rowaddr"].to_numpy()) & np.uint64(0xFFFFFFFF)] = True
    return mask


def _deleted_rows(fragment: Any) -> npt.NDArray[np.uint32] | None:  # noqa: ANN401 - Lance
    """Return the deleted rows of a fragment from its file; None if a scan has to find them.

    A scan produces an address for every row; the file of few deletions is an Arrow table of them.
    """
    file, uri = fragment.metadata.deletion_file, str(fragment._ds.uri)
    if file is None:
        return np.empty(0, np.uint32)
    if file.file_type != "array" or file.base_id is not None or "://" in uri:
        return None
    with pa.OSFile(f"{uri}/{fragment.deletion_file()}") as source:
        rows = pa.ipc.open_file(source).read_all()["row_id"]
    return np.asarray(rows.to_numpy())


@dataclass(frozen=True)
class RowAddressMap:
    """The mapping between positions and row addresses of a version."""

    fragments: Sequence[Any]
    firsts: Positions
    """The position of the first row of each fragment."""
    _live: dict[int, npt.NDArray[np.uint64]] = field(default_factory=dict)

    @classmethod
    def of(cls, handle: LanceDataset) -> RowAddressMap:
        """Build the map from the fragments of a version; no data is read."""
        with translate_errors("reading row addresses"):
            fragments = handle.get_fragments()
            rows = [f.physical_rows - f.num_deletions for f in fragments]
        return cls(fragments, np.cumsum([0, *rows])[:-1].astype(np.int64))

    def at(self, positions: Positions) -> npt.NDArray[np.uint64]:
        """Return addresses by position; only fragments with deletions are read."""
        if not len(positions):
            return np.empty(0, np.uint64)
        numbers = np.searchsorted(self.firsts, positions, side="right") - 1
        offsets = (positions - self.firsts[numbers]).astype(np.uint64)
        addresses = np.empty(len(positions), np.uint64)
        for number in np.unique(numbers).tolist():
            mask, fragment = numbers == number, self.fragments[number]
            if fragment.num_deletions:
                addresses[mask] = self._live_rows(number)[offsets[mask]]
            else:
                addresses[mask] = np.uint64(fragment.fragment_id << 32) + offsets[mask]
        return addresses

    def positions(self, addresses: npt.NDArray[np.uint64]) -> Positions:
        """Return the positions of rows by address."""
        numbers = {fragment.fragment_id: n for n, fragment in enumerate(self.fragments)}
        owners, offsets = addresses >> np.uint64(32), addresses & np.uint64(0xFFFFFFFF)
        positions = np.empty(len(addresses), np.int64)
        for owner in np.unique(owners).tolist():
            mask, number = owners == owner, numbers[owner]
            indices = offsets[mask].astype(np.int64)
            if self.fragments[number].num_deletions:
                indices = np.searchsorted(self._live_rows(number), addresses[mask])
            positions[mask] = self.firsts[number] + indices
        return positions

    def _live_rows(self, number: int) -> npt.NDArray[np.uint64]:
        if number not in self._live:
            with translate_errors("reading row addresses"):
                self._live[number] = live_addresses(self.fragments[number])
        return self._live[number]

    @property
    def nbytes(self) -> int:
        """The maximum memory use in bytes."""
        cached = (int(f.physical_rows) for f in self.fragments if f.num_deletions)
        return int(self.firsts.nbytes) + 8 * sum(cached)


def rows_at(
    handle: LanceDataset, addresses: npt.NDArray[np.uint64], columns: Sequence[str]
) -> pa.Table:
    """Return rows by address, in the order of the addresses, with repetitions."""
    with translate_errors("taking rows"):
        # Without stable row IDs a row ID is an address; `take` would count deletions for each row.
        return handle._take_rows(addresses.tolist(), columns=list(columns))


@dataclass(frozen=True, slots=True)
class FragmentRows:
    """A fragment of a version: its data files as `key`, its number and its live rows.

    `offsets` are the live rows; None means all `rows`.
    """

    key: str
    number: int
    rows: int
    offsets: npt.NDArray[np.uint32] | None = None


def list_fragments(handle: LanceDataset) -> list[FragmentRows]:
    """Return the fragments of a version in the order of positions."""
    fragments = []
    with translate_errors("reading fragments"):
        for fragment in handle.get_fragments():
            key = " ".join(file.path for file in fragment.metadata.files)
            offsets = None
            if fragment.num_deletions:
                offsets = live_addresses(fragment).astype(np.uint32)
            rows = fragment.physical_rows if offsets is None else len(offsets)
            fragments.append(FragmentRows(key, fragment.fragment_id, rows, offsets))
    return fragments


def fragment_column(
    handle: LanceDataset, column: str, fragments: Sequence[FragmentRows]
) -> Iterator[pa.Array]:
    """Yield a column of some fragments, in their order."""
    numbers = {fragment.number for fragment in fragments}
    chosen = [f for f in handle.get_fragments() if f.fragment_id in numbers]
    with translate_errors(f"reading column {column}"):
        scanner = handle.scanner(
            columns=[column], fragments=chosen, batch_size=_TEXT_ROWS, batch_readahead=_TEXT_BATCHES
        )
        for batch in scanner.to_batches():
            yield batch.column(0)


# --- write one column of a fragment as a separate file -------------------------------------------
#
# The rows of the fragment keep their addresses; only the values of the column change. This is for
# fragments that no published version refers to: published files never change.


_REPLACED_FIELD_ID = -2
"""Marks a column of a file as replaced by another file, as defined by the Lance format."""


def write_column(
    datasets: Datasets, path: str, base: LanceDataset, column: str, values: Iterable[pa.Array]
) -> dict[str, Any]:
    """Write a column for all rows of a fragment; return the metadata of the file as JSON values.

    `values` are chunks in the order of the rows, deleted rows included.
    """
    field, name = base.schema.field(column), f"{ULID()}.lance"
    numbers = {field.name(): field.id() for field in base.lance_schema.fields()}
    file = f"{path}/data/{name}"
    version = base.data_storage_version
    with translate_errors("writing a column"):
        uri = datasets.location.child(file)
        schema = pa.schema([field])
        with LanceFileWriter(
            uri, schema, version=version, storage_options=datasets.options
        ) as writer:
            for chunk in values:
                writer.write_batch(pa.record_batch([chunk], schema=schema))
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
    """Return a fragment that reads a column from a file instead of its older files."""
    [number] = file["fields"]
    document = fragment.to_json()
    files = []
    for old in document["files"]:
        fields = [_REPLACED_FIELD_ID if field == number else field for field in old["fields"]]
        if any(field != _REPLACED_FIELD_ID for field in fields):
            files.append({**old, "fields": fields})
    document["files"] = [*files, dict(file)]
    return FragmentMetadata.from_json(json.dumps(document))
