"""Verify a graph on executors: they read every id of every version.

The checks and the report are those of `maintain/verify.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import DatasetEntry
from omnigraph.errors import OmniError
from omnigraph.maintain.recorded_checksums import RecordedChecksums
from omnigraph.maintain.verify import (
    StoredDatasetFiles,
    VerifyReport,
    row_count_problem,
    unreadable_problem,
    verify,
)
from omnigraph.pipeline.sessions.executors import run_on_executors
from omnigraph.pipeline.sessions.session import session
from omnigraph.storage import Location
from omnigraph.storage.datasets import Datasets
from omnigraph.storage.layout import referenced_files, version_file
from omnigraph.storage.scan import read_fragment_ids

_SCHEMA = "version int, id string, fault string"


def verify_on_spark(
    manifest: Manifest,
    *,
    spark: SparkSession | None = None,
    report: VerifyReport | None = None,
) -> VerifyReport:
    """Check every branch, every commit and every dataset version a head or tag refers to.

    What is found is added to `report`.
    """
    return verify(manifest, _SparkVersionChecker(spark or session(), manifest), report)


@dataclass(frozen=True, slots=True)
class _FragmentTask:
    """A fragment of one of the versions that are looked at."""

    version: int
    path: str
    physical: int
    fragment: int


@dataclass(frozen=True, slots=True)
class _SparkVersionChecker:
    """Looks at dataset versions on executors: first for files, then at all ids at once."""

    spark: SparkSession
    manifest: Manifest

    def __call__(self, versions: Sequence[tuple[str, DatasetEntry]]) -> list[str | None]:
        sums = RecordedChecksums(self.manifest)
        places = [(path, entry.physical) for path, entry in versions]
        # Lance may allocate any amount of memory for a damaged file.
        problems = [sums.compare(path, [version_file(physical)]) for path, physical in places]
        whole = [number for number, problem in enumerate(problems) if problem is None]
        opening = partial(_open, self.manifest.location)
        opened = run_on_executors(self.spark, opening, [places[number] for number in whole])
        parts: list[_FragmentTask] = []
        for number, (problem, files, fragments) in zip(whole, opened, strict=True):
            path, physical = places[number]
            problems[number] = problem or sums.compare(path, files, small=True)
            if problems[number] is None:
                parts += [_FragmentTask(number, path, physical, fragment) for fragment in fragments]
        counted = self._counted(parts)
        return [
            problem
            or self._miscounted(counted.get(number, (0, 0, None)), entry.rows + entry.excluded)
            for number, (problem, (_, entry)) in enumerate(zip(problems, versions, strict=True))
        ]

    @staticmethod
    def _miscounted(counted: tuple[int, int, str | None], rows: int) -> str | None:
        found, ids, fault = counted
        return (
            unreadable_problem(fault) if fault is not None else row_count_problem(rows, found, ids)
        )

    def _counted(self, parts: Sequence[_FragmentTask]) -> dict[int, tuple[int, int, str | None]]:
        """Return rows, different ids and what went wrong, by the number of a version."""
        if not parts:
            return {}
        location = self.manifest.location

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from _ids(location, parts[number])

        rows = self.spark.range(0, len(parts), 1, len(parts)).mapInArrow(read, _SCHEMA)
        counts = rows.groupBy("version").agg(
            F.count("id").alias("rows"),
            F.count_distinct("id").alias("ids"),
            F.min("fault").alias("fault"),
        )
        return {r["version"]: (r["rows"], r["ids"], r["fault"]) for r in counts.collect()}


def _open(
    location: Location, place: tuple[str, int]
) -> tuple[str | None, Sequence[str], Sequence[int]]:
    """Return what is wrong with the files of a version, or its files and fragments."""
    datasets, (path, physical) = Datasets(location), place
    try:
        handle = datasets.open(path, physical)
        files = referenced_files(handle)
        missing = StoredDatasetFiles(datasets.objects).missing(path, files)
    except OmniError as error:
        return unreadable_problem(error.message), [], []
    if missing is not None:
        return missing, [], []
    return None, sorted(files), [int(fragment.fragment_id) for fragment in handle.get_fragments()]


def _ids(location: Location, part: _FragmentTask) -> Iterator[pa.RecordBatch]:
    names = ["version", "id", "fault"]
    try:
        handle = Datasets(location).open(part.path, part.physical)
        for ids in read_fragment_ids(handle, part.fragment):
            versions = pa.repeat(pa.scalar(part.version, pa.int32()), len(ids))
            columns = [versions, ids, pa.nulls(len(ids), pa.string())]
            yield pa.RecordBatch.from_arrays(columns, names=names)
    except OmniError as error:
        columns = [pa.array([v], t) for v, t in _fault(part.version, error.message)]
        yield pa.RecordBatch.from_arrays(columns, names=names)


def _fault(version: int, message: str) -> list[tuple[object, pa.DataType]]:
    return [(version, pa.int32()), (None, pa.string()), (message, pa.string())]
