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


@dataclass(frozen=True, slots=True)
class Growth:
    """What a version has more and less than an older one.

    The rows they share stand first in the newer one, in the order of the older one.
    """

    removed: Positions
    """Where the rows that are gone stood in the older version, ascending."""
    lost: pa.Table
    """Those rows."""
    shared: int
    """How many rows both versions have; added ones stand behind them."""
    added: pa.Table


def growth(
    old: LanceDataset, new: LanceDataset, columns: Sequence[str], limit: int
) -> Growth | None:
    """Return what changed; None when that is more than `limit` rows or no mere growth."""
    with translated("comparing versions"):
        olds, news = old.get_fragments(), new.get_fragments()
        there = {_file(fragment): fragment for fragment in news}
        kept = [f for f in olds if _file(f) in there]
        if [_file(f) for f in kept] != [_file(f) for f in news[: len(kept)]]:
            return None
        more = news[len(kept) :]
        lost = [f for f in olds if _file(f) not in there]
        if sum(_rows(fragment) for fragment in (*more, *lost)) > limit:
            return None
        removed, first = [], 0
        for fragment in olds:
            gone = _gone(fragment, there.get(_file(fragment)))
            if gone is None:
                return None
            removed.append(gone + first)
            first += _rows(fragment)
        positions = np.concatenate([np.empty(0, np.int64), *removed])
        if len(positions) > limit:
            return None
        added = new.schema.empty_table().select(list(columns))
        if more:
            added = new.scanner(columns=list(columns), fragments=more).to_table()
        taken = old.schema.empty_table().select(list(columns))
        if len(positions):
            taken = rows_at(old, Addresses.of(old).at(positions), columns)
        return Growth(positions, taken, first - len(positions), added)


def _file(fragment: Any) -> str:  # noqa: ANN401 - a fragment of Lance
    """Return what tells a fragment from others: its number may be used again on another branch."""
    return str(fragment.metadata.files[0].path)


def _rows(fragment: Any) -> int:  # noqa: ANN401 - as above
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
