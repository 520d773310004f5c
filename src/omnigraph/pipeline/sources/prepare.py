"""Prepare a pipeline: open its sources and map its rows, without loading anything.

Problems of the file and of its sources are all reported here, together.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.pipeline.config.resolve import check_types
from omnigraph.pipeline.config.spec import Pipeline, PipelineError, sources_below
from omnigraph.pipeline.runs.start_snapshot import find_start_snapshot
from omnigraph.pipeline.runs.watermarks import find_watermarks
from omnigraph.pipeline.sessions.session import session
from omnigraph.pipeline.sessions.spark_errors import quiet_spark
from omnigraph.pipeline.sources.extract import SourceFrame, SourceFrames, file_state
from omnigraph.pipeline.sources.guards import prepare_session
from omnigraph.pipeline.sources.increments import Increments, incremental_names
from omnigraph.pipeline.sources.mapping import MappedType, RowMapper


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPipeline:
    """A pipeline whose sources are open and whose rows are mapped."""

    pipeline: Pipeline
    spark: SparkSession
    sources: SourceFrames
    mapped: tuple[MappedType, ...]
    batches: tuple[str, ...] = ()
    """Files of graph batches, which are loaded as is."""

    @property
    def watermarks(self) -> dict[str, dict[str, Any]]:
        """How far incremental sources are read, for the commit of the run."""
        return self.sources.increments.recorded()

    @property
    def opened(self) -> list[SourceFrame]:
        """The sources that are read, in the order of the file."""
        found = (self.sources.opened(name) for name in self.pipeline.sources)
        return [source for source in found if source is not None]

    @property
    def broken(self) -> int:
        """The number of rows in files that could not be read."""
        return sum(source.broken for source in self.opened)


def prepare_pipeline(
    manifest: Manifest, pipeline: Pipeline, *, full_refresh: bool = False
) -> PreparedPipeline:
    """Return a pipeline that is ready; raise PipelineError with all problems.

    With `full_refresh`, incremental sources are read from the beginning.
    """
    snapshot, _ = find_start_snapshot(manifest, pipeline)
    check_types(pipeline, snapshot.schema.catalog)
    wanted = pipeline.spark
    spark = session(wanted.master, memory=wanted.memory, config=wanted.config)
    prepare_session(spark)
    marks = find_watermarks(manifest, snapshot, incremental_names(pipeline))
    increments = Increments(pipeline, spark, marks, full_refresh=full_refresh)
    sources = SourceFrames(pipeline, spark, increments)
    try:
        with quiet_spark():
            mapped = _map_types(pipeline, sources, snapshot)
        batches = tuple(sources.batches())
        _check_prepared(pipeline)
    except BaseException:
        sources.close()
        raise
    return PreparedPipeline(
        pipeline=pipeline, spark=spark, sources=sources, mapped=mapped, batches=batches
    )


def _check_prepared(pipeline: Pipeline) -> None:
    if pipeline.report.errors:
        raise PipelineError(pipeline.report.sorted())


def _map_types(
    pipeline: Pipeline, sources: SourceFrames, snapshot: Snapshot
) -> tuple[MappedType, ...]:
    found = []
    for spec in pipeline.types:
        source = sources.get(spec.source.value)
        if source is None:
            continue
        below = [sources.get(name) for name in sources_below(spec.source.value, pipeline.sources)]
        unreadable = sum(one.broken for one in below if one is not None)
        mapped = RowMapper(spec, source, snapshot.schema, pipeline.report).map(unreadable)
        if mapped is not None:
            found.append(mapped)
    return tuple(found)


_SPLIT_SETTINGS = ("maxPartitionBytes", "openCostInBytes", "minPartitionNum", "maxPartitionNum")
_RECORDED_NAMES = {
    "DedupeSpec": "Dedupe",
    "KeepRule": "Keep",
    "LocatedText": "Text",
    "PublishSpec": "Publish",
    "RejectLimit": "Limit",
    "TextSpan": "Span",
}
"""Class names in the digests of runs that release 0.1 recorded: such runs must still resume."""
_RENAMED = re.compile(rf"\b({'|'.join(_RECORDED_NAMES)})(?=\()")


def pipeline_digest(pipeline: Pipeline) -> str:
    """Return a digest of a pipeline file with its variables.

    The location of the file makes no difference.
    """
    fields = _RENAMED.sub(
        lambda name: _RECORDED_NAMES[name[0]], repr(replace(pipeline, folder=Path()))
    )
    said = f"{pipeline.report.source.text}\0{fields}"
    # Apart from the rest, because digests of earlier releases do not have these fields.
    if pipeline.vectors_from is not None:
        said += f"\0{pipeline.vectors_from}"
    for name, source in pipeline.sources.items():
        if source.encoding is not None:
            said += f"\0{name}\0{source.encoding.value}"
        if source.incremental is not None:
            said += f"\0{name}\0{source.incremental.cursor}"
    for type_ in pipeline.types:
        if type_.operation is not None or type_.delete_missing:
            said += f"\0{type_.table_key}\0{type_.operation}\0{type_.delete_missing}"
    return hashlib.sha256(said.encode()).hexdigest()


def run_key(ready: PreparedPipeline) -> str | None:
    """Return a key that is equal for two runs over the same files; None if that is unknown.

    A file that changes while it is read has another key in the next run.
    """
    pipeline = ready.pipeline
    kinds = {pipeline.sources[source.spec.name.value].kind for source in ready.opened}
    if kinds & {"jdbc", "table", "format"}:
        return None
    made = hashlib.sha256(pipeline_digest(pipeline).encode())
    states = [(name, ready.sources.states[name]) for name, _ in ready.sources.files]
    for name, state in [*states, *((name, file_state(name)) for name in ready.batches)]:
        if state is None:
            return None
        made.update(f"{name}\0{state}\0".encode())
    return made.hexdigest()


def split_signature(ready: PreparedPipeline) -> str | None:
    """Return a key that is equal if Spark splits the same files in the same way.

    None if that is unknown, also where the driver is in another process.
    """
    key = run_key(ready)
    try:
        cores = ready.spark.sparkContext.defaultParallelism
    except PySparkException:  # Spark Connect
        return None
    if key is None:
        return None
    # Without a default of ours, a setting that is not set equals one set to the default of Spark.
    sizes = [ready.spark.conf.get(f"spark.sql.files.{name}") for name in _SPLIT_SETTINGS]
    return " ".join([key, pyspark.__version__, str(cores), *map(str, sizes)])
