"""The report of a pipeline run, stored with the run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from omnigraph.errors import GraphCorrupt, NotFound, OmniError
from omnigraph.notebook.display import ReportDisplay
from omnigraph.pipeline.runs.run import PipelineRun, RunState
from omnigraph.storage import ObjectStore

REPORT_VERSION = 1
MAX_EXAMPLES = 20
"""Rejected rows that a report shows; the folder of rejects has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport(ReportDisplay):
    """The result of a run, or its error; all values are plain JSON.

    `types` are by `node:T` and `edge:E`: rows `given`, `accepted` and `rejected` by rule, entities
    `inserted`, `updated` and `deleted`, `bytes` written. `stages` are `name` and `seconds` in
    order. `merge` is the result of the merge; with conflicts the branch is kept. `checks` are the
    results of checks with their findings, `notes` texts for the user. `previous` are `run`,
    `started_at`, `given`, `rejected`, `seconds` and `stages` of the last finished run of the same
    pipeline.
    """

    run: str
    pipeline: str
    file: str
    graph: str
    state: str
    branch: str
    mode: str
    started_at: str
    base: str | None = None
    branch_created: bool = False
    repeated: bool = False
    actor: str | None = None
    seconds: float = 0.0
    stages: Sequence[Mapping[str, Any]] = ()
    sources: Sequence[Mapping[str, Any]] = ()
    types: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    embedded: Sequence[Mapping[str, Any]] = ()
    commit: Mapping[str, Any] | None = None
    merge: Mapping[str, Any] | None = None
    rejects: str | None = None
    examples: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()
    checks: Sequence[Mapping[str, Any]] = ()
    previous: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None

    @property
    def given(self) -> int:
        """The number of input rows."""
        return self._total("given") + self.unreadable

    @property
    def accepted(self) -> int:
        """The number of accepted rows."""
        return self._total("accepted")

    @property
    def unreadable(self) -> int:
        """The number of rows in files that could not be read."""
        return sum(source["broken"] for source in self.sources)

    @property
    def rejected(self) -> int:
        """The number of rejected rows."""
        return self.unreadable + sum(sum(t["rejected"].values()) for t in self.types.values())

    @property
    def bytes(self) -> int:
        """How many bytes were written."""
        return self._total("bytes")

    @property
    def is_done(self) -> bool:
        """Whether the run completed, including the merge."""
        return self.error is None and not (self.merge or {}).get("conflicts")

    def _total(self, name: str) -> int:
        return sum(type_[name] for type_ in self.types.values())

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        totals = {
            "given": self.given,
            "accepted": self.accepted,
            "rejected": self.rejected,
            "bytes": self.bytes,
        }
        return {"version": REPORT_VERSION, **asdict(self), "totals": totals}


def store_report(objects: ObjectStore, run: PipelineRun, report: RunReport) -> None:
    """Keep a report with its run."""
    text = json.dumps(report.to_json(), indent=1, ensure_ascii=False)
    objects.put(_path(run), text.encode())


def read_report(objects: ObjectStore, run: PipelineRun) -> RunReport:
    """Return the report of a run."""
    data = objects.get(_path(run))
    if data is None:
        message = f"run {run.id} is {run.state} and has no report yet"
        raise NotFound(message, code="report_not_found", run=run.id)
    try:
        document = json.loads(data)
        for name in ("notes", "checks"):  # reports of older releases have none
            document.setdefault(name, [])
        document.setdefault("previous", None)
        return RunReport(**{f.name: document[f.name] for f in fields(RunReport)})
    except (KeyError, TypeError, ValueError) as error:
        message = f"the report of run {run.id} cannot be read"
        raise GraphCorrupt(message, cause=str(error)) from error


def find_previous(
    objects: ObjectStore, runs: Sequence[PipelineRun], run: PipelineRun
) -> dict[str, Any] | None:
    """Return what a report says of the last finished run of the same pipeline."""
    name = run.about.get("pipeline")
    for other in sorted(runs, key=lambda one: one.id, reverse=True):
        if other.id >= run.id or other.about.get("pipeline") != name:
            continue
        if other.state is not RunState.FINISHED:
            continue
        try:
            report = read_report(objects, other)
        except OmniError:
            continue
        if not report.repeated:
            facts = ("run", "started_at", "given", "rejected", "seconds", "stages")
            return {fact: getattr(report, fact) for fact in facts}
    return None


def _path(run: PipelineRun) -> str:
    return f"{run.folder}/report.json"
