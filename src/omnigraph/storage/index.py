"""Build indexes of a dataset, as staged versions.

Indexes are derived state: they do not change results, only their cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.dataset import Index

from omnigraph.catalog import Metric
from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.staged_writes import stage_operation

MAX_SEGMENTS = 8
"""Number of segments of an index from which it is rebuilt."""

VECTOR_ROWS = 100_000
"""Below this number of vectors an exact scan is faster than an index."""
VECTOR_PROBES = 48
"""Partitions of a vector index that one query reads."""


class IndexKind(StrEnum):
    """The kind of an index: equality and ranges, or vector search."""

    BTREE = "btree"
    VECTOR = "vector"


def index_name(column: str, kind: IndexKind, metric: Metric = Metric.COSINE) -> str:
    """Return the name of the index of a column; vector indexes have one name per metric."""
    return f"{column}_{kind}" if metric is Metric.COSINE else f"{column}_{kind}_{metric}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTask:
    """An index segment to build over some fragments of a column.

    `rebuild` means that it replaces all existing segments.
    """

    column: str
    kind: IndexKind
    metric: Metric
    fragments: tuple[int, ...]
    rebuild: bool

    @property
    def name(self) -> str:
        """The name of the index."""
        return index_name(self.column, self.kind, self.metric)

    def split(self, count: int) -> list[IndexTask]:
        """Split the task into tasks whose segments can be merged; only a BTREE can be split."""
        parts = min(count, len(self.fragments)) if self.kind is IndexKind.BTREE else 1
        return [replace(self, fragments=self.fragments[at::parts]) for at in range(parts)]


def index_task(
    base: LanceDataset, column: str, kind: IndexKind, metric: Metric = Metric.COSINE
) -> IndexTask | None:
    """Return the task that makes an index cover all fragments; None if it does.

    An index with many segments is rebuilt. `metric` is the distance of vector indexes.
    """
    name = index_name(column, kind, metric)
    with translate_errors(f"indexing {column}"):
        missing = uncovered_fragments(base, name)
        if not missing:
            return None
        rebuild = len(_segments(base, name)) >= MAX_SEGMENTS
        fragments = [f.fragment_id for f in base.get_fragments()] if rebuild else missing
    return IndexTask(
        column=column, kind=kind, metric=metric, fragments=tuple(fragments), rebuild=rebuild
    )


def build_segment(base: LanceDataset, task: IndexTask) -> Index:
    """Build a segment that no version refers to yet."""
    options: dict[str, Any] = {"fragment_ids": list(task.fragments), "replace": True}
    create: Any = partial(base.create_index_uncommitted, task.column, name=task.name, **options)
    with translate_errors(f"indexing {task.column}"):
        match task.kind:
            case IndexKind.BTREE:
                segment = create("BTREE")
            case IndexKind.VECTOR:
                chosen = (f for f in base.get_fragments() if f.fragment_id in task.fragments)
                partitions = max(1, int(sum(int(f.count_rows()) for f in chosen) ** 0.5))
                segment = create("IVF_FLAT", metric=str(task.metric), num_partitions=partitions)
    return cast(Index, segment)


def merge_segments(base: LanceDataset, task: IndexTask, segments: Sequence[Index]) -> Index:
    """Merge the segments that were built for a task; `base` is the version they were built on.

    Version numbers of staged versions have no order, and Lance rejects segments of a higher one.
    """
    if len(segments) == 1:
        return segments[0]
    with translate_errors(f"indexing {task.column}"):
        return replace(base.merge_existing_index_segments(list(segments)), name=task.name)


def add_index(base: LanceDataset, task: IndexTask, new: Index) -> LanceDataset:
    """Stage an index with the segment that was built for a task."""
    with translate_errors(f"indexing {task.column}"):
        old = _segments(base, task.name) if task.rebuild else []
        for other in Metric if task.kind is IndexKind.VECTOR else ():
            if other != task.metric:
                old += _segments(base, index_name(task.column, task.kind, other))
        removed = [_removed(segment, new) for segment in old]
        operation = LanceOperation.CreateIndex([new], removed)
        return stage_operation(base, operation)


def drop_text_indexes(base: LanceDataset) -> LanceDataset:
    """Stage the removal of full-text indexes, which older releases built and no query reads."""
    with translate_errors("dropping text indexes"):
        removed = [
            Index(
                uuid=str(segment.uuid),
                name=index.name,
                fields=list(index.fields),
                dataset_version=segment.dataset_version_at_last_update,
                fragment_ids=segment.fragment_ids,
                index_version=segment.index_version,
            )
            for index in base.describe_indices()
            if index.index_type == "Inverted"
            for segment in index.segments
        ]
        if not removed:
            return base
        return stage_operation(base, LanceOperation.CreateIndex([], removed))


def uncovered_fragments(base: LanceDataset, name: str) -> list[int]:
    """Return the fragments that no segment of an index covers."""
    covered = {f for segment in _segments(base, name) for f in segment.fragment_ids}
    return [f.fragment_id for f in base.get_fragments() if f.fragment_id not in covered]


def coverage(base: LanceDataset, name: str) -> tuple[int, int]:
    """Return the number of rows that an index covers, and of its segments."""
    segments = _segments(base, name)
    covered = {f for segment in segments for f in segment.fragment_ids}
    fragments = (f for f in base.get_fragments() if f.fragment_id in covered)
    return sum(fragment.count_rows() for fragment in fragments), len(segments)


def _segments(base: LanceDataset, name: str) -> list[Any]:
    indexes = (index for index in base.describe_indices() if index.name == name)
    return [segment for index in indexes for segment in index.segments]


def _removed(segment: Any, successor: Index) -> Index:  # noqa: ANN401 - a segment of Lance
    """Return a segment in the form that Lance expects for removal: only its ID matters."""
    return replace(successor, uuid=str(segment.uuid), fragment_ids=segment.fragment_ids)


def nearest_rows(
    handle: LanceDataset, column: str, metric: Metric, query: npt.NDArray[np.float32], count: int
) -> pa.Table:
    """Return `_rowaddr` and vector of approximately the nearest rows, found by an index.

    Rows that no index covers are all compared.
    """
    nearest = {
        "column": column,
        "q": query,
        "k": count,
        "metric": str(metric),
        "nprobes": VECTOR_PROBES,
    }
    with translate_errors(f"searching {column}"):
        columns = ["_rowaddr", "_distance", column]
        return handle.scanner(columns=columns, nearest=nearest).to_table().drop("_distance")
