"""This module reads columns of one version of a dataset by position: the place of a row in a scan.

A version never changes, so a position means the same row as long as the version is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from omnigraph.errors import GraphCorrupt, NotFound
from omnigraph.storage.faults import translated

Positions = npt.NDArray[np.int64]
OFFSET = "_rowoffset"
_BATCH = 65_536


def whole_column(handle: LanceDataset, column: str) -> pa.Array:
    """Return one column of all rows."""
    with translated(f"reading column {column}"):
        found = handle.to_table(columns=[column])[column]
        return found.chunk(0) if found.num_chunks == 1 else found.combine_chunks()


def column_pieces(handle: LanceDataset, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
    """Yield all rows of some columns in order, at least so many at a time."""
    with translated("reading columns"):
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
    found = rows_where(handle, condition, [])[OFFSET]
    return np.sort(found.to_numpy().astype(np.int64))


def rows_where(
    handle: LanceDataset, condition: str, columns: Sequence[str], most: int | None = None
) -> pa.Table:
    """Return rows that satisfy a filter, with their positions as `_rowoffset`; at most so many."""
    wanted: dict[str, Any] = {"columns": [*columns, OFFSET], "filter": condition, "limit": most}
    try:
        with translated("filtering rows"):
            return handle.to_table(**wanted)
    except (NotFound, GraphCorrupt):
        # A file of an index may be gone or damaged; what it finds is found without it, too.
        with translated("filtering rows without an index"):
            return handle.scanner(**wanted, use_scalar_index=False).to_table()


@dataclass(frozen=True)
class Addresses:
    """Where the rows of a version are, fragment by fragment."""

    fragments: Sequence[Any]
    firsts: Positions
    """The position of the first row of each fragment."""
    _live: dict[int, npt.NDArray[np.uint64]] = field(default_factory=dict)

    @classmethod
    def of(cls, handle: LanceDataset) -> Addresses:
        """Look at the fragments of a version; nothing is read."""
        with translated("reading row addresses"):
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
            with translated("reading row addresses"):
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
    with translated("taking rows"):
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


def fragments_of(handle: LanceDataset) -> list[FragmentRows]:
    """Return the fragments of a version in the order in which positions count their rows."""
    found = []
    with translated("reading fragments"):
        for fragment in handle.get_fragments():
            key = " ".join(file.path for file in fragment.metadata.files)
            offsets = None
            if fragment.num_deletions:
                scanner = fragment.scanner(columns=[], with_row_address=True)
                offsets = scanner.to_table()["_rowaddr"].to_numpy().astype(np.uint32)
            rows = fragment.physical_rows if offsets is None else len(offsets)
            found.append(FragmentRows(key, fragment.fragment_id, rows, offsets))
    return found


def column_of(
    handle: LanceDataset, column: str, fragments: Sequence[FragmentRows]
) -> Iterator[pa.Array]:
    """Yield a column of some fragments, in their order."""
    wanted = {fragment.number for fragment in fragments}
    chosen = [f for f in handle.get_fragments() if f.fragment_id in wanted]
    with translated(f"reading column {column}"):
        scanner = handle.scanner(columns=[column], fragments=chosen, batch_size=_BATCH)
        for batch in scanner.to_batches():
            yield batch.column(0)
