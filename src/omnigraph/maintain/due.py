"""Decide which maintenance of a type is due, by numbers that its manifest holds.

The thresholds grow with a type: over time, the rows that maintenance rewrites are a small multiple
of the rows that were written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.catalog import AcceptedType, vector_metric
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import DatasetEntry
from omnigraph.dataset_view import StagedView
from omnigraph.maintain.indexes import required_indexes
from omnigraph.storage.compaction import FRAGMENT_ROWS

MIN_LOOSE_FRAGMENTS = 16
"""Fragments without an index from which on they are compacted, if that is worth it."""
MIN_LOOSE_SHARE = 0.1
"""Rows of the other loose fragments, as a share of the largest one, that are worth it."""
MAX_SMALL_FRAGMENTS = 128
"""Fragments below the target size from which on they are compacted in any case."""
MIN_DELETED_ROWS, MIN_DELETED_SHARE = 1_024, 0.2
"""Deleted rows from which on fragments are rewritten without them."""
MIN_UNINDEXED_ROWS, MIN_UNINDEXED_SHARE = 1_024, 0.05
"""Rows that an index does not cover from which on it is extended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeCounts:
    """Numbers of one type at one version.

    A fragment below the target size is small; a small one is loose if no index covers it.
    `unindexed` are the rows that the least complete required index does not cover.
    """

    rows: int = 0
    fragments: int = 0
    small: int = 0
    loose: int = 0
    loose_rows: int = 0
    largest_loose: int = 0
    deleted: int = 0
    unindexed: int = 0

    @property
    def compaction_due(self) -> bool:
        """Whether fragments should be compacted."""
        rest = self.loose_rows - self.largest_loose
        return (
            (self.loose >= MIN_LOOSE_FRAGMENTS and rest >= MIN_LOOSE_SHARE * self.largest_loose)
            or self.small >= MAX_SMALL_FRAGMENTS
            or self.deleted >= max(MIN_DELETED_ROWS, MIN_DELETED_SHARE * (self.rows + self.deleted))
        )

    @property
    def index_due(self) -> bool:
        """Whether indexes should be extended."""
        return self.unindexed >= max(MIN_UNINDEXED_ROWS, MIN_UNINDEXED_SHARE * self.rows)


def count_type(manifest: Manifest, type_: AcceptedType, entry: DatasetEntry) -> TypeCounts:
    """Return the numbers of a type; no row is read."""
    with manifest.reading(type_.entity, entry) as handle:
        fragments = handle.get_fragments()
        rows = {f.fragment_id: int(f.physical_rows - f.num_deletions) for f in fragments}
        missing = _uncovered(handle, type_, entry.rows)
        uncovered = set[int]().union(*missing)
        small = [f for f in fragments if f.physical_rows < FRAGMENT_ROWS]
        loose = [rows[f.fragment_id] for f in small if f.fragment_id in uncovered]
        return TypeCounts(
            rows=entry.rows,
            fragments=len(fragments),
            small=len(small),
            loose=len(loose),
            loose_rows=sum(loose),
            largest_loose=max(loose, default=0),
            deleted=sum(int(f.num_deletions) for f in fragments),
            unindexed=max((sum(rows[id_] for id_ in ids) for ids in missing), default=0),
        )


def _uncovered(handle: Any, type_: AcceptedType, rows: int) -> list[set[int]]:  # noqa: ANN401 - a Lance handle
    """Return for each required index the fragments that it does not cover."""
    view, definition = StagedView(type_, handle), type_.definition
    return [
        view.uncovered_fragments(column, kind, vector_metric(definition, column))
        for column, kind in required_indexes(type_, rows)
    ]
