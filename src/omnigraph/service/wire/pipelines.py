"""Bodies of operations on the runs of pipelines."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Struct

from omnigraph.service.wire.parameters import FromPath, Marker, ParameterLocation
from omnigraph.service.wire.requests import EpochMicros, WireCount

_Count = Annotated[int | None, Marker(ParameterLocation.QUERY, schema=WireCount)]


class PipelineRunsQuery(Struct, kw_only=True):
    """How many runs to return, 50 by default and at most 500."""

    limit: _Count = None


class PipelineRunQuery(Struct, kw_only=True):
    """A run of a pipeline, by its ID."""

    run_id: FromPath[str]


class PipelineRejectsQuery(PipelineRunQuery, kw_only=True):
    """A run of a pipeline; `limit` is how many of its rejected rows to return, all by default."""

    limit: _Count = None


class PipelineTotalsOutput(Struct, kw_only=True):
    """Rows of a run that were read, accepted and rejected, and the bytes written."""

    given: WireCount
    accepted: WireCount
    rejected: WireCount
    bytes: WireCount


class PipelineRunOutput(Struct, kw_only=True):
    """A run of a pipeline.

    `state` is running, interrupted, finished, failed or aborted. `stages` are those that are
    finished, in order. `totals` and `seconds` are those of its report; null while it has none.
    """

    id: str
    pipeline: str | None
    branch: str
    merge_into: str | None
    mode: str | None
    state: str
    started_at: EpochMicros
    heartbeat_at: EpochMicros
    graph_commit_id: str
    stages: list[str]
    error: str | None
    totals: PipelineTotalsOutput | None
    seconds: float | None


class PipelineRunListOutput(Struct, kw_only=True):
    """The runs of the pipelines of a graph, newest first; `more` if older ones were left out."""

    runs: list[PipelineRunOutput]
    more: bool


class PipelineTypeOutput(Struct, kw_only=True):
    """What a run did to a type; `rejected` counts rows by the rule that they break."""

    given: WireCount
    accepted: WireCount
    rejected: dict[str, WireCount]
    inserted: WireCount
    updated: WireCount
    deleted: WireCount
    bytes: WireCount


class PipelineStageOutput(Struct, kw_only=True):
    """A stage of a run, and how long it took."""

    name: str
    seconds: float


class PipelineStepOutput(Struct, kw_only=True):
    """What to do after a run."""

    text: str
    command: str | None


class PipelineReportOutput(Struct, kw_only=True):
    """The report of a run.

    `types` are by `node:T` and `edge:E`. `rejects` is the folder of rejected rows, `examples` the
    first of them. `error` is the error that ended the run, `previous` the last finished run of the
    same pipeline.
    """

    run: str
    pipeline: str
    state: str
    branch: str
    mode: str
    base: str | None
    actor: str | None
    started_at: EpochMicros
    seconds: float
    repeated: bool
    totals: PipelineTotalsOutput
    stages: list[PipelineStageOutput]
    sources: list[dict[str, Any]]
    types: dict[str, PipelineTypeOutput]
    commit: dict[str, Any] | None
    merge: dict[str, Any] | None
    checks: list[dict[str, Any]]
    notes: list[str]
    rejects: str | None
    examples: list[dict[str, Any]]
    previous: dict[str, Any] | None
    error: dict[str, Any] | None
    next_steps: list[PipelineStepOutput]
