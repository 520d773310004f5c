"""Run a load on Spark: stage once, validate the staged rows, publish one commit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import SparkSession

from omnigraph.commit.branches import create_branch
from omnigraph.commit.footprint import Footprint
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, Counts, Snapshot
from omnigraph.commit.protection import check_publish
from omnigraph.commit.snapshot import apply_scope, head_snapshot, snapshot_of_staged
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset
from omnigraph.errors import (
    CleanupBegan,
    Contention,
    ExpectedVersionMismatch,
    InvalidInput,
    PreconditionFailed,
    SchemaMoved,
)
from omnigraph.pipeline.load.commit_builder import CommitBuilder
from omnigraph.pipeline.load.embedding import VectorFill, vector_report
from omnigraph.pipeline.load.model import (
    OnViolation,
    SparkLoadOptions,
    SparkLoadResult,
    TypeFrame,
    TypeLoadResult,
)
from omnigraph.pipeline.load.removals import (
    RemovedEntities,
    StagedRemoval,
    check_left_edges,
    removal_result,
    remove_entities,
    stage_removals,
)
from omnigraph.pipeline.load.stage_tasks import StagingResults
from omnigraph.pipeline.load.staged_load import StagedLoad, merge_results, read_staged
from omnigraph.pipeline.load.staging import VALUE_REJECTS, StagingJob, clear_rejects
from omnigraph.pipeline.runs.recovery import find_published_commit, mark_published
from omnigraph.pipeline.runs.run import PipelineRun, RunState
from omnigraph.pipeline.runs.run_lease import RunLease
from omnigraph.pipeline.runs.watermarks import check_watermarks
from omnigraph.pipeline.sessions.spark_errors import cancellable_jobs, translate_spark_errors
from omnigraph.storage.layout import column_layout
from omnigraph.write.load import (
    WriteMode,
    delete_branch_on_failure,
    find_start_snapshot,
    repeated_load_notes,
)
from omnigraph.write.progress import Progress
from omnigraph.write.request import WriteRequest
from omnigraph.write.transaction import MAX_REPREPARES, only_maintenance_since, publish_with_retry

PUBLISH_BUDGET = 8 * MAX_REPREPARES
"""How often a load is rebased on the commits of other writers."""


@dataclass
class SparkLoad:
    """One load: its parameters, and the seconds of its stages."""

    manifest: Manifest
    request: WriteRequest
    options: SparkLoadOptions
    spark: SparkSession
    seconds: dict[str, float] = field(default_factory=dict)
    removals: Sequence[TypeFrame] = ()
    """Inputs that also delete entities."""
    removed: Sequence[StagedRemoval] = ()
    """Entities to delete whose ids are staged already."""
    _bases: dict[str, RemovedEntities] = field(default_factory=dict)

    def run(self, stage: Callable[[StagingJob], StagingResults]) -> SparkLoadResult:
        """Stage, validate, publish."""
        source, exists = find_start_snapshot(self.manifest, self.request.branch, self.options.from_)
        run = self.options.run
        before = None if run is None else find_published_commit(self.manifest, source, run)
        if run is not None and before is not None:
            done = mark_published(self.manifest, run, before)
            return replace(self._outcome(before, done), repeated=True)
        if run is not None and run.state is RunState.FINISHED:
            message = (
                f"run {run.id} was published as commit {run.commit_id}, which branch "
                f"'{run.branch}' no longer has; run the pipeline again"
            )
            raise InvalidInput(message, code="run_finished", run=run.id)
        if exists:
            check_publish(self.request.branch, source.head, self.request.permit)
        if self.request.if_commit not in (None, source.commit_id):
            raise PreconditionFailed(self.request.if_commit, source.commit_id)
        with (
            cancellable_jobs(self.spark) as stop,
            RunLease(self.manifest, self.request, source, run, stop) as work,
            translate_spark_errors(),
        ):
            job, staged = self._stage(source, work, stage)
            with self._branch(source, work, exists=exists):
                commit = self._publish(job, staged, work, stage)
            return self._outcome(commit, work.finished(commit))

    @contextmanager
    def _branch(self, source: Snapshot, work: RunLease, *, exists: bool) -> Iterator[None]:
        """Fork the branch if it does not exist; remove it again if the load fails."""
        made = work.run.stages.get("branch")
        if exists and made is None:
            yield
            return
        if not exists:
            create_branch(
                self.manifest,
                self.request.branch,
                source,
                actor=self.request.actor,
                permit=self.request.permit,
            )
            made = {"head": source.commit_id}
        assert made is not None, "it was created, now or before"
        permit = self.request.permit
        with delete_branch_on_failure(self.manifest, self.request.branch, made["head"], permit):
            if not exists:
                work.finish_stage("branch", made)
            yield

    def _job(self, source: Snapshot, run: PipelineRun) -> StagingJob:
        options = self.options
        rejects = None
        if options.on_violation is OnViolation.REJECT:
            rejects = options.rejects or self.manifest.location.child(f"{run.folder}/rejects")
        return StagingJob(
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
            vectors_from=self.request.vectors_from,
            signature=self._signature(source),
        )

    def _signature(self, source: Snapshot) -> str | None:
        """Return what has to be equal for tasks of a resumed run to keep their results.

        Partial rows have values of entities that may have changed since.
        """
        given = self.options.signature
        if given is None or self.options.partial:
            return None
        return f"{given} {source.head.schema_hash}"

    def _stage(
        self, source: Snapshot, work: RunLease, stage: Callable[[StagingJob], StagingResults]
    ) -> tuple[StagingJob, StagedLoad]:
        """Stage the rows, unless that is finished."""
        job = self._job(source, work.run)
        known = work.run.stages.get("stage")
        if known is None:
            parts = work.restage(job.signature)
            clear_rejects(job, VALUE_REJECTS, parts)
            job = replace(job, is_resumed=bool(parts))
            with self._timed("stage"):
                removals = stage_removals(job, self.removals)
                removals += [one.to_json() for one in self.removed]
                self._bases.clear()
                without = self._without_removed(job, removals).snapshot
                shown = apply_scope(self.manifest, without, self.request.rights.named)
                results, files = stage(replace(job, snapshot=shown))
                results = [*results, removal_result(job, removals)]
            made = merge_results(
                results, files
            )  # raises errors of workers before the stage is recorded
            base = {key: source.entry(key).physical for key in made.types}
            schema = source.head.schema_hash
            work.staged(results, files)
            layouts = {key: stored_columns(self.manifest, source, key) for key in made.types}
            known = {"schema": schema, "base": base, "layouts": layouts}
            # Recorded with the rows: a resumed run may have opened newer sources.
            known |= {"watermarks": dict(self.options.watermarks), "removals": removals}
            work.finish_stage("stage", known)
        staged = read_staged(self.manifest.objects, work.run)
        assert staged is not None, "it was staged just now, or before"
        if known["schema"] != job.snapshot.head.schema_hash:
            raise SchemaMoved(known["schema"], job.snapshot.head.schema_hash)
        self._report_progress("stage", sum(type_.given for type_ in staged.types.values()))
        if not staged.is_whole:
            # Other rows may depend on rows that were not read.
            staged.read.check()
        return replace(job, files=tuple(staged.files)), staged

    def _without_removed(
        self, job: StagingJob, removals: Sequence[Mapping[str, Any]]
    ) -> RemovedEntities:
        """Return the snapshot of a job without the entities that the load deletes."""
        if not removals:
            return RemovedEntities(job.snapshot, job.snapshot)
        commit = job.snapshot.commit_id
        if commit not in self._bases:
            self._bases[commit] = remove_entities(
                self.spark, self.manifest, job.snapshot, job, removals
            )
        return self._bases[commit]

    def _publish(
        self,
        job: StagingJob,
        staged: StagedLoad,
        work: RunLease,
        stage: Callable[[StagingJob], StagingResults],
    ) -> Commit:
        if self._must_restage(job, work, job.snapshot):
            job, staged = self._restage(job.snapshot, work, stage)
        attempt: CommitBuilder | None = None
        revalidations = 0
        for number in range(PUBLISH_BUDGET + 1):
            snapshot = self._head(job)
            ready = work.validated(snapshot) if number == 0 else None
            if ready is None:
                if attempt is None and not self._must_restage(job, work, snapshot):
                    job = replace(job, snapshot=snapshot)
                with self._timed("validate"):
                    removed = self._without_removed(
                        job, work.run.stages["stage"].get("removals", ())
                    )
                if attempt is None:
                    attempt = self._validated(replace(job, snapshot=removed.snapshot), staged, work)
                ready = self._prepared(snapshot, attempt, removed, work)
            is_last = number == PUBLISH_BUDGET or revalidations == MAX_REPREPARES
            if ready is not None:
                try:
                    check_watermarks(self.manifest, snapshot, ready.watermarks)
                    self._check(snapshot, ready)
                    return self._published(snapshot, ready)
                except (CleanupBegan, ExpectedVersionMismatch, SchemaMoved):
                    may = self.options.mode is not WriteMode.OVERWRITE
                    if is_last or not (may or only_maintenance_since(self.manifest, snapshot)):
                        raise
                continue
            if is_last:
                message = f"other writers keep changing entities of the load on {snapshot.branch}"
                raise Contention(message)
            attempt, revalidations = None, revalidations + 1
            if job.partial or self._must_restage(job, work, snapshot):
                job, staged = self._restage(snapshot, work, stage)
        raise AssertionError("the last attempt returns or raises")

    def _must_restage(self, job: StagingJob, work: RunLease, now: Snapshot) -> bool:
        """Return whether staged rows cannot be based on a snapshot.

        Missing properties were copied from entities that may have changed, or a merge has replaced
        a dataset by one whose columns have another order.
        """
        known = work.run.stages["stage"]
        moved = changed_types(known["base"], now)
        return bool(moved and job.partial) or has_other_layout(self.manifest, known, now, moved)

    def _restage(
        self, source: Snapshot, work: RunLease, stage: Callable[[StagingJob], StagingResults]
    ) -> tuple[StagingJob, StagedLoad]:
        work.restage()
        return self._stage(source, work, stage)

    def _head(self, job: StagingJob) -> Snapshot:
        """Return the newest snapshot; raise if the staged rows cannot be based on it."""
        snapshot, wanted = head_snapshot(self.manifest, self.request.branch), self.request.if_commit
        if wanted is not None and snapshot.commit_id != wanted:
            raise PreconditionFailed(wanted, snapshot.commit_id)
        if snapshot.head.schema_hash != job.snapshot.head.schema_hash:
            # The rows were made for the types of another schema.
            raise SchemaMoved(job.snapshot.head.schema_hash, snapshot.head.schema_hash)
        return snapshot

    def _validated(self, job: StagingJob, staged: StagedLoad, work: RunLease) -> CommitBuilder:
        """Reject invalid rows, and compute the missing vectors of the others."""
        attempt = CommitBuilder(self.spark, self.manifest, job, staged)
        with ExitStack() as stack:
            with self._timed("validate"):
                rows = attempt.validated(self.options.max_rejects, self.options.unreadable)
                examination = stack.enter_context(rows)
            self.manifest.datasets.observe("pipeline: validated")
            fillings = attempt.fillings()
            if fillings:
                with self._timed("embed"):
                    self._embed(attempt, fillings, work)
            with self._timed("publish"):
                attempt.prepare(examination)
        return attempt

    def _embed(
        self, attempt: CommitBuilder, fillings: Mapping[str, Sequence[VectorFill]], work: RunLease
    ) -> None:
        """Compute the missing vectors, and record the files that have them."""
        before = work.run.stages.get("embed", {"types": [], "told": []})
        types, reports = list(before["types"]), list(before["told"])
        try:
            for key, some in fillings.items():
                made = []
                for filling in some:
                    one = filling.run()
                    if not one.files:  # only rows that were left out lack vectors
                        continue
                    facts = {
                        "made": {one.property: one.model},
                        "filled": {one.property: one.made + one.kept},
                        "files": attempt.show_vectors(key, one),
                    }
                    attempt.staged.types[key].fill(facts)
                    types.append((key, facts))
                    made.append(one)
                    self._report_progress("embed", one.made)
                if made:
                    reports.append(vector_report(some[0].target, made))
        finally:
            # Also recorded on failure, so that these files are removed with the other staged files.
            work.finish_stage("embed", {"types": types, "told": reports})

    def _prepared(
        self, snapshot: Snapshot, attempt: CommitBuilder, removed: RemovedEntities, work: RunLease
    ) -> StagedCommit | None:
        """Record the commit based on a snapshot; None if it must be validated again."""
        if not removed.is_current(snapshot):
            return None
        with self._timed("validate"):
            datasets = attempt.rebased_on(removed.snapshot if removed.datasets else snapshot)
        if datasets is None:
            return None
        ready = self._ready(snapshot, attempt, removed.published(self.manifest, datasets), work)
        ready = replace(
            ready,
            counts={k: c for k, c in removed.counted(ready.counts).items() if c != Counts()},
            reads={
                **ready.reads,
                **_reads(snapshot, removed.reads - {one.table_key for one in ready.datasets}),
            },
        )
        if removed.sources:
            with self._timed("validate"):
                after = snapshot_of_staged(snapshot, ready)
                check_left_edges(self.spark, self.manifest, after, removed)
        types = removed.results(_type_results(attempt))
        facts = {
            "types": {key: found.to_json() for key, found in types.items()},
            "rejects": attempt.job.rejects if any(attempt.rejected.values()) else None,
            "notes": repeated_load_notes(self.options.mode, snapshot, _types_with_new_ids(attempt)),
        }
        work.prepared(snapshot, ready, facts)
        return ready

    def _check(self, snapshot: Snapshot, ready: StagedCommit) -> None:
        """Check the state that publishing would make visible."""
        if self.options.check is not None:
            with self._timed("check"):
                self.options.check(snapshot_of_staged(snapshot, ready))

    def _published(self, snapshot: Snapshot, ready: StagedCommit) -> Commit:
        with self._timed("publish"):
            lineage = self.manifest.lineage(snapshot.lineage_id)
            return publish_with_retry(lineage, snapshot.branch, ready)

    def _ready(
        self,
        snapshot: Snapshot,
        attempt: CommitBuilder,
        datasets: Sequence[StagedDataset],
        work: RunLease,
    ) -> StagedCommit:
        # Checks read any type: if one changes meanwhile, they run again on the newer state.
        read = attempt.consulted if self.options.check is None else set(snapshot.entries())
        changed = {dataset.table_key for dataset in datasets}
        return StagedCommit(
            id=work.run.commit_id,
            operation=self.request.operation,
            datasets=tuple(datasets),
            read_schema=snapshot.head.schema_hash,
            reads=_reads(snapshot, read - changed),
            actor=self.request.actor,
            message=self.request.message,
            counts={key: c for key, c in attempt.counts.items() if c != Counts()},
            if_commit=self.request.if_commit,
            known_id=True,
            footprint=Footprint(frozenset(dataset.key for dataset in datasets)),
            permit=self.request.permit,
            watermarks=work.run.stages["stage"].get("watermarks", {}),
        )

    def _outcome(self, commit: Commit, run: PipelineRun) -> SparkLoadResult:
        """Return the result of a run from its record."""
        facts = run.stages.get("validate", {"types": {}, "rejects": None})
        if run.commit_id != commit.id:
            return SparkLoadResult(commit=commit, run=run)
        return SparkLoadResult(
            commit=commit,
            types={key: TypeLoadResult.from_json(found) for key, found in facts["types"].items()},
            seconds=self.seconds,
            embedded=run.stages.get("embed", {}).get("told", ()),
            rejects=facts["rejects"],
            notes=tuple(facts.get("notes", ())),
            branch_created="branch" in run.stages,
            run=run,
        )

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        self._report_progress(stage, 0)
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.monotonic() - began

    def _report_progress(self, stage: str, rows: int) -> None:
        if self.options.progress is not None:
            self.options.progress(Progress(stage, rows, 0))


def changed_types(base: Mapping[str, int], now: Snapshot) -> list[str]:
    """Return the loaded types that changed since their rows were staged."""
    return [key for key, version in base.items() if now.entry(key).physical != version]


def has_other_layout(
    manifest: Manifest, known: Mapping[str, Any], now: Snapshot, types: Sequence[str]
) -> bool:
    """Return whether the datasets of some types have other columns than their staged files."""
    layouts = known.get("layouts", {})
    return any(
        key in layouts and layouts[key] != stored_columns(manifest, now, key) for key in types
    )


def stored_columns(manifest: Manifest, snapshot: Snapshot, key: str) -> list[str]:
    """Return the columns of a dataset in order, as a run records them."""
    with manifest.reading(key, snapshot.entry(key)) as handle:
        return [f"{name} {type_} {mark!r}" for name, type_, mark in column_layout(handle.schema)]


def _reads(snapshot: Snapshot, keys: AbstractSet[str]) -> dict[str, Any]:
    """Return the versions of types that must not change meanwhile."""
    entries = {key: snapshot.entry(key) for key in sorted(keys)}
    return {key: (entry.key, entry.physical) for key, entry in entries.items()}


def _types_with_new_ids(attempt: CommitBuilder) -> list[str]:
    return [key for key, staged in attempt.staged.types.items() if staged.given and staged.fresh]


def _type_results(attempt: CommitBuilder) -> dict[str, TypeLoadResult]:
    """Return the result of each type."""
    found = {}
    for key in sorted({*attempt.staged.types, *attempt.rejected}):
        staged = attempt.staged.types.get(key)
        rejected = attempt.rejected.get(key, Counter())
        found[key] = TypeLoadResult(
            given=rejected.total() if staged is None else staged.given,
            accepted=attempt.accepted.get(key, 0),
            rejected=dict(rejected),
            counts=attempt.counts.get(key, Counts()),
            bytes=0 if staged is None else staged.bytes,
        )
    return found
