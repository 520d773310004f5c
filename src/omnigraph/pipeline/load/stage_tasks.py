"""Stage inputs on workers: parts of files, and partitions of data frames."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkContext, TaskContext
from pyspark.sql import DataFrame, SparkSession

from omnigraph.catalog import TypeKind
from omnigraph.catalog.model import resolve_endpoint_columns
from omnigraph.errors import NotFound
from omnigraph.pipeline.load.model import FILE, ROW, TypeFrame
from omnigraph.pipeline.load.staging import StagingJob, stage_part, stage_rows
from omnigraph.pipeline.sessions.spark_errors import ignore_lost_session
from omnigraph.pipeline.sessions.tasks import map_tasks
from omnigraph.pipeline.sources.guards import FAULT_COLUMN
from omnigraph.pipeline.sources.splits import InputSplit, InputSplits, count_lines, number_lines
from omnigraph.write.change_set import RowSchema, file_position_base, find_row_schema
from omnigraph.write.inputs.byte_streams import lines_as_file
from omnigraph.write.inputs.ndjson_reader import read_ndjson
from omnigraph.write.inputs.table_reader import InputTable, read_table
from omnigraph.write.progress import ProgressMeter
from omnigraph.write.rejected_rows import to_record
from omnigraph.write.row_builder import RowBuilder
from omnigraph.write.violations import ViolationRule

StagingResults: TypeAlias = tuple[list[dict[str, Any]], tuple[tuple[str, str], ...]]
"""What workers staged, in the order of the input, and the names of all inputs."""

_METADATA_COLUMNS = (FILE, ROW, FAULT_COLUMN)
"""The columns of a frame that are not cells."""
LINE_COLUMN = "line"
"""The column of a frame of lines."""
_RESULT = "number long, result string"
_UNKNOWN_POSITION = 1 << 22
"""Positions from this file number on belong to rows without a known position."""
_PARTITIONS = 1 << 14
"""The largest number of partitions of one frame."""


def start_workers(spark: SparkSession) -> None:
    """Start the Python workers of this machine in the background, with the imports of staging.

    That takes seconds, in which the driver opens the sources.
    """
    context = SparkContext._active_spark_context
    if context is None or not str(context.master).startswith("local"):
        return
    cores = context.defaultParallelism

    def start() -> None:
        with ignore_lost_session():
            spark.range(0, cores, 1, cores).mapInArrow(_same_rows, "id long").collect()

    threading.Thread(target=start, name="omnigraph-workers", daemon=True).start()


def _same_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return rows unchanged; workers import this module for it."""
    return batches


def stage_sources(spark: SparkSession, job: StagingJob, sources: InputSplits) -> StagingResults:
    """Stage files on workers, and here what only this process can read."""
    results: dict[tuple[int, int], dict[str, Any]] = {}
    names = list(sources.files)
    for number, read in sources.here:
        made = stage_rows(job, read, sources.files[:number], f"here-{number}")
        results[number, 0] = made
        opened = [(name, unit) for name, unit in made.get("files", [])]
        names[number : number + len(opened)] = opened
    parts = _with_lines(spark, sources.parts)
    files = sources.files

    def stage(number: int, part: InputSplit) -> dict[str, Any]:
        name = f"file-{number}"
        return stage_part(
            job,
            name,
            (part.number, part.start),
            lambda: stage_rows(job, part.read, files[: part.number], name),
        )

    for number, result in _on_each(spark, parts, stage):
        results[parts[number].number, number] = result
    return [results[key] for key in sorted(results)], tuple(names)


def stage_remote(spark: SparkSession, job: StagingJob, paths: Sequence[str]) -> StagingResults:
    """Stage graph batches at addresses that only Spark can read, each as a whole."""
    if not paths:
        return [], job.files
    files = (*job.files, *((path, "line") for path in paths))
    numbers = {path: number for number, path in enumerate(paths, len(job.files))}

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path, content in zip(batch["path"], batch["content"], strict=True):
                source = io.BytesIO(content.as_py())
                source.name = path.as_py()

                def read(
                    intake: RowBuilder, meter: ProgressMeter, source: io.BytesIO = source
                ) -> None:
                    read_ndjson(source, intake, meter)

                number = numbers[source.name]
                yield _result(number, stage_rows(job, read, files[:number], f"remote-{number}"))

    contents = spark.read.format("binaryFile").load(list(paths)).select("path", "content")
    return [result for _, result in _collected(contents.mapInArrow(run, _RESULT))], files


