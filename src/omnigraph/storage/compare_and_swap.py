"""Add rows to a dataset and replace its head row in a single compare-and-swap.

Each swap writes a new head as the first row of the newest fragment. Heads in older fragments are
ignored and dropped when fragments are merged. Every swap also lists the first fragment of the
dataset, the anchor, as updated: of two swaps from one base Lance rejects the second, because both
update it. There are no lost updates and no locks, and the cost does not grow with the dataset. The
anchor is never removed, so a suspended writer is rejected even after cleanup has removed the
version that won.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from lance import LanceDataset, LanceFragment, LanceOperation
from lance.schema import LanceSchema

from omnigraph.errors import GraphCorrupt
from omnigraph.storage.checksums import check_file_checksums, rename_with_checksums
from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.layout import fragment_file_names
from omnigraph.storage.staged_writes import delete_addresses, write_new_fragments

ANCHOR_FRAGMENT = 0
"""The first fragment of a dataset; it is never merged into another."""

_FOREIGN_WRITER = "another program writes to this manifest; only omnigraph may write to it"


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """A row and its address in one version of a dataset."""

    address: int
    row: dict[str, Any]


def read_head_row(handle: LanceDataset, columns: list[str]) -> dict[str, Any] | None:
    """Return the first row of the newest fragment, where each swap writes the head."""
    with translate_errors("reading the manifest head"):
        newest = handle.get_fragments()[-1]
        check_file_checksums(handle.uri, [newest])
        if newest.num_deletions:
            return None  # not written by a swap
        return dict(newest.take([0], columns=columns).to_pylist()[0])


def read_oldest_row(handle: LanceDataset, condition: str) -> ManifestRow | None:
    """Return the first row that satisfies a condition, oldest fragments first."""
    with translate_errors("reading the manifest"):
        for fragment in handle.get_fragments():
            check_file_checksums(handle.uri, [fragment])
            rows = fragment.to_table(filter=condition, with_row_address=True)
            if rows.num_rows:
                return _to_manifest_row(rows.to_pylist()[0])
    return None


def read_rows(
    handle: LanceDataset,
    condition: str,
    fragments: Sequence[LanceFragment] | None = None,
    columns: list[str] | None = None,
) -> list[ManifestRow]:
    """Return the rows of some fragments that satisfy a condition, with their addresses."""
    if fragments is not None and not fragments:
        return []
    with translate_errors("reading the manifest"):
        check_file_checksums(handle.uri, handle.get_fragments() if fragments is None else fragments)
        scanner = handle.scanner(
            columns=columns, filter=condition, with_row_address=True, fragments=fragments
        )
        rows = scanner.to_table().to_pylist()
    return [_to_manifest_row(row) for row in rows]


def _to_manifest_row(row: dict[str, Any]) -> ManifestRow:
    return ManifestRow(row.pop("_rowaddr"), row)


def compare_and_swap(
    handle: LanceDataset,
    tables: Sequence[pa.Table],
    observe: Callable[[str], None],
    stale: Sequence[ManifestRow] = (),
    merged: Sequence[int] = (),
    sync: Callable[[list[str]], None] = lambda names: None,
) -> LanceDataset:
    """Atomically add a fragment for each table and remove stale rows and merged fragments.

    No table is empty, and the last starts with the new head. The anchor must not be merged, and
    stale rows must be in fragments that are not merged. `sync` is called with the new files before
    a version refers to them.

    Raises:
        Contention: another writer was first; nothing was changed.
    """
    with translate_errors("publishing"):
        removed, updated = delete_addresses(handle, [row.address for row in stale])
        assert ANCHOR_FRAGMENT not in (*removed, *merged), (
            "the anchor holds rows that are never removed"
        )
        if stale:
            observe("swap: old rows marked")
        new = [fragment for table in tables for fragment in write_new_fragments(table, handle)]
        new = rename_with_checksums(handle.uri, new)
        observe("swap: new rows written")
        sync(fragment_file_names([*new, *updated]))
        if all(fragment.id != ANCHOR_FRAGMENT for fragment in updated):
            anchor = handle.get_fragment(ANCHOR_FRAGMENT)
            if anchor is None:
                raise GraphCorrupt(_FOREIGN_WRITER)
            updated = [*updated, anchor.metadata]
        operation = LanceOperation.Update(
            removed_fragment_ids=[*removed, *merged],
            updated_fragments=updated,
            new_fragments=new,
            update_mode="rewrite_rows",
        )
        swapped = LanceDataset.commit(handle, operation, read_version=handle.version, max_retries=0)
    if swapped.version != handle.version + 1:
        # Lance rebased over a commit that does not update the anchor.
        raise GraphCorrupt(_FOREIGN_WRITER)
    return swapped


def add_columns_and_stamp(handle: LanceDataset, schema: pa.Schema) -> LanceDataset:
    """Give a dataset the columns and the metadata of a schema that has more columns at its end."""
    with translate_errors("upgrading the manifest"):
        fragments = [fragment.metadata for fragment in handle.get_fragments()]
        operation = LanceOperation.Merge(fragments, LanceSchema.from_pyarrow(schema))
        made = LanceDataset.commit(handle, operation, read_version=handle.version, max_retries=0)
    if made.version != handle.version + 1:
        raise GraphCorrupt(_FOREIGN_WRITER)
    return made


def next_fragment_id(handle: LanceDataset) -> int:
    """Return the number that the first fragment of the next commit gets.

    Lance continues from the greatest number ever used, which is that of the head's fragment.
    """
    return int(handle.get_fragments()[-1].fragment_id) + 1
