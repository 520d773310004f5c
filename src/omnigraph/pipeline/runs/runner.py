"""Run a pipeline from its file to its report."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from omnigraph.commit.branches import delete_branch
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.embed.config import read_models
from omnigraph.errors import InvalidInput, NotFound, OmniError
from omnigraph.merge.conflicts import MergeConflicts
from omnigraph.merge.merge import merge
from omnigraph.merge.model import MergeOptions
from omnigraph.pipeline.config.check_rules import resolve_checks
from omnigraph.pipeline.config.spec import Pipeline
from omnigraph.pipeline.load.check_gate import CheckGate
from omnigraph.pipeline.load.commit_builder import share_of
from omnigraph.pipeline.load.entry_points import load_frames
from omnigraph.pipeline.load.model import OnViolation, SparkLoadOptions, SparkLoadResult
from omnigraph.pipeline.load.rejects import (
    clear_unreadable,
    keep_unreadable,
    refuse_unreadable,
    reject_examples,
)
from omnigraph.pipeline.load.stage_tasks import start_workers
from omnigraph.pipeline.runs.openlineage import LineageEvents
from omnigraph.pipeline.runs.report import (
    MAX_EXAMPLES,
    RunReport,
    find_previous,
    read_report,
    store_report,
)
from omnigraph.pipeline.runs.requests import PipelineInterrupted, RequestFactory
from omnigraph.pipeline.runs.run import PipelineRun, RunState, RunStore
from omnigraph.pipeline.runs.start_snapshot import find_start_snapshot
from omnigraph.pipeline.sessions.session import session
from omnigraph.pipeline.sessions.spark_errors import ignore_lost_session, quiet_spark
from omnigraph.pipeline.sources.extract import SourceFrame
from omnigraph.pipeline.sources.prepare import (
    PreparedPipeline,
    pipeline_digest,
    prepare_pipeline,
    run_key,
    split_signature,
)
from omnigraph.write.load import parse_load_mode
from omnigraph.write.progress import Progress, ProgressListener

OPERATION = "pipeline"
DELETE = "branch_delete"
MERGED = "merge"
"""The stage after which only the branch is left to be deleted."""
_REPORT_FIELDS = (
    "types",
    "embedded",
    "branch_created",
    "sources",
    "rejects",
    "examples",
    "commit",
    "notes",
    "checks",
)
"""Fields that the report of a published run keeps when another process completes it."""


@dataclass(slots=True)
class PipelineExecution:
    """A pipeline run in progress, and the facts of its report."""

    manifest: Manifest
    request: RequestFactory
    pipeline: Pipeline
    progress: ProgressListener | None = None
    declared: str | None = None
    """The name of the pipeline in its cluster."""
    full_refresh: bool = False
    """Read incremental sources from the beginning."""
    events: LineageEvents | None = None
    """OpenLineage events, where the pipeline names a receiver."""
    before: RunReport | None = None
    """The report of the run before it was interrupted."""
    facts: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage and report its start."""
        if self.progress is not None:
            self.progress(Progress(name, 0, 0))
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = time.monotonic() - began

    def send_event(self, state: str, run: PipelineRun, error: OmniError | None = None) -> None:
        """Send an OpenLineage event; a failure to do so is a note in the report."""
        if self.events is not None:
            self.events.send(state, self.report(run, error))

    def report(self, run: PipelineRun, error: OmniError | None = None) -> RunReport:
        """Return the report of the run as it stands."""
        problems = () if self.events is None else self.events.problems
        stages = [{"name": name, "seconds": round(s, 3)} for name, s in self.seconds.items()]
        return RunReport(
            run=run.id,
            pipeline=self.pipeline.name,
            file=self.pipeline.report.source.name,
            graph=self.manifest.location.uri,
            state=str(run.state),
            branch=self.pipeline.branch,
            base=self.pipeline.base,
            mode=self.pipeline.mode,
            started_at=run.started_at.isoformat(),
            stages=stages,
            seconds=round(sum(self.seconds.values()), 3),
            error=None if error is None else error.to_json(),
            **{**self.facts, "notes": [*self.facts.get("notes", ()), *problems]},
        )


