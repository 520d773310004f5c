"""The durable records of pipeline runs: finished stages and their results.

A run is one small object in the graph. A resumed run does not repeat finished stages; its commit id
is created first, so that every process can find out whether it was published. The record names the
process that runs it; a process that was aborted or replaced finds out at its next write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from ulid import ULID

from omnigraph.commit.model import CommitId
from omnigraph.commit.staged_commit import new_commit_id
from omnigraph.errors import FormatUnsupported, GraphCorrupt, NotFound, StorageUnavailable
from omnigraph.notebook.display import ReportDisplay
from omnigraph.pipeline.errors import RunStopped
from omnigraph.pipeline.runs.run_owner import RunOwner
from omnigraph.storage import ObjectStore
from omnigraph.storage.layout import PIPELINE_RUNS

RUN_VERSION = 1


class RunState(StrEnum):
    """The state of a run."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRun(ReportDisplay):
    """One run: its branch, its state, and the facts of each finished stage.

    `key` is a digest of what goes in: a second run with the same key has nothing to add. `about`
    are facts of the caller. `driver` is the process that runs it, or None; a killed process is not
    removed from the record.
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
    driver: RunOwner | None = None
    silence: timedelta = field(default=timedelta(0), compare=False)
    """The time since the heartbeat when it was read, by the store's clock."""

    @property
    def is_interrupted(self) -> bool:
        """Return whether it has not ended, and no process is at work on it."""
        alive = self.driver is not None and self.driver.is_alive(self.silence)
        return self.state is RunState.RUNNING and not alive

    @property
    def path(self) -> str:
        """Where it is stored."""
        return f"{self.folder}/run.json"

    @property
    def folder(self) -> str:
        """The folder of its files."""
        return f"{PIPELINE_RUNS}/{self.id}"

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
            "driver": None if self.driver is None else self.driver.to_json(),
        }


