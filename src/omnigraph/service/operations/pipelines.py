"""Operations on the runs of pipelines: what runs, what a run did, which rows it rejected.

They read the records that runs keep in the graph; Spark is not needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from omnigraph.errors import InvalidInput, NotFound
from omnigraph.pipeline.runs.next_steps import next_steps
from omnigraph.pipeline.runs.report import RunReport
from omnigraph.pipeline.runs.run import PipelineRun
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.operations.access import on_graph
from omnigraph.service.operations.answers import epoch_micros, to_answer
from omnigraph.service.operations.operation import operation
from omnigraph.service.session import GraphSession

DEFAULT_RUNS = 50
MAX_RUNS = 500


_ACCESS = replace(
    on_graph(PolicyAction.READ), note="on all branches, without rules that leave types out"
)


@operation(
    name="listPipelineRuns",
    route="GET /pipeline-runs",
    tag="pipelines",
    summary="List the runs of pipelines, newest first",
    errors=(400, 404, 503),
    access=_ACCESS,
    extension=True,
)
def list_runs(session: GraphSession, request: wire.PipelineRunsQuery) -> wire.PipelineRunListOutput:
    """Return runs with their state, finished stages and numbers of rows.

    A run whose process has died is `interrupted`: `omnigraph pipeline resume` continues it.
    """
    limit = DEFAULT_RUNS if request.limit is None else request.limit
    if not 1 <= limit <= MAX_RUNS:
        message = f"`limit` is {limit}, but must be from 1 to {MAX_RUNS}"
        raise InvalidInput(message, code="limit_invalid", limit=limit)
    runs = session.graph.pipeline.status()
    shown = [_run_output(run, _report(session, run)) for run in runs[:limit]]
    return wire.PipelineRunListOutput(runs=shown, more=len(runs) > limit)


@operation(
    name="getPipelineReport",
    route="GET /pipeline-runs/{run_id}",
    tag="pipelines",
    summary="Return the report of a run",
    errors=(400, 404, 503),
    access=_ACCESS,
    extension=True,
)
def get_report(session: GraphSession, request: wire.PipelineRunQuery) -> wire.PipelineReportOutput:
    """Return what a run read, accepted, rejected and changed, with the time of each stage.

    A run that has not ended, or whose process died, has no report.
    """
    run = _find(session, request.run_id)
    report = session.graph.pipeline.report(run.id)
    steps = [{"text": step.text, "command": step.command} for step in next_steps(report)]
    facts = {**report.to_json(), "started_at": epoch_micros(run.started_at), "next_steps": steps}
    return to_answer(facts, wire.PipelineReportOutput)


@operation(
    name="listPipelineRejects",
    route="GET /pipeline-runs/{run_id}/rejects",
    tag="pipelines",
    summary="Return the rejected rows of a run, one line of JSON each",
    errors=(400, 404, 503),
    access=_ACCESS,
    extension=True,
)
def list_rejects(session: GraphSession, request: wire.PipelineRejectsQuery) -> Iterator[str]:
    """Return every rejected row with the rule that it breaks, its file and its line.

    Only rows that are stored in the graph can be read here, not those of a folder that the
    pipeline file names.
    """
    run = _find(session, request.run_id)
    rows = session.graph.pipeline.rejects(run.id)
    return (json.dumps(row, ensure_ascii=False) for row in islice(rows, request.limit))


def _find(session: GraphSession, run_id: str) -> PipelineRun:
    runs = {run.id: run for run in session.graph.pipeline.status()}
    if run_id not in runs:
        message = f"pipeline run '{run_id}' does not exist"
        raise NotFound(message, code="run_not_found", run=run_id)
    return runs[run_id]


def _report(session: GraphSession, run: PipelineRun) -> RunReport | None:
    with suppress(NotFound):
        return session.graph.pipeline.report(run.id)
    return None


def _run_output(run: PipelineRun, report: RunReport | None) -> wire.PipelineRunOutput:
    about = run.about
    facts: dict[str, Any] = {
        "id": run.id,
        "pipeline": about.get("pipeline"),
        "branch": run.branch,
        "merge_into": about.get("merge_into"),
        "mode": about.get("mode"),
        "state": "interrupted" if run.is_interrupted else str(run.state),
        "started_at": epoch_micros(run.started_at),
        "heartbeat_at": epoch_micros(run.heartbeat),
        "graph_commit_id": run.commit_id,
        "stages": list(run.stages),
        "error": about.get("error"),
        "totals": None if report is None else report.to_json()["totals"],
        "seconds": None if report is None else report.seconds,
    }
    return to_answer(facts, wire.PipelineRunOutput)
