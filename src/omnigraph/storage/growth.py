"""This module tells how one version of a dataset grew out of another, without reading either.

Rows are never changed in place: a version keeps the fragments of the one before, marks rows as
deleted and adds fragments. So two versions that share fragments differ in little that is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceDataset

from omnigraph.storage.columns import Addresses, Positions, rows_at
from omnigraph.storage.faults import translated


def fragment_files(handle: LanceDataset) -> list[str]:
    """Return what tells each fragment from others: its number may be used again on a branch."""
    with translated("reading fragments"):
        return [str(fragment.metadata.files[0].path) for fragment in handle.get_fragments()]


@dataclass(frozen=True, slots=True)
class Layout:
    """What a version consists of."""

    handle: LanceDataset
    files: Sequence[str]


@dataclass(frozen=True, slots=True)
class Growth:
    """What a version has more and less than an older one.

    The rows they share stand first in the newer one, in the order of the older one.
    """

    old: Layout
    new: Layout
    removed: Positions
    """Where the rows that are gone stood in the older version, ascending."""
    shared: int
    """How many rows both versions have; added ones stand behind them."""
    more: Sequence[Any]
    """The fragments with what was added."""

    def added(self, columns: Sequence[str]) -> pa.Table:
        """Read what was added."""
        with translated("reading what was added"):
            if not self.more:
                return self.new.handle.schema.empty_table().select(list(columns))
            scanner = self.new.handle.scanner(columns=list(columns), fragments=list(self.more))
            return scanner.to_table()

    def lost(self, columns: Sequence[str]) -> pa.Table:
        """Read the rows that are gone."""
        if not len(self.removed):
            return self.old.handle.schema.empty_table().select(list(columns))
        addresses = Addresses.of(self.old.handle).at(self.removed)
        return rows_at(self.old.handle, addresses, columns)

    def column(self, before: pa.Array, name: str) -> pa.Array:
        """Return a whole column of the newer version, given that of the older one."""
        kept = before
        if len(self.removed):
            there = np.ones(len(before), np.bool_)
            there[self.removed] = False
            kept = before.filter(pa.array(there))
        return pa.concat_arrays([kept, *self.added([name]).column(0).chunks])


def growth(old: Layout, new: Layout, limit: int) -> Growth | None:
    """Return what changed; None when that is more than `limit` rows or no mere growth."""
    with translated("comparing versions"):
        olds, news = old.handle.get_fragments(), new.handle.get_fragments()
        there = dict(zip(new.files, news, strict=True))
        kept = [file for file in old.files if file in there]
        if kept != new.files[: len(kept)]:
            return None
        more = news[len(kept) :]
        pairs = [(f, there.get(file)) for file, f in zip(old.files, olds, strict=True)]
        lost = [before for before, now in pairs if now is None]
        if sum(map(_rows, (*more, *lost))) > limit:
            return None
        removed, first = [], 0
        for before, now in pairs:
            gone = _gone(before, now)
            if gone is None:
                return None
            removed.append(gone + first)
            first += _rows(before)
        positions = np.concatenate([np.empty(0, np.int64), *removed])
        if len(positions) > limit:
            return None
        return Growth(old, new, positions, first - len(positions), more)


def _rows(fragment: Any) -> int:  # noqa: ANN401 - a fragment of Lance
    return int(fragment.physical_rows - fragment.num_deletions)


def _gone(old: Any, new: Any) -> Positions | None:  # noqa: ANN401 - as above
    """Return which live rows of a fragment are deleted now; None when deleted ones are back."""
    if new is None:
        return np.arange(_rows(old))
    if old.deletion_file() == new.deletion_file():
        return np.empty(0, np.int64)
    before, after = _live(old), _live(new)
    if (after & ~before).any():
        return None
    return np.flatnonzero(~after[before])


def _live(fragment: Any) -> npt.NDArray[np.bool_]:  # noqa: ANN401 - as above
    """Tell for each row of a fragment whether it is there."""
    if not fragment.num_deletions:
        return np.ones(fragment.physical_rows, np.bool_)
    addresses = fragment.scanner(columns=[], with_row_address=True).to_table()["_rowaddr"]
    found = np.zeros(fragment.physical_rows, np.bool_)
    found[addresses.to_numpy() & np.uint64(0xFFFFFFFF)] = True
    return found
