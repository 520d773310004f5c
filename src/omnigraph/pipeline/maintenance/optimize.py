"""Run maintenance on executors: they rewrite fragments and build index segments.

The steps and the one commit are those of `maintain/optimize.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from omnigraph.commit.manifest import Manifest
from omnigraph.maintain.optimize import DatasetVersionRef, MaintenanceReport, optimize
from omnigraph.pipeline.sessions.executors import run_on_executors
from omnigraph.pipeline.sessions.session import session
from omnigraph.storage import Location
from omnigraph.storage.compaction import run_compaction
from omnigraph.storage.datasets import Datasets
from omnigraph.storage.index import IndexTask, build_segment
from omnigraph.write.request import WriteRequest

MAX_INDEX_SEGMENTS = 16
"""Pieces in which one index is built at most."""


def optimize_on_spark(
    manifest: Manifest, request: WriteRequest, *, spark: SparkSession | None = None
) -> MaintenanceReport:
    """Compact every type of a branch and complete its indexes, as one commit."""
    hands = SparkTaskRunner(spark or session(), manifest.location)
    return optimize(manifest, request, executor=hands)


@dataclass(frozen=True, slots=True)
class SparkTaskRunner:
    """Gives the work to executors, a task for each piece."""

    spark: SparkSession
    location: Location

    def rewrite(self, base: Any, place: DatasetVersionRef, tasks: Sequence[str]) -> list[str]:  # noqa: ANN401 - a Lance handle
        """Run tasks of a compaction and return what each gives."""
        return run_on_executors(self.spark, partial(_rewrite, self.location, place), tasks)

    def index(
        self,
        base: Any,  # noqa: ANN401
        place: DatasetVersionRef,
        tasks: Sequence[IndexTask],
    ) -> list[list[Any]]:
        """Build what each task asks for, a BTREE in several segments."""
        parts = [task.split(MAX_INDEX_SEGMENTS) for task in tasks]
        pieces = [(number, part) for number, split in enumerate(parts) for part in split]
        work = partial(_segment, self.location, place)
        built = run_on_executors(self.spark, work, [part for _, part in pieces])
        found: list[list[Any]] = [[] for _ in tasks]
        for (number, _), segment in zip(pieces, built, strict=True):
            found[number].append(segment)
        return found


def _open(location: Location, place: DatasetVersionRef) -> Any:  # noqa: ANN401 - a Lance handle
    return Datasets(location).open(place.path, place.physical)


def _rewrite(location: Location, place: DatasetVersionRef, task: str) -> str:
    return run_compaction(_open(location, place), task)


def _segment(location: Location, place: DatasetVersionRef, task: IndexTask) -> Any:  # noqa: ANN401 - Lance's
    return build_segment(_open(location, place), task)
