"""Entry points of loads on Spark, for every form of input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from omnigraph.catalog import AcceptedType
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.snapshot import apply_scope
from omnigraph.pipeline.load.model import SparkLoadOptions, SparkLoadResult, TypeFrame
from omnigraph.pipeline.load.removals import StagedRemoval
from omnigraph.pipeline.load.spark_load import SparkLoad
from omnigraph.pipeline.load.stage_tasks import (
    StagingResults,
    stage_inputs,
    stage_lines,
    stage_remote,
    stage_sources,
)
from omnigraph.pipeline.load.staging import StagingJob
from omnigraph.pipeline.sources.splits import split_inputs
from omnigraph.pipeline.sources.text_files import is_local
from omnigraph.query.entities import find_type
from omnigraph.write.change_set import ChangeSet, RowBatch, TypeChange, find_row_schema
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.load import LoadOptions, LoadResult, WriteMode, find_start_snapshot
from omnigraph.write.request import WriteRequest, check_changes_allowed
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
        local = [file for file in batches if is_local(file)]
        with SpillManager() as spill:
            intake = RowBuilder(job.snapshot.schema, spill)
            sources = split_inputs(local, intake, strict=True, after=job.files)
        more, files = stage_sources(spark, job, sources)
        remote = [file for file in batches if not is_local(file)]
        away, files = stage_remote(spark, replace(job, files=tuple(files)), remote)
        return [*results, *more, *away], files

    return load.run(stage)


def load_frame(
    manifest: Manifest,
    request: WriteRequest,
    type_name: str,
    frame: DataFrame,
    options: LoadOptions,
) -> LoadResult:
    """Load rows of one type, which the actor may change, as one commit."""
    source, _ = find_start_snapshot(manifest, request.branch, options.from_)
    shown = apply_scope(manifest, source, request.rights.named)
    found = find_type(shown, type_name)
    check_type_allowed(found, request, CommittedState(manifest, source), options.mode)
    spark_options = SparkLoadOptions(
        mode=options.mode, partial=options.partial, from_=options.from_
    )
    inputs = [TypeFrame(found.entity, frame)]
    outcome = load_frames(manifest, request, inputs, spark_options, frame.sparkSession)
    return load_result(outcome, request, spark_options)


def check_type_allowed(
    type_: AcceptedType, request: WriteRequest, committed: CommittedState, mode: WriteMode
) -> None:
    """Raise PolicyDenied if the actor may not load rows of a type."""
    shape = find_row_schema(committed.snapshot.schema, type_.kind, type_.name)
    any_row = RowBatch(pa.table([pa.nulls(1, f.type) for f in shape.schema], schema=shape.schema))
    change = TypeChange(shape, [any_row], replace=mode is WriteMode.OVERWRITE)
    check_changes_allowed(ChangeSet({shape.table_key: change}), request, committed)


def load_lines(
    manifest: Manifest,
    request: WriteRequest,
    frame: DataFrame,
    options: SparkLoadOptions,
    spark: SparkSession,
    removals: Sequence[StagedRemoval] = (),
) -> SparkLoadResult:
    """Load entities that a frame has as lines of a graph batch, and delete others, as one commit.

    `removals` are files with the ids of the deleted ones, which the caller removes.
    """
    load = SparkLoad(manifest, request, options, spark, removed=removals)
    return load.run(lambda job: stage_lines(job, frame))


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