def _with_lines(spark: SparkSession, parts: Sequence[InputSplit]) -> Sequence[InputSplit]:
    """Return parts that know their line numbers; lines are counted only if some file was cut."""
    cut = [part for part in parts if part.table_key is None and part.stop is not None]
    if not cut:
        return parts
    counts = dict(_on_each(spark, cut, lambda _, part: {"lines": count_lines(part)}))
    lines = [counts[number]["lines"] for number in range(len(cut))]
    known = dict(zip(cut, number_lines(cut, lines), strict=True))
    return [known.get(part, part) for part in parts]


def _on_each(
    spark: SparkSession,
    parts: Sequence[InputSplit],
    work: Callable[[int, InputSplit], dict[str, Any]],
) -> list[tuple[int, dict[str, Any]]]:
    """Have workers do something for each part, with its number."""

    def run(task: tuple[int, InputSplit]) -> Iterator[pa.RecordBatch]:
        yield _result(task[0], work(*task))

    return _collected(map_tasks(spark, list(enumerate(parts)), run, _RESULT)) if parts else []


def _result(number: int, result: Mapping[str, Any]) -> pa.RecordBatch:
    return pa.record_batch({"number": [number], "result": [json.dumps(result)]})


def _collected(frame: DataFrame) -> list[tuple[int, dict[str, Any]]]:
    found = [(row["number"], json.loads(row["result"])) for row in frame.collect()]
    return sorted(found, key=lambda pair: pair[0])


# --- frames ------------------------------------------------------------------------------------


def stage_inputs(job: StagingJob, inputs: Sequence[TypeFrame]) -> StagingResults:
    """Stage the rows of frames on workers, of all types in one job."""
    stagers = [
        FrameStager(
            job if given.stable else replace(job, signature=None),
            find_shape(job, given.table_key),
            tuple(given.frame.columns),
            given.text,
            number,
        )
        for number, given in enumerate(inputs)
    ]
    results = [stager.no_rows() for stager in stagers]
    staged = [
        given.frame.mapInArrow(stager.run, _RESULT)
        for given, stager in zip(inputs, stagers, strict=True)
    ]
    if staged:
        results += [result for _, result in _collected(reduce(DataFrame.unionAll, staged))]
    return results, job.files


def find_shape(job: StagingJob, table_key: str) -> RowSchema:
    """Return the type that the rows of a job are of."""
    kind, _, name = table_key.partition(":")
    schema = job.snapshot.schema
    if kind not in (TypeKind.NODE, TypeKind.EDGE) or schema.find(TypeKind(kind), name) is None:
        raise NotFound(f"unknown type `{table_key}`", code="unknown_type", type=table_key)
    return find_row_schema(schema, TypeKind(kind), name)


def _reader(shape: RowSchema, table: InputTable) -> Callable[[RowBuilder, ProgressMeter], None]:
    def read(intake: RowBuilder, meter: ProgressMeter) -> None:
        read_table(table, shape.name, shape, intake, meter)

    return read


