"""This module finds the rows in which two versions of a dataset may differ, by files alone.

Data files never change. Fragments made of the same files hold the same rows, but for those deleted;
rows are looked at only where files or deletions differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceDataset
from lance.fragment import FragmentMetadata

from omnigraph.storage.columns import Positions, RowAddressMap, rows_at
from omnigraph.storage.error_translation import translate_errors

RowAddresses: TypeAlias = npt.NDArray[np.uint64]
Fragment: TypeAlias = Any
_NO_ADDRESSES: RowAddresses = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class DifferingRows:
    """Rows of two versions that stand in only one of them: their ids, and where they are."""

    old: pa.Table
    new: pa.Table


def differing_rows(old: LanceDataset, new: LanceDataset) -> DifferingRows:
    """Return the rows only one version has; an entity that was rewritten is on both sides."""
    with translate_errors("comparing versions"):
        before, after = (
            {_fragment_key(f): f for f in handle.get_fragments()} for handle in (old, new)
        )
        pairs = [
            (before.get(files), after.get(files)) for files in dict.fromkeys([*before, *after])
        ]
        differing = [_live_in_one(*pair) for pair in pairs if _fragments_differ(*pair)]
    return DifferingRows(
        _with_ids(old, (one for one, _ in differing)),
        _with_ids(new, (other for _, other in differing)),
    )


@dataclass(frozen=True, slots=True)
class RowDeletions:
    """Rows to take out of a version: whole fragments, fragments without them, or by address."""

    emptied: list[int]
    left: list[FragmentMetadata]
    addresses: RowAddresses


def rebase_deletions(
    base: LanceDataset, made: LanceDataset, now: LanceDataset, new: Collection[tuple[str, ...]]
) -> RowDeletions | None:
    """Return which rows `now` has to lose to be to a newer version what `made` is to `base`.

    `new` are the files of fragments that stand in `now` whole. None if `now` has rows elsewhere
    than `made` lost them.
    """
    lost = RowDeletions([], [], _NO_ADDRESSES)
    addresses = [_NO_ADDRESSES]
    with translate_errors("comparing versions"):
        before, after, later = (
            {_fragment_key(f): f for f in handle.get_fragments()} for handle in (base, made, now)
        )
        changed = [files for files in before if _fragments_differ(before[files], after.get(files))]
        if not all(files in later for files in changed):
            return None
        for files in (*changed, *(files for files in later if files in new)):
            here, there = later[files], after.get(files)
            if files not in before or not _is_same(before[files], here):
                addresses += (
                    [_live_in_one(here, there)[0]] if _fragments_differ(here, there) else []
                )
            elif there is None:
                lost.emptied.append(here.fragment_id)
            else:
                lost.left.append(there.metadata)
    return replace(lost, addresses=np.concatenate(addresses))


def added_fragments(
    old: LanceDataset, new: LanceDataset
) -> list[tuple[FragmentMetadata, pa.Array]]:
    """Return the whole fragments only the new version has, free to be staged, with their ids."""
    with translate_errors("comparing versions"):
        before = {_fragment_key(fragment) for fragment in old.get_fragments()}
        fragments = [f for f in new.get_fragments() if _fragment_key(f) not in before]
        # A fragment that has no number yet gets one of the version it is staged for.
        return [
            (replace(f.metadata, id=0), f.to_table(columns=["id"])["id"].combine_chunks())
            for f in fragments
            if not f.num_deletions
        ]


def rewritten_rows(old: LanceDataset, new: LanceDataset) -> int:
    """Return how many rows gave way to as many others in new files; only versions are looked at."""
    with translate_errors("comparing versions"):
        before, after = (
            {_fragment_key(f): f.physical_rows for f in handle.get_fragments()}
            for handle in (old, new)
        )
    gone = sum(rows for files, rows in before.items() if files not in after)
    return min(gone, sum(rows for files, rows in after.items() if files not in before))


def _fragment_key(fragment: Fragment) -> tuple[str, ...]:
    # The property `path` makes a class each time it is asked, which takes longer than the rest.
    return tuple(file._path for file in fragment.metadata.files)


def _fragments_differ(one: Fragment | None, other: Fragment | None) -> bool:
    if one is None or other is None:
        return True
    left, right = one.metadata.deletion_file, other.metadata.deletion_file
    if left is None or right is None:
        return left is not right
    return bool(left.asdict() != right.asdict())


def _is_same(one: Fragment, other: Fragment) -> bool:
    return one.fragment_id == other.fragment_id and not _fragments_differ(one, other)


def _live_in_one(one: Fragment | None, other: Fragment | None) -> tuple[RowAddresses, RowAddresses]:
    """Return the addresses of rows that are live in one fragment only, of two of the same files."""
    left = _NO_ADDRESSES if one is None else _live_offsets(one)
    right = _NO_ADDRESSES if other is None else _live_offsets(other)
    if one is not None and other is not None:
        here, there = (_mask(offsets, one.physical_rows) for offsets in (left, right))
        left, right = _set_offsets(here & ~there), _set_offsets(there & ~here)
    return _to_addresses(one, left), _to_addresses(other, right)


def _live_offsets(fragment: Fragment) -> RowAddresses:
    """Return the places of live rows in a fragment."""
    if not fragment.num_deletions:
        return np.arange(fragment.physical_rows, dtype=np.uint64)
    found = fragment.scanner(columns=[], with_row_address=True).to_table()["_rowaddr"].to_numpy()
    return np.asarray(found & np.uint64(0xFFFFFFFF))


def _mask(offsets: RowAddresses, rows: int) -> npt.NDArray[np.bool_]:
    found = np.zeros(rows, np.bool_)
    found[offsets] = True
    return found


def _set_offsets(mask: npt.NDArray[np.bool_]) -> RowAddresses:
    return np.flatnonzero(mask).astype(np.uint64)


def _to_addresses(fragment: Fragment | None, offsets: RowAddresses) -> RowAddresses:
    return _NO_ADDRESSES if fragment is None else offsets + np.uint64(fragment.fragment_id << 32)


def _with_ids(handle: LanceDataset, parts: Iterable[RowAddresses]) -> pa.Table:
    addresses = np.concatenate([_NO_ADDRESSES, *parts])
    ids = rows_at(handle, addresses, ["id"])["id"] if len(addresses) else pa.array([], pa.string())
    return pa.table({"id": ids, "_rowaddr": pa.array(addresses, pa.uint64())})


# ----------------------------------------------------------------------
# This module tells how one version of a dataset grew out of another, without reading either.
#
# Rows are never changed in place: a version keeps the fragments of the one before, marks rows as
# deleted and adds fragments. So two versions that share fragments differ in little that is read.


def fragment_files(handle: LanceDataset) -> list[str]:
    """Return what tells each fragment from others: its number may be used again on a branch."""
    with translate_errors("reading fragments"):
        return [str(fragment.metadata.files[0].path) for fragment in handle.get_fragments()]


@dataclass(frozen=True, slots=True)
class VersionFragments:
    """What a version consists of."""

    handle: LanceDataset
    files: Sequence[str]


@dataclass(frozen=True, slots=True)
class VersionGrowth:
    """What a version has more and less than an older one.

    The rows they share stand first in the newer one, in the order of the older one.
    """

    old: VersionFragments
    new: VersionFragments
    removed: Positions
    """Where the rows that are gone stood in the older version, ascending."""
    shared: int
    """How many rows both versions have; added ones stand behind them."""
    more: Sequence[Any]
    """The fragments with what was added."""

    def added(self, columns: Sequence[str]) -> pa.Table:
        """Read what was added."""
        with translate_errors("reading what was added"):
            if not self.more:
                return self.new.handle.schema.empty_table().select(list(columns))
            scanner = self.new.handle.scanner(columns=list(columns), fragments=list(self.more))
            return scanner.to_table()

    def lost(self, columns: Sequence[str]) -> pa.Table:
        """Read the rows that are gone."""
        if not len(self.removed):
            return self.old.handle.schema.empty_table().select(list(columns))
        addresses = RowAddressMap.of(self.old.handle).at(self.removed)
        return rows_at(self.old.handle, addresses, columns)

    def column(self, before: pa.Array, name: str) -> pa.Array:
        """Return a whole column of the newer version, given that of the older one."""
        kept = before
        if len(self.removed):
            there = np.ones(len(before), np.bool_)
            there[self.removed] = False
            kept = before.filter(pa.array(there))
        return pa.concat_arrays([kept, *self.added([name]).column(0).chunks])


def find_growth(old: VersionFragments, new: VersionFragments, limit: int) -> VersionGrowth | None:
    """Return what changed; None when that is more than `limit` rows or no mere growth."""
    with translate_errors("comparing versions"):
        olds, news = old.handle.get_fragments(), new.handle.get_fragments()
        there = dict(zip(new.files, news, strict=True))
        kept = [file for file in old.files if file in there]
        if kept != new.files[: len(kept)]:
            return None
        more = news[len(kept) :]
        pairs = [(f, there.get(file)) for file, f in zip(old.files, olds, strict=True)]
        lost = [before for before, now in pairs if now is None]
        if sum(map(_live_row_count, (*more, *lost))) > limit:
            return None
        removed, first = [], 0
        for before, now in pairs:
            gone = _deleted_positions(before, now)
            if gone is None:
                return None
            removed.append(gone + first)
            first += _live_row_count(before)
        positions = np.concatenate([np.empty(0, np.int64), *removed])
        if len(positions) > limit:
            return None
        return VersionGrowth(old, new, positions, first - len(positions), more)


def _live_row_count(fragment: Any) -> int:  # noqa: ANN401 - a fragment of Lance
    return int(fragment.physical_rows - fragment.num_deletions)


def _deleted_positions(old: Any, new: Any) -> Positions | None:  # noqa: ANN401 - as above
    """Return which live rows of a fragment are deleted now; None when deleted ones are back."""
    if new is None:
        return np.arange(_live_row_count(old))
    if old.deletion_file() == new.deletion_file():
        return np.empty(0, np.int64)
    before, after = _live_mask(old), _live_mask(new)
    if (after & ~before).any():
        return None
    return np.flatnonzero(~after[before])


def _live_mask(fragment: Any) -> npt.NDArray[np.bool_]:  # noqa: ANN401 - as above
    """Tell for each row of a fragment whether it is there."""
    if not fragment.num_deletions:
        return np.ones(fragment.physical_rows, np.bool_)
    addresses = fragment.scanner(columns=[], with_row_address=True).to_table()["_rowaddr"]
    found = np.zeros(fragment.physical_rows, np.bool_)
    found[addresses.to_numpy() & np.uint64(0xFFFFFFFF)] = True
    return found
