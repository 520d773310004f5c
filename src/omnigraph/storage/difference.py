"""This module finds the rows in which two versions of a dataset may differ, by files alone.

Data files never change. Fragments made of the same files hold the same rows, but for those deleted;
rows are looked at only where files or deletions differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceDataset
from lance.fragment import FragmentMetadata

from omnigraph.storage.columns import rows_at
from omnigraph.storage.faults import translated

Addresses: TypeAlias = npt.NDArray[np.uint64]
Fragment: TypeAlias = Any
_NONE: Addresses = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Differing:
    """Rows of two versions that stand in only one of them: their ids, and where they are."""

    old: pa.Table
    new: pa.Table


def differing_rows(old: LanceDataset, new: LanceDataset) -> Differing:
    """Return the rows only one version has; an entity that was rewritten is on both sides."""
    with translated("comparing versions"):
        before, after = ({_files(f): f for f in handle.get_fragments()} for handle in (old, new))
        pairs = [
            (before.get(files), after.get(files)) for files in dict.fromkeys([*before, *after])
        ]
        differing = [_live_in_one(*pair) for pair in pairs if _differ(*pair)]
    return Differing(
        _with_ids(old, (one for one, _ in differing)),
        _with_ids(new, (other for _, other in differing)),
    )


@dataclass(frozen=True, slots=True)
class Lost:
    """Rows to take out of a version: whole fragments, fragments without them, or by address."""

    emptied: list[int]
    left: list[FragmentMetadata]
    addresses: Addresses


def lost_again(
    base: LanceDataset, made: LanceDataset, now: LanceDataset, new: Collection[tuple[str, ...]]
) -> Lost | None:
    """Return which rows `now` has to lose to be to a newer version what `made` is to `base`.

    `new` are the files of fragments that stand in `now` whole. None if `now` has rows elsewhere
    than `made` lost them.
    """
    lost = Lost([], [], _NONE)
    addresses = [_NONE]
    with translated("comparing versions"):
        before, after, later = (
            {_files(f): f for f in handle.get_fragments()} for handle in (base, made, now)
        )
        changed = [files for files in before if _differ(before[files], after.get(files))]
        if not all(files in later for files in changed):
            return None
        for files in (*changed, *(files for files in later if files in new)):
            here, there = later[files], after.get(files)
            if files not in before or not _is_same(before[files], here):
                addresses += [_live_in_one(here, there)[0]] if _differ(here, there) else []
            elif there is None:
                lost.emptied.append(here.fragment_id)
            else:
                lost.left.append(there.metadata)
    return replace(lost, addresses=np.concatenate(addresses))


def added_fragments(
    old: LanceDataset, new: LanceDataset
) -> list[tuple[FragmentMetadata, pa.Array]]:
    """Return the whole fragments only the new version has, free to be staged, with their ids."""
    with translated("comparing versions"):
        before = {_files(fragment) for fragment in old.get_fragments()}
        fragments = [f for f in new.get_fragments() if _files(f) not in before]
        # A fragment that has no number yet gets one of the version it is staged for.
        return [
            (replace(f.metadata, id=0), f.to_table(columns=["id"])["id"].combine_chunks())
            for f in fragments
            if not f.num_deletions
        ]


def rewritten_rows(old: LanceDataset, new: LanceDataset) -> int:
    """Return how many rows gave way to as many others in new files; only versions are looked at."""
    with translated("comparing versions"):
        before, after = (
            {_files(f): f.physical_rows for f in handle.get_fragments()} for handle in (old, new)
        )
    gone = sum(rows for files, rows in before.items() if files not in after)
    return min(gone, sum(rows for files, rows in after.items() if files not in before))


def _files(fragment: Fragment) -> tuple[str, ...]:
    # The property `path` makes a class each time it is asked, which takes longer than the rest.
    return tuple(file._path for file in fragment.metadata.files)


def _differ(one: Fragment | None, other: Fragment | None) -> bool:
    if one is None or other is None:
        return True
    left, right = one.metadata.deletion_file, other.metadata.deletion_file
    if left is None or right is None:
        return left is not right
    return bool(left.asdict() != right.asdict())


def _is_same(one: Fragment, other: Fragment) -> bool:
    return one.fragment_id == other.fragment_id and not _differ(one, other)


def _live_in_one(one: Fragment | None, other: Fragment | None) -> tuple[Addresses, Addresses]:
    """Return the addresses of rows that are live in one fragment only, of two of the same files."""
    left = _NONE if one is None else _offsets(one)
    right = _NONE if other is None else _offsets(other)
    if one is not None and other is not None:
        here, there = (_mask(offsets, one.physical_rows) for offsets in (left, right))
        left, right = _places(here & ~there), _places(there & ~here)
    return _addresses(one, left), _addresses(other, right)


def _offsets(fragment: Fragment) -> Addresses:
    """Return the places of live rows in a fragment."""
    if not fragment.num_deletions:
        return np.arange(fragment.physical_rows, dtype=np.uint64)
    found = fragment.scanner(columns=[], with_row_address=True).to_table()["_rowaddr"].to_numpy()
    return np.asarray(found & np.uint64(0xFFFFFFFF))


def _mask(offsets: Addresses, rows: int) -> npt.NDArray[np.bool_]:
    found = np.zeros(rows, np.bool_)
    found[offsets] = True
    return found


def _places(mask: npt.NDArray[np.bool_]) -> Addresses:
    return np.flatnonzero(mask).astype(np.uint64)


def _addresses(fragment: Fragment | None, offsets: Addresses) -> Addresses:
    return _NONE if fragment is None else offsets + np.uint64(fragment.fragment_id << 32)


def _with_ids(handle: LanceDataset, parts: Iterable[Addresses]) -> pa.Table:
    addresses = np.concatenate([_NONE, *parts])
    ids = rows_at(handle, addresses, ["id"])["id"] if len(addresses) else pa.array([], pa.string())
    return pa.table({"id": ids, "_rowaddr": pa.array(addresses, pa.uint64())})
