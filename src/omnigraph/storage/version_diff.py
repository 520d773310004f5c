"""Find the rows in which two versions of a dataset may differ, by comparing files.

Data files never change. Fragments with the same files hold the same rows, except deleted ones; rows
are read only where files or deletions differ.
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

from omnigraph.storage.columns import Positions, RowAddressMap, live_mask, rows_at
from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.row_lookup import ROW_ADDRESS, lookup_rows

RowAddresses: TypeAlias = npt.NDArray[np.uint64]
Fragment: TypeAlias = Any
_NO_ADDRESSES: RowAddresses = np.empty(0, np.uint64)


def differing_rows(old: LanceDataset, new: LanceDataset) -> tuple[pa.Table, pa.Table]:
    """Return IDs and addresses of the rows that only the old and only the new version has.

    A rewritten entity is on both sides.
    """
    with translate_errors("comparing versions"):
        before, after = (_fragments_by_files(handle) for handle in (old, new))
        pairs = [
            (before.get(files), after.get(files)) for files in dict.fromkeys([*before, *after])
        ]
        differing = [_live_in_one(*pair) for pair in pairs if _fragments_differ(*pair)]
    one, other = zip(*differing, strict=True) if differing else ((), ())
    return _with_ids(old, one), _with_ids(new, other)


@dataclass(frozen=True, slots=True)
class RowDeletions:
    """Rows to delete from a version: emptied fragments, updated fragments, and row addresses."""

    emptied: list[int]
    updated: list[FragmentMetadata]
    addresses: RowAddresses


def rebase_deletions(
    base: LanceDataset, staged: LanceDataset, now: LanceDataset, new: Collection[tuple[str, ...]]
) -> RowDeletions | None:
    """Return the deletions that apply to `now` what `staged` deleted from `base`.

    `new` are the files of fragments that were added to `now` without deletions. None if `now` has
    rewritten rows that `staged` deleted.
    """
    deletions = RowDeletions([], [], _NO_ADDRESSES)
    addresses = [_NO_ADDRESSES]
    with translate_errors("comparing versions"):
        before, after, later = (_fragments_by_files(handle) for handle in (base, staged, now))
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
                deletions.emptied.append(here.fragment_id)
            else:
                deletions.updated.append(there.metadata)
    return replace(deletions, addresses=np.concatenate(addresses))


@dataclass(frozen=True, slots=True)
class VersionChanges:
    """New fragments of a version, ready to be staged again, and addresses of deleted rows.

    Rows deleted from the new fragments are not among them (`deleted_in_added`).
    """

    added: list[FragmentMetadata]
    deleted: RowAddresses


def added_and_deleted(old: LanceDataset, new: LanceDataset) -> VersionChanges:
    """Return what a version adds to an older one and deletes from it."""
    with translate_errors("comparing versions"):
        before, after = (_fragments_by_files(handle) for handle in (old, new))
        # The name of a deletion file contains the number of its fragment, which will be another.
        added = [
            replace(f.metadata, id=0, deletion_file=None)
            for files, f in after.items()
            if files not in before
        ]
        deleted = [
            _live_in_one(fragment, after.get(files))[0]
            for files, fragment in before.items()
            if _fragments_differ(fragment, after.get(files))
        ]
    return VersionChanges(added, np.concatenate([_NO_ADDRESSES, *deleted]))


def deleted_in_added(old: LanceDataset, new: LanceDataset, moved: LanceDataset) -> RowAddresses:
    """Return where `moved` has the rows that `new` deleted from fragments it added to `old`."""
    with translate_errors("comparing versions"):
        before, after = (_fragments_by_files(handle) for handle in (old, new))
        changed = {f: x for f, x in after.items() if f not in before and x.num_deletions}
        there = _fragments_by_files(moved) if changed else {}
        deleted = [_to_addresses(there[f], ~live_mask(x)) for f, x in changed.items()]
    return np.concatenate([_NO_ADDRESSES, *deleted])


def find_rows(addresses: RowAddresses, old: LanceDataset, now: LanceDataset) -> RowAddresses | None:
    """Return where a newer version has rows of an older one; None if it does not have them all.

    Fragments are matched by their files; rows whose file is gone are looked up by their IDs.
    """
    with translate_errors("comparing versions"):
        files = {f.fragment_id: files for files, f in _fragments_by_files(old).items()}
        there = _fragments_by_files(now)
        found, moved = [_NO_ADDRESSES], [_NO_ADDRESSES]
        for number in np.unique(addresses >> np.uint64(32)).tolist():
            rows = addresses[addresses >> np.uint64(32) == number]
            fragment = there.get(files[number])
            if fragment is None:
                moved.append(rows)
                continue
            offsets = rows & np.uint64(0xFFFFFFFF)
            if not live_mask(fragment)[offsets].all():
                return None
            found.append(offsets + np.uint64(fragment.fragment_id << 32))
    by_id = np.concatenate(moved)
    if len(by_id):
        ids = rows_at(old, by_id, ["id"])["id"]
        rows = lookup_rows(now, "id", ids, ["id"], int(now.count_rows()))
        if rows.num_rows != len(by_id):
            return None
        found.append(rows[ROW_ADDRESS].to_numpy().astype(np.uint64))
    return np.concatenate(found)


def added_fragments(
    old: LanceDataset, new: LanceDataset
) -> list[tuple[FragmentMetadata, pa.Array]]:
    """Return the fragments that only the new version has, ready to be staged, with their IDs."""
    with translate_errors("comparing versions"):
        before, after = (_fragments_by_files(handle) for handle in (old, new))
        # A fragment with number 0 gets a number in the version it is staged for.
        return [
            (replace(f.metadata, id=0), f.to_table(columns=["id"])["id"].combine_chunks())
            for files, f in after.items()
            if files not in before and not f.num_deletions
        ]


def rewritten_rows(old: LanceDataset, new: LanceDataset) -> int:
    """Return the number of rows replaced by rows in new files; reads only metadata."""
    with translate_errors("comparing versions"):
        before, after = (_fragments_by_files(handle) for handle in (old, new))
    gone = (f for files, f in before.items() if files not in after)
    added = (f for files, f in after.items() if files not in before)
    return min(sum(int(f.physical_rows) for f in fragments) for fragments in (gone, added))


def _fragments_by_files(handle: LanceDataset) -> dict[tuple[str, ...], Fragment]:
    # The property `path` creates a class on each access, which is slow.
    fragments = handle.get_fragments()
    return {tuple(file._path for file in f.metadata.files): f for f in fragments}


def _fragments_differ(one: Fragment | None, other: Fragment | None) -> bool:
    if one is None or other is None or one.physical_rows != other.physical_rows:
        return True  # within a group of commits, one may show fewer rows of the same file
    left, right = one.metadata.deletion_file, other.metadata.deletion_file
    if left is None or right is None:
        return left is not right
    return bool(left.asdict() != right.asdict())


def _is_same(one: Fragment, other: Fragment) -> bool:
    return one.fragment_id == other.fragment_id and not _fragments_differ(one, other)


def _live_in_one(one: Fragment | None, other: Fragment | None) -> tuple[RowAddresses, RowAddresses]:
    """Return the addresses of rows live in only one of two fragments with the same files."""
    left, right = (None if f is None else live_mask(f) for f in (one, other))
    if left is not None and right is not None:
        rows = max(len(left), len(right))
        left, right = (np.pad(mask, (0, rows - len(mask))) for mask in (left, right))
        left, right = left & ~right, right & ~left
    return _to_addresses(one, left), _to_addresses(other, right)


def _to_addresses(fragment: Fragment | None, rows: npt.NDArray[np.bool_] | None) -> RowAddresses:
    if fragment is None or rows is None:
        return _NO_ADDRESSES
    return np.flatnonzero(rows).astype(np.uint64) + np.uint64(fragment.fragment_id << 32)


def _with_ids(handle: LanceDataset, parts: Iterable[RowAddresses]) -> pa.Table:
    addresses = np.concatenate([_NO_ADDRESSES, *parts])
    ids = rows_at(handle, addresses, ["id"])["id"] if len(addresses) else pa.array([], pa.string())
    return pa.table({"id": ids, "_rowaddr": pa.array(addresses, pa.uint64())})


# --- incremental changes between versions ---------------------------------------------------------
#
# Rows are never changed in place: a version keeps the fragments of its predecessor, marks rows as
# deleted and adds fragments, so only added and deleted rows have to be read.


def fragment_files(handle: LanceDataset) -> list[str]:
    """Return the first file of each fragment; numbers do not identify it on branches."""
    with translate_errors("reading fragments"):
        return [str(fragment.metadata.files[0].path) for fragment in handle.get_fragments()]


@dataclass(frozen=True, slots=True)
class VersionFragments:
    """The handle of a version and the files of its fragments."""

    handle: LanceDataset
    files: Sequence[str]


@dataclass(frozen=True, slots=True)
class VersionGrowth:
    """The rows that a version added to and removed from an older one.

    Shared rows come first in the newer version, in the order of the older one.
    """

    old: VersionFragments
    new: VersionFragments
    removed: Positions
    """Positions of the removed rows in the older version, ascending."""
    shared: int
    """The number of shared rows; added rows come after them."""
    added_fragments: Sequence[Any]
    """The fragments with the added rows."""

    def added(self, columns: Sequence[str]) -> pa.Table:
        """Read the added rows."""
        with translate_errors("reading added rows"):
            if not self.added_fragments:
                return self.new.handle.schema.empty_table().select(list(columns))
            fragments = list(self.added_fragments)
            return self.new.handle.scanner(columns=list(columns), fragments=fragments).to_table()

    def lost(self, columns: Sequence[str]) -> pa.Table:
        """Read the removed rows."""
        if not len(self.removed):
            return self.old.handle.schema.empty_table().select(list(columns))
        addresses = RowAddressMap.of(self.old.handle).at(self.removed)
        return rows_at(self.old.handle, addresses, columns)

    def column(self, before: pa.Array, name: str) -> pa.Array:
        """Return a column of the newer version, given that of the older one."""
        kept = before
        if len(self.removed):
            mask = np.ones(len(before), np.bool_)
            mask[self.removed] = False
            kept = before.filter(pa.array(mask))
        if not self.added_fragments:
            return kept  # an empty table of blobs has another type than blobs that are read
        return pa.concat_arrays([kept, *self.added([name]).column(0).chunks])


def find_growth(old: VersionFragments, new: VersionFragments, limit: int) -> VersionGrowth | None:
    """Return the changes; None above `limit` rows or if shared fragments changed their order."""
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


def _live_row_count(fragment: Fragment) -> int:
    return int(fragment.physical_rows - fragment.num_deletions)


def _deleted_positions(old: Fragment, new: Fragment | None) -> Positions | None:
    """Return the live rows of a fragment that are deleted now; None if deleted rows reappear."""
    if new is None:
        return np.arange(_live_row_count(old))
    if old.physical_rows != new.physical_rows:
        return None
    if old.deletion_file() == new.deletion_file():
        return np.empty(0, np.int64)
    before, after = live_mask(old), live_mask(new)
    if (after & ~before).any():
        return None
    return np.flatnonzero(~after[before])
