"""This module replaces one row of a dataset and adds others in a single compare-and-swap.

The row is the sentinel every writer replaces, in the same commit that adds the new rows. Every such
commit also names the first fragment of the dataset, the anchor, as changed: of two from one base
Lance refuses the second, because both touch it. No lost update, no lock, and a cost that does not
grow with the dataset. The sentinel's own fragment would not do: once cleanup has removed the
version that replaced it, a writer that slept meanwhile would not be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset, LanceFragment, LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph.errors import GraphCorrupt
from omnigraph.storage.faults import translated
from omnigraph.storage.literals import sql_text
from omnigraph.storage.stage import new_fragments, remove_addresses

ANCHOR = 0
"""The fragment a dataset was created with; it is never merged into another."""


@dataclass(frozen=True, slots=True)
class Found:
    """A row and its address in one version of a dataset."""

    address: int
    row: dict[str, Any]


def read_sentinel(
    handle: LanceDataset, column: str, key: str, columns: list[str] | None = None
) -> Found:
    """Return the sentinel row: the first of the newest fragment, where each swap puts it."""
    with translated("reading the manifest head"):
        fragments = handle.get_fragments()
        newest = fragments[-1]
        if not newest.num_deletions:
            row = newest.take([0], columns=columns).to_pylist()[0]
            if row[column] == key:
                return Found(newest.fragment_id << 32, row)
        # Something else put it elsewhere: look for it.
        condition = f"{column} = {sql_text(key)}"
        for fragment in reversed(fragments):
            found = fragment.to_table(columns=columns, filter=condition, with_row_address=True)
            if found.num_rows == 1:
                return _found(found.to_pylist()[0])
            if found.num_rows > 1:
                break
    raise GraphCorrupt(f"the manifest does not hold exactly one `{key}` row")


def read_oldest(handle: LanceDataset, condition: str) -> Found | None:
    """Return the first row that satisfies a condition, looking no further than needed."""
    with translated("reading the manifest"):
        for fragment in handle.get_fragments():
            found = fragment.to_table(filter=condition, with_row_address=True)
            if found.num_rows:
                return _found(found.to_pylist()[0])
    return None


def read_rows(
    handle: LanceDataset, condition: str, fragments: Sequence[LanceFragment] | None = None
) -> list[Found]:
    """Return the rows that satisfy a condition, with their addresses, out of some fragments."""
    if fragments is not None and not fragments:
        return []
    with translated("reading the manifest"):
        scanner = handle.scanner(filter=condition, with_row_address=True, fragments=fragments)
        rows = scanner.to_table().to_pylist()
    return [_found(row) for row in rows]


def _found(row: dict[str, Any]) -> Found:
    return Found(row.pop("_rowaddr"), row)


def swap(
    handle: LanceDataset,
    sentinel: Found,
    rows: pa.Table,
    stale: Sequence[Found],
    observe: Callable[[str], None],
    merge: Sequence[LanceFragment] = (),
) -> LanceDataset:
    """Replace the sentinel and stale rows by new rows, and merge fragments, all or nothing.

    Raises:
        Contention: another writer was first; surely nothing happened.
    """
    with translated("publishing"):
        gone = [found.address for found in (sentinel, *stale)]
        merged = [fragment.fragment_id for fragment in merge]
        removed, updated = remove_addresses(handle, [a for a in gone if a >> 32 not in merged])
        observe("swap: old rows marked")
        new = [*_merged(handle, merge, gone), *new_fragments(rows, handle)]
        observe("swap: new rows written")
        return _commit(handle, [*removed, *merged], updated, new)


def _merged(
    handle: LanceDataset, merge: Sequence[LanceFragment], gone: Sequence[int]
) -> list[FragmentMetadata]:
    """Write what stays of fragments that go."""
    if not merge:
        return []
    table = pa.concat_tables([fragment.to_table(with_row_address=True) for fragment in merge])
    is_gone = pc.is_in(table["_rowaddr"], pa.array(gone, pa.uint64()))
    return new_fragments(table.filter(pc.invert(is_gone)).drop_columns("_rowaddr"), handle)


def merge_fragments(
    handle: LanceDataset,
    fragment_ids: list[int],
    tables: Sequence[pa.Table],
    moved: Sequence[int] = (),
) -> LanceDataset:
    """Replace fragments, the anchor not among them, by one for each table; none may be empty.

    The last table begins with the sentinel. `moved` are addresses of rows in other fragments that
    stand in a table now.
    """
    with translated("compacting"):
        removed, updated = remove_addresses(handle, moved)
        new = [fragment for table in tables for fragment in new_fragments(table, handle)]
        return _commit(handle, [*fragment_ids, *removed], updated, new)


def next_fragment(handle: LanceDataset) -> int:
    """Return the number the first fragment of the next commit gets.

    Lance goes on from the greatest there ever was, which is the sentinel's: it is always there.
    """
    return int(handle.get_fragments()[-1].fragment_id) + 1


def _commit(
    handle: LanceDataset,
    removed: list[int],
    updated: list[FragmentMetadata],
    new: list[FragmentMetadata],
) -> LanceDataset:
    assert ANCHOR not in removed, "the anchor holds rows that are never removed"
    if all(fragment.id != ANCHOR for fragment in updated):
        anchor = handle.get_fragment(ANCHOR)
        assert anchor is not None, "a dataset keeps the fragment it was created with"
        updated = [*updated, anchor.metadata]
    operation = LanceOperation.Update(
        removed_fragment_ids=removed,
        updated_fragments=updated,
        new_fragments=new,
        update_mode="rewrite_rows",
    )
    made = LanceDataset.commit(handle, operation, read_version=handle.version, max_retries=0)
    if made.version != handle.version + 1:
        # Only a writer that leaves the anchor alone could have been rebased over.
        raise GraphCorrupt("something other than omnigraph writes this manifest")
    return made