def run_pipeline(running: PipelineExecution, *, force: bool = False) -> RunReport:
    """Run a pipeline; its report is stored with the run also when it fails.

    With `force` the pipeline runs even if the same files were loaded before.
    """
    _authorize(running)
    ready = _ready(running)
    try:
        pipeline = running.pipeline
        about = {
            "pipeline": pipeline.name,
            "file": _file(running),
            "declared": running.declared,
            "digest": pipeline_digest(pipeline),
            "mode": pipeline.mode,
            "merge_into": pipeline.publish.merge_into,
            **_choices(running),
        }
        key = None if force or running.full_refresh else run_key(ready)
        runs = RunStore(running.manifest.objects)
        run = runs.begin(pipeline.branch, key=key, about=about)
        with release_run(runs, run):
            return _run_and_record(running, ready, run)
    finally:
        ready.sources.close()


def _choices(running: PipelineExecution) -> dict[str, Any]:
    """Return the target and the selection of a run, for a process that resumes it."""
    pipeline = running.pipeline
    choices = {
        "target": pipeline.target,
        "select": list(pipeline.select),
        "exclude": list(pipeline.exclude),
        "full_refresh": running.full_refresh,
    }
    return {name: choice for name, choice in choices.items() if choice}


def resume_pipeline(running: PipelineExecution, run: PipelineRun) -> RunReport:
    """Resume a run; finished stages are not repeated.

    Raises:
        RunStopped: another process runs it, or it was aborted.
    """
    _authorize(running)
    if run.about.get("digest") != pipeline_digest(running.pipeline):
        message = (
            f"{running.pipeline.report.source.name} or its variables differ from those that run "
            f"{run.id} started with: give the same, or abort the run and run the pipeline again"
        )
        raise InvalidInput(message, code="pipeline_changed", run=run.id)
    runs = RunStore(running.manifest.objects)
    run = runs.claim(run)
    with release_run(runs, run):
        ready = _ready(running)
        try:
            if run.state is RunState.FAILED:
                # Its staged files are gone, and its commit id cannot be published any more.
                run = runs.restart(run)
            with suppress(NotFound):
                running.before = read_report(running.manifest.objects, run)
            return _run_and_record(running, ready, run)
        finally:
            ready.sources.close()


def _file(running: PipelineExecution) -> str | None:
    """Return where the pipeline file is, for a process that resumes the run."""
    if running.declared is not None:
        return None
    return str(Path(running.pipeline.report.source.name).absolute())


def _authorize(running: PipelineExecution) -> None:
    """Check every permission a pipeline needs before Spark starts and anything is written."""
    pipeline, publish = running.pipeline, running.pipeline.publish
    running.request(OPERATION, pipeline.branch, None)
    if publish.merge_into is not None:
        running.request("merge", publish.merge_into, None)
    if publish.delete_branch:
        running.request(DELETE, pipeline.branch, None)


@contextmanager
def release_run(runs: RunStore, run: PipelineRun) -> Iterator[None]:
    """Release a run at the end, however it ends."""
    try:
        yield
    finally:
        with suppress(OmniError):
            runs.check(run)
            runs.release(runs.find(run.id))


def _ready(running: PipelineExecution) -> PreparedPipeline:
    wanted = running.pipeline.spark
    has_ui = running.progress is not None
    with running.stage("start"):
        spark = session(wanted.master, memory=wanted.memory, config=wanted.config, ui=has_ui)
        start_workers(spark)
    with running.stage("extract"):
        return prepare_pipeline(
            running.manifest, running.pipeline, full_refresh=running.full_refresh
        )


