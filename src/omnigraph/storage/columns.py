"""This module reads columns of one version of a dataset by position: the place of a row in a scan.

A version never changes, so a position means the same row as long as the version is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from omnigraph.storage.faults import translated

Positions = npt.NDArray[np.int64]
OFFSET = "_rowoffset"
_BATCH = 65_536


def whole_column(handle: LanceDataset, column: str) -> pa.Array:
    """Return one column of all rows."""
    with translated(f"reading column {column}"):
        found = handle.to_table(columns=[column])[column]
        return found.chunk(0) if found.num_chunks == 1 else found.combine_chunks()


def id_ranks(ids: pa.Array) -> Positions:
    """Return numbers in the order of texts, by their bytes; equal texts have equal numbers."""
    ranks = pc.rank(ids, sort_keys="ascending", tiebreaker="dense")
    return np.asarray(ranks).astype(np.int64)


def positions_where(handle: LanceDataset, condition: str) -> Positions:
    """Return the positions of rows that satisfy a filter, ascending."""
    with translated("filtering rows"):
        found = handle.to_table(columns=[OFFSET], filter=condition)[OFFSET]
        return np.sort(found.to_numpy().astype(np.int64))


def rows_where(handle: LanceDataset, condition: str, columns: Sequence[str]) -> pa.Table:
    """Return rows that satisfy a filter, with their positions as `_rowoffset`."""
    with translated("filtering rows"):
        return handle.to_table(columns=[*columns, OFFSET], filter=condition)


def row_addresses(handle: LanceDataset) -> npt.NDArray[np.uint64]:
    """Return where the row at each position is; only fragments with deletions are looked into."""
    parts = []
    with translated("reading row addresses"):
        for fragment in handle.get_fragments():
            first = np.uint64(fragment.fragment_id << 32)
            if fragment.num_deletions:
                scanner = fragment.scanner(columns=[], with_row_address=True)
                parts.append(scanner.to_table()["_rowaddr"].to_numpy())
            else:
                parts.append(first + np.arange(fragment.physical_rows, dtype=np.uint64))
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


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