class RunStore:
    """The runs of one graph."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def begin(
        self, branch: str, *, key: str | None = None, about: Mapping[str, Any] | None = None
    ) -> PipelineRun:
        """Create the record of a new run of this process."""
        now = _now()
        run = PipelineRun(
            id=str(ULID()),
            branch=branch,
            commit_id=new_commit_id(),
            started_at=now,
            heartbeat=now,
            key=key,
            about=dict(about or {}),
            driver=RunOwner.here(),
        )
        self._objects.put(run.path, _encode(run))
        return run

    def find(self, id_: str) -> PipelineRun:
        """Return a run by its id."""
        return self._read(id_)[0]

    def _read(self, id_: str) -> tuple[PipelineRun, bytes]:
        stored = self._objects.get_dated(f"{PIPELINE_RUNS}/{id_}/run.json")
        if stored is None:
            message = f"pipeline run '{id_}' does not exist; `omnigraph pipeline status` lists runs"
            raise NotFound(message, code="run_not_found", run=id_)
        data, modified = stored
        return self._dated(_decode(data, id_), modified), data

    def list(self) -> list[PipelineRun]:
        """Return every run, oldest first."""
        stored = (self._objects.get_dated(f"{PIPELINE_RUNS}/{id_}/run.json") for id_ in self._ids())
        found = (pair for pair in stored if pair is not None)
        return [self._dated(_decode(data, ""), modified) for data, modified in found]

    def _dated(self, run: PipelineRun, modified: datetime) -> PipelineRun:
        """Return a run with the times of the store; the driver's clock may be wrong."""
        silence = timedelta(0)
        if run.state is RunState.RUNNING and run.driver is not None and not run.driver.is_here:
            try:
                silence = self._objects.now() - modified
            except StorageUnavailable:
                silence = _now() - modified  # read-only access has no other clock
        return replace(run, heartbeat=modified, silence=silence)

    def _ids(self) -> tuple[str, ...]:
        return tuple(sorted(self._objects.folders(PIPELINE_RUNS)))

    # --- by the owner of a run -----------------------------------------------------------------

    def finish_stage(self, run: PipelineRun, name: str, facts: Mapping[str, Any]) -> PipelineRun:
        """Record that a stage is finished."""
        return self._change(run, stages={**run.stages, name: dict(facts)})

    def forget_stages(self, run: PipelineRun, *names: str) -> PipelineRun:
        """Record that stages must be repeated."""
        left = {other: facts for other, facts in run.stages.items() if other not in names}
        return self._change(run, stages=left)

    def restart(self, run: PipelineRun) -> PipelineRun:
        """Record that all stages must be repeated, with a new commit id."""
        return self._change(run, stages={}, commit_id=new_commit_id(), state=RunState.RUNNING)

    def end(
        self, run: PipelineRun, state: RunState, facts: Mapping[str, Any] | None = None
    ) -> PipelineRun:
        """Record how a run ended; `facts` are added to `about`."""
        return self._change(run, state=state, about={**run.about, **(facts or {})})

    def release(self, run: PipelineRun) -> PipelineRun:
        """Record that no process runs it any more."""
        return self._change(run, driver=None)

    def check(self, run: PipelineRun) -> None:
        """Raise RunStopped when a run was aborted or taken over."""
        _check_owner(self.find(run.id), run)

    def beat(self, run: PipelineRun) -> None:
        """Record a heartbeat of the owner of a run."""
        found, data = self._read(run.id)
        _check_owner(found, run)
        # A concurrent write of the owner proves that it is alive, too.
        self._objects.replace(run.path, data, _encode(replace(found, heartbeat=_now())))

    def _change(self, run: PipelineRun, **changes: Any) -> PipelineRun:  # noqa: ANN401 - fields of a run
        newer = replace(run, heartbeat=_now(), **changes)
        while True:
            found, data = self._read(run.id)
            _check_owner(found, run)
            if self._objects.replace(run.path, data, _encode(newer)):
                return newer

    # --- by any process ------------------------------------------------------------------------

    def claim(self, run: PipelineRun) -> PipelineRun:
        """Take a run for this process.

        Raises:
            RunStopped: another process runs it, or it was aborted.
        """
        found, data = self._read(run.id)
        if found.state is RunState.ABORTED:
            raise RunStopped.aborted(run.id)
        if found.driver is not None and found.driver.is_alive(found.silence):
            heard = f"{found.heartbeat:%Y-%m-%d %H:%M:%S} UTC"
            raise RunStopped.busy(run.id, str(found.driver), heard)
        newer = replace(found, driver=RunOwner.here(), heartbeat=_now())
        if not self._objects.replace(run.path, data, _encode(newer)):
            return self.claim(run)  # another process was faster
        return newer

    def settle(
        self, run: PipelineRun, state: RunState, facts: Mapping[str, Any] | None = None
    ) -> PipelineRun:
        """Record how a run ended, whichever process owns it; finished runs stay finished."""
        while True:
            found, data = self._read(run.id)
            if found.state is RunState.FINISHED:
                return found
            about = {**found.about, **(facts or {})}
            newer = replace(found, state=state, about=about, driver=None, heartbeat=_now())
            if self._objects.replace(run.path, data, _encode(newer)):
                return newer


def _check_owner(found: PipelineRun, run: PipelineRun) -> None:
    """Raise RunStopped when the stored record is aborted or owned by another process."""
    if found.state is RunState.ABORTED:
        raise RunStopped.aborted(run.id)
    if found.driver != run.driver and found.driver is not None:
        raise RunStopped.taken(run.id, str(found.driver))


def _encode(run: PipelineRun) -> bytes:
    return json.dumps(run.to_json(), indent=1).encode()


def _now() -> datetime:
    return datetime.now(UTC)


def _decode(data: bytes, path: str) -> PipelineRun:
    try:
        document = json.loads(data)
        version = document["version"]
        if version == RUN_VERSION:
            return PipelineRun(
                id=document["id"],
                branch=document["branch"],
                commit_id=CommitId(document["commit_id"]),
                started_at=datetime.fromisoformat(document["started_at"]),
                heartbeat=datetime.fromisoformat(document["heartbeat"]),
                state=RunState(document["state"]),
                key=document["key"],
                about=document["about"],
                stages=document["stages"],
                driver=_driver(document.get("driver")),
            )
    except (KeyError, ValueError, TypeError) as error:
        raise GraphCorrupt(f"pipeline run {path} cannot be read", cause=str(error)) from error
    message = f"pipeline run {path} has version {version}, not {RUN_VERSION}: upgrade omnigraph"
    raise FormatUnsupported(message, found=str(version))


def _driver(document: Mapping[str, Any] | None) -> RunOwner | None:
    return None if document is None else RunOwner.from_json(document)