def _run_and_record(
    running: PipelineExecution, ready: PreparedPipeline, run: PipelineRun
) -> RunReport:
    """Execute a run and record its outcome."""
    runs = RunStore(running.manifest.objects)
    running.facts["actor"] = running.request(OPERATION, run.branch, None).actor
    running.facts["previous"] = find_previous(running.manifest.objects, runs.list(), run)
    running.facts["sources"] = [_source_facts(ready, source) for source in ready.opened]
    if running.pipeline.openlineage is not None:
        catalog = find_start_snapshot(running.manifest, running.pipeline)[0].catalog
        graph = running.manifest.location.uri
        spec = running.pipeline.openlineage
        running.events = LineageEvents(spec, ready, run, catalog, graph)
    is_resumed = running.before is not None or bool(run.stages)
    running.send_event("RUNNING" if is_resumed else "START", run)
    try:
        with quiet_spark():
            _execute(running, ready, run)
    except OmniError as error:
        run, is_ours = _record_failure(runs, run, error.code)
        running.send_event("FAIL", run, error)
        if is_ours:
            store_report(running.manifest.objects, run, running.report(run, error))
        raise
    except KeyboardInterrupt as error:
        with ignore_lost_session():
            ready.spark.interruptAll()
        run, _ = _record_failure(runs, run, "interrupted")
        running.send_event("ABORT", run)
        is_published = run.state is RunState.FINISHED
        raise PipelineInterrupted(run.id, is_published=is_published) from error
    run = runs.find(run.id)
    running.send_event("COMPLETE", run)
    report = running.report(run)
    store_report(running.manifest.objects, run, report)
    return report


def _record_failure(runs: RunStore, run: PipelineRun, code: str) -> tuple[PipelineRun, bool]:
    """Record why a run failed, unless it has ended; return it, and whether we still own it."""
    found = runs.find(run.id)
    is_ours = found.driver in (None, run.driver)
    if is_ours and found.state is RunState.RUNNING:
        found = runs.end(found, RunState.FAILED, {"error": code})
    return found, is_ours


def _execute(running: PipelineExecution, ready: PreparedPipeline, run: PipelineRun) -> None:
    pipeline, manifest = running.pipeline, running.manifest
    if MERGED in run.stages:
        _restore_report(running)
        running.facts["merge"] = _delete_merged_branch(running, run.stages[MERGED])
        return
    folder = None
    if pipeline.on_violation == OnViolation.FAIL:
        refuse_unreadable(ready)
    else:
        folder = _rejects_folder(running, run)
        clear_unreadable(folder, manifest.location.options)
        if ready.broken:
            running.facts["rejects"] = folder
            _check_share(ready)
            keep_unreadable(ready, folder, manifest.location.options)
    outcome = _load(running, ready, run, folder)
    _record_load(running, run, outcome)
    if pipeline.publish.merge_into is not None:
        with running.stage("merge"):
            merged = _merge(running, pipeline.publish.merge_into)
        if not merged.get("conflicts"):
            # Recorded before the branch is deleted: afterwards the merge cannot be found out.
            RunStore(manifest.objects).finish_stage(outcome.run or run, MERGED, merged)
            merged = _delete_merged_branch(running, merged)
        running.facts["merge"] = merged


def _rejects_folder(running: PipelineExecution, run: PipelineRun) -> str:
    """Return the folder for the rejected rows of this run: runs may share the one around it."""
    pipeline = running.pipeline
    if pipeline.rejects is None:
        return running.manifest.location.child(f"{run.folder}/rejects")
    return f"{pipeline.address(pipeline.rejects).rstrip('/')}/{run.id}"


def _record_load(running: PipelineExecution, run: PipelineRun, outcome: SparkLoadResult) -> None:
    """Record what was loaded, also for a process that resumes the run later.

    The commit may have been there already: of an earlier run, or of this one before it ended.
    """
    is_own = outcome.commit.id == (outcome.run or run).commit_id
    rejects = (outcome.rejects or running.facts.get("rejects")) if is_own else None
    options = running.manifest.location.options
    running.seconds |= outcome.seconds
    running.facts |= {
        "types": {key: type_.to_json() for key, type_ in sorted(outcome.types.items())},
        "commit": outcome.commit.to_json(),
        "branch_created": outcome.branch_created,
        "repeated": not is_own,
        "embedded": list(outcome.embedded),
        "notes": list(outcome.notes),
        "rejects": rejects,
        "examples": reject_examples(rejects, MAX_EXAMPLES, options),
    }
    if is_own and outcome.repeated:
        _restore_report(running)
    store_report(running.manifest.objects, run, running.report(run))


