"""This module is where loads on Spark come in, whatever form their rows have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from omnigraph.commit.manifest import Manifest
from omnigraph.pipeline.loading import Loading
from omnigraph.pipeline.model import Input, Outcome, SparkLoadOptions
from omnigraph.pipeline.parts import cut
from omnigraph.pipeline.reading import Results, stage_inputs, stage_lines, stage_sources
from omnigraph.pipeline.staging import Job
from omnigraph.write.intake import Intake
from omnigraph.write.load import LoadOptions, LoadResult
from omnigraph.write.request import Request
from omnigraph.write.rows import Spill


def load_frames(
    manifest: Manifest,
    request: Request,
    inputs: Sequence[Input],
    options: SparkLoadOptions,
    spark: SparkSession,
    batches: Sequence[str] = (),
) -> Outcome:
    """Load the rows of frames, and files of graph batches, as one commit.

    Raises:
        ValidationFailed: rows break rules and are not to be rejected, or too many are.
        SchemaMoved: the schema changed after the rows were staged.
    """
    load = Loading(manifest, request, options, spark)

    def stage(job: Job) -> Results:
        results, files = stage_inputs(job, inputs)
        if not batches:
            return results, files
        with Spill() as spill:
            intake = Intake(job.snapshot.schema, spill)
            sources = cut(list(batches), intake, strict=True, after=job.files)
        more, files = stage_sources(spark, job, sources)
        return [*results, *more], files

    return load.run(stage)


def load_lines(
    manifest: Manifest,
    request: Request,
    frame: DataFrame,
    options: SparkLoadOptions,
    spark: SparkSession,
) -> Outcome:
    """Load entities that a frame has as lines of a graph batch, as one commit."""
    return Loading(manifest, request, options, spark).run(lambda job: stage_lines(job, frame))


def load_sources(
    manifest: Manifest,
    request: Request,
    data: Any,  # noqa: ANN401 - what people gave
    options: LoadOptions,
    spark: SparkSession,
) -> LoadResult:
    """Load what the loader of one process takes, with the same result."""
    told = SparkLoadOptions(
        mode=options.mode, partial=options.partial, from_=options.from_, progress=options.progress
    )
    load = Loading(manifest, request, told, spark)

    def stage(job: Job) -> Results:
        with Spill() as spill:
            intake = Intake(job.snapshot.schema, spill, encoding=options.encoding)
            sources = cut(data, intake, strict=options.strict)
        return stage_sources(spark, job, sources)

    return load_result(load.run(stage), request, told)


def load_result(outcome: Outcome, request: Request, options: SparkLoadOptions) -> LoadResult:
    """Return what the loader of one process says of the same."""
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
    )


def _of_kind(kind: str, given: dict[str, int]) -> dict[str, int]:
    keys = sorted(key for key in given if key.startswith(f"{kind}:"))
    return {key.partition(":")[2]: given[key] for key in keys}