@dataclass(frozen=True)
class FrameStager:
    """Stages partitions of a frame of one type; it is sent to workers.

    `number` is that of the frame among those of the job.
    """

    job: StagingJob
    shape: RowSchema
    columns: tuple[str, ...]
    is_text: bool = False
    number: int = 0

    @property
    def _names(self) -> list[str]:
        return [name for name in self.columns if name not in _METADATA_COLUMNS]

    def no_rows(self) -> dict[str, Any]:
        """Return the result of a frame without a partition: its columns may be invalid."""
        table = InputTable(self._names, [], self.is_text)
        return stage_rows(self.job, _reader(self.shape, table), self.job.files)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage a partition and yield its result."""
        partition, result = self.stage(batches)
        yield _result(self.number * _PARTITIONS + partition, result)

    def stage(self, batches: Iterable[pa.RecordBatch]) -> tuple[int, dict[str, Any]]:
        """Stage a partition; return its number and its result."""
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        places = _PositionQueue(_UNKNOWN_POSITION + self.number * _PARTITIONS + partition)
        batches = iter(batches)
        head = next(batches, None)
        first = _first_position(head)
        batches = chain(() if head is None else (head,), batches)
        rows = (places.record(batch).select(self._names) for batch in batches)
        table = InputTable(self._names, rows, self.is_text, positions=places.take)

        def read(intake: RowBuilder, meter: ProgressMeter) -> None:
            shape = self.shape
            _reader(shape, table)(intake, meter)
            intake.count_skipped(shape, len(places.faulty))
            for at, fault, cells in places.faulty:
                record = to_record(shape, _by_target(cells, shape), text=self.is_text)
                intake.problem(
                    ViolationRule.VALUE, shape=shape, at=at, record=record, **_facts(fault, shape)
                )

        part = f"frame-{self.number}-{partition}"
        job = self.job if first is not None else replace(self.job, signature=None)
        return partition, stage_part(
            job, part, first, lambda: stage_rows(job, read, job.files, part)
        )


def _first_position(batch: pa.RecordBatch | None) -> tuple[int, int] | None:
    """Return the file and the number of the first row, if they are known."""
    if batch is None or not batch.num_rows or not {FILE, ROW} <= set(batch.schema.names):
        return None
    file, row = batch[FILE][0].as_py(), batch[ROW][0].as_py()
    return None if file is None or row is None else (file, row)


def _by_target(cells: Mapping[str, Any], shape: RowSchema) -> dict[str, Any]:
    ends = resolve_endpoint_columns(cells, shape.properties) if shape.kind is TypeKind.EDGE else {}
    return {
        ends.get(name, name): cell for name, cell in cells.items() if name not in _METADATA_COLUMNS
    }


def _facts(fault: str, shape: RowSchema) -> dict[str, Any]:
    found = json.loads(fault)
    is_known = found["property"] in shape.properties
    return {**found, "property": found["property"] if is_known else None}


def stage_lines(job: StagingJob, frame: DataFrame) -> StagingResults:
    """Stage entities that a frame has as lines of a graph batch."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        texts = (text for batch in batches for text in batch[LINE_COLUMN].to_pylist())

        def read(intake: RowBuilder, meter: ProgressMeter) -> None:
            read_ndjson(lines_as_file(texts), intake, meter)

        yield _result(partition, stage_rows(job, read, [("", "line")] * partition))

    found = _collected(frame.mapInArrow(run, _RESULT))
    files = [("", "line")] * (1 + max((number for number, _ in found), default=0))
    return [result for _, result in found], tuple(files)


class _PositionQueue:
    """Passes the positions of batches to the reader of their rows, in the same order."""

    def __init__(self, nowhere: int) -> None:
        self._nowhere = file_position_base(nowhere)
        self._waiting: list[pa.Array] = []
        self._rows = 0
        self.faulty: list[tuple[int, str, dict[str, Any]]] = []
        """Rows for which an expression fails: where they are, why, and their cells."""

    def record(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Record the positions of a batch; return its rows without the faulty ones."""
        start = self._nowhere + self._rows
        at = pa.array(np.arange(start, start + batch.num_rows, dtype=np.int64))
        self._rows += batch.num_rows
        if ROW in batch.schema.names:
            files = pc.cast(batch[FILE], pa.int64()) if FILE in batch.schema.names else 0
            known = pc.add(
                pc.multiply(files, file_position_base(1)), pc.cast(batch[ROW], pa.int64())
            )
            at = pc.coalesce(known, at)
        if FAULT_COLUMN in batch.schema.names and batch[FAULT_COLUMN].null_count < batch.num_rows:
            is_sound = batch[FAULT_COLUMN].is_null()
            there, faults = at.filter(pc.invert(is_sound)), batch.filter(pc.invert(is_sound))
            for place, row in zip(there.to_pylist(), faults.to_pylist(), strict=True):
                self.faulty.append((place, row[FAULT_COLUMN], row))
            batch, at = batch.filter(is_sound), at.filter(is_sound)
        self._waiting.append(at)
        return batch

    def take(self, batch: pa.RecordBatch, before: int) -> pa.Array:
        """Return the positions of the rows of a batch."""
        del before
        found = []
        wanted = batch.num_rows
        while wanted:
            at = self._waiting[0]
            found.append(at.slice(0, wanted))
            wanted -= len(found[-1])
            rest = at.slice(len(found[-1]))
            self._waiting[:1] = [rest] if len(rest) else []
        return pa.concat_arrays(found) if found else pa.array([], pa.int64())
