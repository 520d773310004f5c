"""This module loads on Spark: staged once, validated as staged, published as one commit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, Counts, Snapshot
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.commit.staged import StagedCommit, StagedDataset
from omnigraph.errors import (
    CleanupBegan,
    ExpectedVersionMismatch,
    PreconditionFailed,
    SchemaMoved,
)
from omnigraph.pipeline.attempt import Attempt
from omnigraph.pipeline.embedding import Filling, noted
from omnigraph.pipeline.faults import spark_faults
from omnigraph.pipeline.model import Input, OnViolation, Outcome, SparkLoadOptions, TypeOutcome
from omnigraph.pipeline.parts import cut
from omnigraph.pipeline.reading import Results, stage_inputs, stage_lines, stage_sources
from omnigraph.pipeline.runs import Run
from omnigraph.pipeline.staged import Staged, gather, staged_by
from omnigraph.pipeline.staging import EARLY, Job, clear_rejects
from omnigraph.pipeline.undertaking import Undertaking, abort_run, conclude, published_before
from omnigraph.write.apply import REPREPARE_BUDGET, only_upkeep, publish_patiently
from omnigraph.write.intake import Intake
from omnigraph.write.load import LoadOptions, LoadResult, Mode, on_branch, start
from omnigraph.write.progress import Progress
from omnigraph.write.request import Request
from omnigraph.write.rows import Spill

__all__ = [
    "Input",
    "OnViolation",
    "Outcome",
    "SparkLoadOptions",
    "TypeOutcome",
    "abort_run",
    "load_frames",
    "load_lines",
    "load_result",
    "load_sources",
]


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
    load = _Load(manifest, request, options, spark)

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
    return _Load(manifest, request, options, spark).run(lambda job: stage_lines(job, frame))


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
    load = _Load(manifest, request, told, spark)

    def stage(job: Job) -> Results:
        with Spill() as spill:
            sources = cut(data, Intake(job.snapshot.schema, spill), strict=options.strict)
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


@dataclass
class _Load:
    """One load: what it is told, and what it has measured."""

    manifest: Manifest
    request: Request
    options: SparkLoadOptions
    spark: SparkSession
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, stage: Callable[[Job], Results]) -> Outcome:
        """Stage, validate, publish."""
        source, exists = start(self.manifest, self.request.branch, self.options.from_)
        run = self.options.run
        before = None if run is None else published_before(self.manifest, source, run)
        if run is not None and before is not None:
            return Outcome(commit=before, repeated=True, run=conclude(self.manifest, run, before))
        if self.request.if_commit not in (None, source.commit_id):
            raise PreconditionFailed(self.request.if_commit, source.commit_id)
        with Undertaking(self.manifest, self.request, source, run) as work, spark_faults():
            job, staged = self._stage(source, work, stage)
            with on_branch(self.manifest, self.request, source, exists=exists):
                commit, attempt = self._publish(job, staged, work, stage)
            return self._outcome(commit, attempt, work.finished(commit), created=not exists)

    def _job(self, source: Snapshot, run: Run) -> Job:
        options = self.options
        rejects = None
        if options.on_violation is OnViolation.REJECT:
            rejects = options.rejects or self.manifest.location.child(f"{run.folder}/rejects")
        return Job(
            location=self.manifest.location,
            snapshot=source,
            mode=options.mode,
            partial=options.partial,
            folder=run.folder,
            rejects=rejects,
            files=options.files,
            external=self.request.external_blobs,
            embedder=self.request.embedder,
            embed=options.embed,
        )

    def _stage(
        self, source: Snapshot, work: Undertaking, stage: Callable[[Job], Results]
    ) -> tuple[Job, Staged]:
        """Stage the rows, unless that is finished."""
        job = self._job(source, work.run)
        known = work.run.stages.get("stage")
        if known is None:
            with self._timed("stage"):
                results, files = stage(job)
            work.note(gather([r for r in results if "error" not in r], files))
            gather(results, files)  # an error of a worker is no finished stage
            known = {"results": results, "files": files, "schema": job.snapshot.head.schema_hash}
            work.finish_stage("stage", known)
        staged = staged_by(work.run)
        assert staged is not None, "it was staged just now, or before"
        if known["schema"] != job.snapshot.head.schema_hash:
            raise SchemaMoved(known["schema"], job.snapshot.head.schema_hash)
        work.note(staged)
        self._tell("stage", sum(type_.given for type_ in staged.types.values()))
        if not staged.is_whole:
            # What was not read might be what other rows rely on.
            staged.read.check()
        return replace(job, files=tuple(staged.files)), staged

    def _publish(
        self, job: Job, staged: Staged, work: Undertaking, stage: Callable[[Job], Results]
    ) -> tuple[Commit, Attempt]:
        wanted, source = self.request.if_commit, job.snapshot
        for number in range(REPREPARE_BUDGET + 1):
            snapshot = head_snapshot(self.manifest, self.request.branch)
            if wanted is not None and snapshot.commit_id != wanted:
                raise PreconditionFailed(wanted, snapshot.commit_id)
            if snapshot.head.schema_hash != source.head.schema_hash:
                # The rows were made for the types of another schema.
                raise SchemaMoved(source.head.schema_hash, snapshot.head.schema_hash)
            if job.partial and _moved(staged, job.snapshot, snapshot):
                # What rows did not give was taken from entities that may have changed.
                work.forget_staged()
                clear_rejects(job, EARLY)
                job, staged = self._stage(snapshot, work, stage)
            attempt = Attempt(self.spark, self.manifest, job, snapshot, staged)
            ready = self._validated(attempt, snapshot, work)
            work.prepared(ready)
            try:
                with self._timed("publish"):
                    lineage = self.manifest.lineage(snapshot.native)
                    return publish_patiently(lineage, snapshot.branch, ready), attempt
            except (CleanupBegan, ExpectedVersionMismatch, SchemaMoved):
                again = self.options.mode is not Mode.OVERWRITE
                if number == REPREPARE_BUDGET or not (
                    again or only_upkeep(self.manifest, snapshot)
                ):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _validated(self, attempt: Attempt, snapshot: Snapshot, work: Undertaking) -> StagedCommit:
        """Return what to publish: rows that are right, with their vectors."""
        with ExitStack() as stack:
            with self._timed("validate"):
                rows = attempt.validated(self.options.max_rejects)
                examination = stack.enter_context(rows)
            fillings = attempt.fillings()
            if fillings:
                with self._timed("embed"):
                    self._embed(attempt, fillings, work)
            with self._timed("publish"):
                datasets = attempt.datasets(examination)
            return self._ready(snapshot, attempt, datasets, work)

    def _embed(
        self, attempt: Attempt, fillings: Mapping[str, Sequence[Filling]], work: Undertaking
    ) -> None:
        """Make the vectors that rows lack, and write down which files have them."""
        before = work.run.stages.get("embed", {"types": [], "told": []})
        types, told = list(before["types"]), list(before["told"])
        for key, some in fillings.items():
            made = []
            for filling in some:
                one = filling.run()
                facts = {
                    "made": {one.property: one.model} if one.files else {},
                    "filled": {one.property: one.made + one.kept},
                    "files": attempt.show_vectors(key, one),
                }
                # What fails later must find these files to remove them.
                attempt.staged.types[key].fill(facts)
                types.append((key, facts))
                made.append(one)
                self._tell("embed", one.made)
            told.append(noted(some[0].target, made))
        work.finish_stage("embed", {"types": types, "told": told})

    def _ready(
        self,
        snapshot: Snapshot,
        attempt: Attempt,
        datasets: Sequence[StagedDataset],
        work: Undertaking,
    ) -> StagedCommit:
        entries = {key: snapshot.entry(key) for key in sorted(attempt.consulted)}
        return StagedCommit(
            id=work.run.commit_id,
            operation=self.request.operation,
            datasets=tuple(datasets),
            read_schema=snapshot.head.schema_hash,
            reads={key: (entry.key, entry.physical) for key, entry in entries.items()},
            actor=self.request.actor,
            message=self.request.message,
            counts=attempt.counts,
            if_commit=self.request.if_commit,
            known_id=True,
        )

    def _outcome(self, commit: Commit, attempt: Attempt, run: Run, *, created: bool) -> Outcome:
        return Outcome(
            commit=commit,
            types=outcomes(attempt),
            seconds=self.seconds,
            embedded=run.stages.get("embed", {}).get("told", ()),
            rejects=attempt.job.rejects if any(attempt.rejected.values()) else None,
            branch_created=created,
            run=run,
        )

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        self._tell(stage, 0)
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.monotonic() - began

    def _tell(self, stage: str, rows: int) -> None:
        if self.options.progress is not None:
            self.options.progress(Progress(stage, rows, 0))


def _moved(staged: Staged, before: Snapshot, now: Snapshot) -> bool:
    """Tell whether somebody changed a type that is loaded."""
    return any(before.entry(key).physical != now.entry(key).physical for key in staged.types)


def outcomes(attempt: Attempt) -> dict[str, TypeOutcome]:
    """Return what became of the rows of each type."""
    found = {}
    for key in sorted({*attempt.staged.types, *attempt.rejected}):
        staged = attempt.staged.types.get(key)
        rejected = attempt.rejected.get(key, Counter())
        found[key] = TypeOutcome(
            given=rejected.total() if staged is None else staged.given,
            accepted=attempt.accepted.get(key, 0),
            rejected=dict(rejected),
            counts=attempt.counts.get(key, Counts()),
            bytes=0 if staged is None else staged.bytes,
        )
    return found
