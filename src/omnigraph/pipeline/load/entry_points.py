"""Entry points of loads on Spark, for every form of input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from omnigraph.commit.manifest import Manifest
from omnigraph.pipeline.load.model import SparkLoadOptions, SparkLoadResult, TypeFrame
from omnigraph.pipeline.load.spark_load import SparkLoad
from omnigraph.pipeline.load.stage_tasks import (
    StagingResults,
    stage_inputs,
    stage_lines,
    stage_sources,
)
from omnigraph.pipeline.load.staging import StagingJob
from omnigraph.pipeline.sources.splits import split_inputs
from omnigraph.write.load import LoadOptions, LoadResult
from omnigraph.write.request import WriteRequest
from omnigraph.write.row_builder import RowBuilder
from omnigraph.write.spilling import SpillManager


def load_frames(
    manifest: Manifest,
    request: WriteRequest,
    inputs: Sequence[TypeFrame],
    options: SparkLoadOptions,
    spark: SparkSession,
    batches: Sequence[str] = (),
) -> SparkLoadResult:
    """Load the rows of frames, and files of graph batches, as one commit.

    Raises:
        ValidationFailed: rows break rules and are not to be rejected, or too many are.
        SchemaMoved: the schema changed after the rows were staged.
    """
    load = SparkLoad(manifest, request, options, spark, removals=inputs)

    def stage(job: StagingJob) -> StagingResults:
        results, files = stage_inputs(job, inputs)
        if not batches:
            return results, files
        with SpillManager() as spill:
            intake = RowBuilder(job.snapshot.schema, spill)
            sources = split_inputs(list(batches), intake, strict=True, after=job.files)
        more, files = stage_sources(spark, job, sources)
        return [*results, *more], files

    return load.run(stage)


def load_lines(
    manifest: Manifest,
    request: WriteRequest,
    frame: DataFrame,
    options: SparkLoadOptions,
    spark: SparkSession,
) -> SparkLoadResult:
    """Load entities that a frame has as lines of a graph batch, as one commit."""
    return SparkLoad(manifest, request, options, spark).run(lambda job: stage_lines(job, frame))


def load_sources(
    manifest: Manifest,
    request: WriteRequest,
    data: Any,  # noqa: ANN401 - input of the caller
    options: LoadOptions,
    spark: SparkSession,
) -> LoadResult:
    """Load any input of the loader of one process, with the same result."""
    spark_options = SparkLoadOptions(
        mode=options.mode, partial=options.partial, from_=options.from_, progress=options.progress
    )
    load = SparkLoad(manifest, request, spark_options, spark)

    def stage(job: StagingJob) -> StagingResults:
        with SpillManager() as spill:
            intake = RowBuilder(job.snapshot.schema, spill, encoding=options.encoding)
            sources = split_inputs(data, intake, strict=options.strict)
        return stage_sources(spark, job, sources)

    return load_result(load.run(stage), request, spark_options)


def load_result(
    outcome: SparkLoadResult, request: WriteRequest, options: SparkLoadOptions
) -> LoadResult:
    """Return the result in the form of the loader of one process."""
    given = {key: type_.given for key, type_ in outcome.types.items()}
    return LoadResult(
        mode=options.mode,
        branch=request.branch,
        commit=outcome.commit,
        base_branch=options.from_,
        branch_created=outcome.branch_created,
        nodes=_of_kind("node", given),
        edges=_of_kind("edge", given),
        actor=request.actor,
        notes=tuple(outcome.notes),
    )


def _of_kind(kind: str, given: dict[str, int]) -> dict[str, int]:
    keys = sorted(key for key in given if key.startswith(f"{kind}:"))
    return {key.partition(":")[2]: given[key] for key in keys}
