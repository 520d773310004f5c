"""This module builds indexes of a dataset, staged like everything else.

They are derived state: they change no answer, only what finding one costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.dataset import Index

from omnigraph.catalog import Metric
from omnigraph.storage.error_translation import translate_errors

MAX_SEGMENTS = 8
"""Segments of one index before it is built anew as a whole."""

VECTOR_ROWS = 100_000
"""Below this many vectors, looking at all of them is faster, and exact."""
VECTOR_PROBES = 48
"""Parts of a vector index that are looked into for one query."""


class IndexKind(StrEnum):
    """What an index is for: equality and ranges, words, or neighbours of a vector."""

    BTREE = "btree"
    TEXT = "text"
    VECTOR = "vector"


def index_name(column: str, kind: IndexKind, metric: Metric = Metric.COSINE) -> str:
    """Return the name of the index of a column; one of vectors is of one metric."""
    return f"{column}_{kind}" if metric is Metric.COSINE else f"{column}_{kind}_{metric}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTask:
    """A segment of an index to be built: of which column, over which fragments.

    `anew` tells that it takes the place of all segments there are.
    """

    column: str
    kind: IndexKind
    metric: Metric
    fragments: tuple[int, ...]
    anew: bool

    @property
    def name(self) -> str:
        """The name of the index."""
        return index_name(self.column, self.kind, self.metric)

    def split(self, count: int) -> list[IndexTask]:
        """Return tasks whose segments together are this one; only a BTREE can be put together."""
        parts = min(count, len(self.fragments)) if self.kind is IndexKind.BTREE else 1
        return [replace(self, fragments=self.fragments[at::parts]) for at in range(parts)]


def stage_btree_index(base: LanceDataset, column: str) -> LanceDataset | None:
    """Stage an index that finds rows by a column; None when all fragments have one."""
    task = index_task(base, column, IndexKind.BTREE)
    return None if task is None else add_index(base, task, build_segment(base, task))


def index_task(
    base: LanceDataset, column: str, kind: IndexKind, metric: Metric = Metric.COSINE
) -> IndexTask | None:
    """Return what is to be built for an index to cover all fragments; None when it does.

    One with many segments is built anew as a whole. Vectors are near each other by the metric.
    """
    name = index_name(column, kind, metric)
    with translate_errors(f"indexing {column}"):
        missing = uncovered_fragments(base, name)
        if not missing:
            return None
        anew = len(_segments(base, name)) >= MAX_SEGMENTS
        fragments = [f.fragment_id for f in base.get_fragments()] if anew else missing
    return IndexTask(column=column, kind=kind, metric=metric, fragments=tuple(fragments), anew=anew)


def build_segment(base: LanceDataset, task: IndexTask) -> Index:
    """Build a segment; nobody sees it before it is added."""
    with translate_errors(f"indexing {task.column}"):
        return _create_segment(base, task.column, task.kind, task.fragments, task.metric)


def merge_segments(base: LanceDataset, task: IndexTask, segments: Sequence[Index]) -> Index:
    """Return one segment of those that were built for a task, on the very base they were built on.

    Numbers of staged versions have no order, and Lance refuses what seems to be of a later one.
    """
    if len(segments) == 1:
        return segments[0]
    with translate_errors(f"indexing {task.column}"):
        return replace(base.merge_existing_index_segments(list(segments)), name=task.name)


def add_index(base: LanceDataset, task: IndexTask, made: Index) -> LanceDataset:
    """Stage an index with the segment that was built for a task."""
    with translate_errors(f"indexing {task.column}"):
        old = _segments(base, task.name) if task.anew else []
        for other in Metric if task.kind is IndexKind.VECTOR else ():
            if other != task.metric:
                old += _segments(base, index_name(task.column, task.kind, other))
        gone = [_removed(segment, made) for segment in old]
        operation = LanceOperation.CreateIndex([made], gone)
        return LanceDataset.commit(base, operation, read_version=base.version, detached=True)


def _create_segment(
    base: LanceDataset, column: str, kind: IndexKind, fragments: Sequence[int], metric: Metric
) -> Index:
    name = index_name(column, kind, metric)
    options: dict[str, Any] = {"fragment_ids": list(fragments), "replace": True}
    match kind:
        case IndexKind.BTREE:
            return base.create_index_uncommitted(column, "BTREE", name=name, **options)
        case IndexKind.TEXT:
            made = base.create_index_uncommitted(
                column, "INVERTED", name=name, with_position=True, **options
            )
            return replace(base.merge_existing_index_segments([made]), name=name)
        case IndexKind.VECTOR:
            rows = sum(
                int(f.count_rows()) for f in base.get_fragments() if f.fragment_id in fragments
            )
            return base.create_index_uncommitted(
                column,
                "IVF_FLAT",
                name=name,
                metric=str(metric),
                num_partitions=max(1, int(rows**0.5)),
                **options,
            )


def uncovered_fragments(base: LanceDataset, name: str) -> list[int]:
    """Return the fragments no segment of an index covers."""
    covered = {f for segment in _segments(base, name) for f in segment.fragment_ids}
    return [f.fragment_id for f in base.get_fragments() if f.fragment_id not in covered]


def coverage(base: LanceDataset, name: str) -> tuple[int, int]:
    """Return how many rows an index covers, and how many segments it has."""
    segments = _segments(base, name)
    covered = {f for segment in segments for f in segment.fragment_ids}
    fragments = (f for f in base.get_fragments() if f.fragment_id in covered)
    return sum(fragment.count_rows() for fragment in fragments), len(segments)


def _segments(base: LanceDataset, name: str) -> list[Any]:
    found = (index for index in base.describe_indices() if index.name == name)
    return [segment for index in found for segment in index.segments]


def _removed(segment: Any, successor: Index) -> Index:  # noqa: ANN401 - a segment of Lance
    """Return a segment in the form in which Lance is told to forget it: only its id matters."""
    return replace(successor, uuid=str(segment.uuid), fragment_ids=segment.fragment_ids)


def nearest_rows(
    handle: LanceDataset, column: str, metric: Metric, query: npt.NDArray[np.float32], count: int
) -> pa.Table:
    """Return `_rowaddr` and vector of rows whose vectors are near a query, found by an index.

    Most of the nearest are among them. Rows no index covers are all looked at.
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