def _restore_report(running: PipelineExecution) -> None:
    """Restore what the report said before the run was interrupted."""
    if running.before is not None:
        running.facts |= {name: getattr(running.before, name) for name in _REPORT_FIELDS}
        running.seconds = {stage["name"]: stage["seconds"] for stage in running.before.stages}


def _load(
    running: PipelineExecution, ready: PreparedPipeline, run: PipelineRun, folder: str | None
) -> SparkLoadResult:
    pipeline = running.pipeline
    message = pipeline.publish.message or pipeline.name
    request = replace(
        running.request(OPERATION, pipeline.branch, message),
        vectors_from=read_models(pipeline.vectors_from),
    )
    catalog = find_start_snapshot(running.manifest, pipeline)[0].catalog
    gate = CheckGate(running.manifest, request, resolve_checks(pipeline, catalog))
    running.facts["checks"] = gate.results
    options = SparkLoadOptions(
        mode=parse_load_mode(pipeline.mode),
        partial=pipeline.partial,
        on_violation=OnViolation(pipeline.on_violation),
        max_rejects=_max_rejects(pipeline),
        unreadable=ready.broken,
        rejects=folder,
        from_=pipeline.base,
        files=tuple(ready.sources.files),
        embed=_embed(pipeline),
        progress=running.progress,
        run=run,
        check=gate.check if gate.checks else None,
        watermarks=ready.watermarks,
        signature=split_signature(ready),
    )
    inputs = [mapped.input for mapped in ready.mapped]
    return load_frames(running.manifest, request, inputs, options, ready.spark, ready.batches)


def _embed(pipeline: Pipeline) -> dict[str, list[str]]:
    """Return the optional properties whose vectors the pipeline wants, by type."""
    return {f"{s.kind}:{s.name.value}": [name.value for name in s.embed] for s in pipeline.types}


def _max_rejects(pipeline: Pipeline) -> float | None:
    """Return how many rows may be rejected, as a number or a share."""
    limit = pipeline.max_rejects
    if limit is None:
        return None
    if limit.count is not None:
        return limit.count
    return None if limit.share == 1 else limit.share


def _check_share(ready: PreparedPipeline) -> None:
    """Raise when too many rows of files cannot be read."""
    limit, broken = ready.pipeline.max_rejects, ready.broken
    if limit is None:
        return
    rows = sum(source.rows or 0 for source in ready.opened)
    most = limit.count if limit.count is not None else share_of(limit.share or 0, rows)
    if broken > most:
        refuse_unreadable(ready)


def _merge(running: PipelineExecution, into: str) -> Mapping[str, Any]:
    pipeline, manifest = running.pipeline, running.manifest
    if not find_start_snapshot(manifest, pipeline)[1]:
        # The commit was found where the branch would be forked from: it is merged already.
        return {"source": pipeline.branch, "target": into, "outcome": "already_up_to_date"}
    request = running.request("merge", into, pipeline.publish.message or pipeline.name)
    try:
        result = merge(manifest, request, head_snapshot(manifest, pipeline.branch), MergeOptions())
    except MergeConflicts as error:
        conflicts = [conflict.to_json() for conflict in error.conflicts]
        return {"target": into, "outcome": "conflicts", "conflicts": conflicts}
    return result.to_json()


def _delete_merged_branch(
    running: PipelineExecution, merged: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Delete the branch that was merged, if the pipeline requests it; return the merge result."""
    pipeline, manifest = running.pipeline, running.manifest
    if not pipeline.publish.delete_branch:
        return merged
    try:
        request = running.request(DELETE, pipeline.branch, None)
        if pipeline.branch.strip() in manifest.branches():
            delete_branch(manifest, pipeline.branch, permit=request.permit)
    except OmniError as error:
        return {**merged, "branch_deleted": False, "branch_delete_error": error.message}
    return {**merged, "branch_deleted": True}


def _source_facts(ready: PreparedPipeline, source: SourceFrame) -> dict[str, Any]:
    name = source.spec.name.value
    return {
        "name": name,
        "kind": source.spec.kind,
        "files": source.files,
        "rows": source.rows,
        "broken": source.broken,
        **ready.sources.increments.facts(name),
    }
