"""This module keeps the durable record of pipeline runs: which stages are finished, and with what.

A run is one small object in the graph. Whoever resumes it does not do finished stages again; its
commit id is minted first, so that anybody can tell whether it was published.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from ulid import ULID

from omnigraph.commit.model import CommitId
from omnigraph.commit.staged import mint_commit_id
from omnigraph.errors import FormatUnsupported, GraphCorrupt, NotFound
from omnigraph.storage import Objects
from omnigraph.storage.layout import RUNS

RUN_VERSION = 1


class RunState(StrEnum):
    """How a run is doing."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: where it goes, how far it is, and the facts of each finished stage.

    `key` is a digest of what goes in: a second run with the same key has nothing to add. `about`
    is whatever who began it wants to remember.
    """

    id: str
    branch: str
    commit_id: CommitId
    started_at: datetime
    heartbeat: datetime
    state: RunState = RunState.RUNNING
    key: str | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    stages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Where it is stored."""
        return f"{self.folder}/run.json"

    @property
    def folder(self) -> str:
        """Where it may keep files of its own."""
        return f"{RUNS}/{self.id}"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "version": RUN_VERSION,
            "id": self.id,
            "branch": self.branch,
            "commit_id": self.commit_id,
            "started_at": self.started_at.isoformat(),
            "heartbeat": self.heartbeat.isoformat(),
            "state": str(self.state),
            "key": self.key,
            "about": dict(self.about),
            "stages": {name: dict(facts) for name, facts in self.stages.items()},
        }


class Runs:
    """The runs of one graph."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def begin(
        self, branch: str, *, key: str | None = None, about: Mapping[str, Any] | None = None
    ) -> Run:
        """Write down a new run."""
        now = datetime.now(UTC)
        run = Run(
            id=str(ULID()),
            branch=branch,
            commit_id=mint_commit_id(),
            started_at=now,
            heartbeat=now,
            key=key,
            about=dict(about or {}),
        )
        return self._put(run)

    def find(self, id_: str) -> Run:
        """Return a run by its id."""
        data = self._objects.get(f"{RUNS}/{id_}/run.json")
        if data is None:
            message = f"there is no pipeline run '{id_}'; `omnigraph pipeline status` lists them"
            raise NotFound(message, code="run_not_found", run=id_)
        return _decode(data, id_)

    def list(self) -> list[Run]:
        """Return every run, oldest first."""
        found = (self._objects.get(f"{RUNS}/{id_}/run.json") for id_ in self._ids())
        return [_decode(data, "") for data in found if data is not None]

    def _ids(self) -> tuple[str, ...]:
        return tuple(sorted(self._objects.folders(RUNS)))

    def finish_stage(self, run: Run, name: str, facts: Mapping[str, Any]) -> Run:
        """Write down that a stage is finished; a heartbeat, too."""
        return self._put(replace(run, stages={**run.stages, name: dict(facts)}, heartbeat=_now()))

    def forget_stage(self, run: Run, name: str) -> Run:
        """Write down that a stage has to be done again."""
        left = {other: facts for other, facts in run.stages.items() if other != name}
        return self._put(replace(run, stages=left, heartbeat=_now()))

    def forget_stages(self, run: Run) -> Run:
        """Write down that everything has to be done again, under a commit id of its own."""
        return self._put(replace(run, stages={}, commit_id=mint_commit_id(), heartbeat=_now()))

    def beat(self, run: Run) -> Run:
        """Write down that the run is alive."""
        return self._put(replace(run, heartbeat=_now()))

    def end(self, run: Run, state: RunState, facts: Mapping[str, Any] | None = None) -> Run:
        """Write down how a run ended; what it remembers grows by `facts`."""
        about = {**run.about, **(facts or {})}
        return self._put(replace(run, state=state, about=about, heartbeat=_now()))

    def _put(self, run: Run) -> Run:
        self._objects.put(run.path, json.dumps(run.to_json(), indent=1).encode())
        return run


def _now() -> datetime:
    return datetime.now(UTC)


def _decode(data: bytes, path: str) -> Run:
    try:
        found = json.loads(data)
        version = found["version"]
        if version == RUN_VERSION:
            return Run(
                id=found["id"],
                branch=found["branch"],
                commit_id=CommitId(found["commit_id"]),
                started_at=datetime.fromisoformat(found["started_at"]),
                heartbeat=datetime.fromisoformat(found["heartbeat"]),
                state=RunState(found["state"]),
                key=found["key"],
                about=found["about"],
                stages=found["stages"],
            )
    except (KeyError, ValueError, TypeError) as error:
        raise GraphCorrupt(f"pipeline run {path} cannot be read", cause=str(error)) from error
    message = f"pipeline run {path} has version {version}, not {RUN_VERSION}: upgrade omnigraph"
    raise FormatUnsupported(message, found=str(version))
