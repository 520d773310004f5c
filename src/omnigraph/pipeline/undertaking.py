"""This module keeps a load safe while it lasts: its run, its intent, and what to remove after it.

The intent makes cleanup spare what is staged; its heartbeat goes on in a thread of its own. A load
that fails removes what it staged; one that is killed leaves it to be resumed, aborted or swept.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any

from omnigraph.commit.history import first_parents, read_commits
from omnigraph.commit.intents import Intent, Intents
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, Snapshot
from omnigraph.commit.recovery import STALE_AFTER, RecoveryKind, withdraw
from omnigraph.commit.staged import StagedCommit
from omnigraph.errors import OmniError, OutcomeUnknown
from omnigraph.pipeline.runs import Run, Runs, RunState
from omnigraph.pipeline.staged import Staged, staged_by
from omnigraph.write.request import Request

BEATS = 5
"""Heartbeats in the time after which a load is taken for dead."""


class Undertaking:
    """One load while it lasts."""

    def __init__(
        self, manifest: Manifest, request: Request, source: Snapshot, run: Run | None
    ) -> None:
        self._manifest = manifest
        self._runs = Runs(manifest.objects)
        self._intents = Intents(manifest.objects)
        self._is_own = run is None
        self.run = self._runs.begin(request.branch) if run is None else run
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._staged: Staged | None = None
        self._source = source
        self._commit = StagedCommit(
            id=self.run.commit_id, operation=request.operation, actor=request.actor
        )
        self._intent = self._resumed()
        self._heart = threading.Thread(target=self._beat, name="omnigraph-heartbeat", daemon=True)

    def _resumed(self) -> Intent:
        """Return the intent of the run; without one, nothing that was staged can be relied on."""
        for intent in self._intents.list():
            if intent.staged.id == self.run.commit_id:
                return self._intents.update(intent, intent.staged)
        if self.run.stages:
            self.run = self._runs.forget_stages(self.run)
            self._commit = StagedCommit(
                id=self.run.commit_id,
                operation=self._commit.operation,
                actor=self._commit.actor,
            )
        return self._intents.begin(self._source.branch, self._source.native, self._commit)

    def __enter__(self) -> Undertaking:
        self._heart.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._heart.join()
        if error is None:
            self._intents.end(self._intent)
            self._clear()
        elif not isinstance(error, OutcomeUnknown):
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        with suppress(OmniError):
            if withdraw(self._manifest, self._intent) is RecoveryKind.ROLLED_BACK:
                discard(self._manifest, self._staged)
        with suppress(OmniError):
            self.run = self._runs.end(self.run, RunState.FAILED, {"error": str(error)})
            self._clear("vectors")

    def _clear(self, *more: str) -> None:
        """Remove what only the load itself needed; a run nobody asked for leaves nothing.

        `more` are folders that who resumes the run has a use for.
        """
        kept = [f"{self.run.folder}/{name}" for name in ("rejects", *more)]
        clear_folder(self._manifest, self.run, ("-",) if self._is_own else (self.run.path, *kept))

    def _beat(self) -> None:
        while not self._over.wait(STALE_AFTER.total_seconds() / BEATS):
            with self._lock, suppress(OmniError):
                self._intent = self._intents.update(self._intent, self._intent.staged)

    # --- progress ------------------------------------------------------------------------------

    def finish_stage(self, name: str, facts: Mapping[str, Any]) -> None:
        """Write down that a stage is finished."""
        self.run = self._runs.finish_stage(self.run, name, facts)
        self._manifest.datasets.observe(f"pipeline: finished {name}")

    def forget_staged(self) -> None:
        """Write down that rows have to be staged again; what was staged is removed."""
        discard(self._manifest, self._staged)
        for name in ("embed", "stage"):
            self.run = self._runs.forget_stage(self.run, name)

    def note(self, staged: Staged) -> None:
        """Remember what to remove if the load fails."""
        self._staged = staged

    def prepared(self, ready: StagedCommit) -> None:
        """Write down what is about to be published."""
        with self._lock:
            self._intent = self._intents.update(self._intent, ready)
        self._manifest.datasets.observe("pipeline: prepared")

    def finished(self, commit: Commit) -> Run:
        """Write down that the commit is there."""
        self._manifest.datasets.observe("pipeline: published")
        self.run = self._runs.end(self.run, RunState.FINISHED, {"commit": commit.id})
        return self.run


def published_before(manifest: Manifest, source: Snapshot, run: Run) -> Commit | None:
    """Return the commit of this run, or of another one with the same key, if the branch has it."""
    ids = {run.commit_id}
    if run.key is not None:
        runs = Runs(manifest.objects).list()
        ids |= {r.commit_id for r in runs if (r.key, r.branch) == (run.key, run.branch)}
    state = manifest.lineage(source.native).state()
    commits = read_commits(manifest.line(state))
    along = set(first_parents(commits, state.head.commit_id))
    found = sorted(ids & along)
    return commits[found[0]].commit if found else None


def conclude(manifest: Manifest, run: Run, commit: Commit) -> Run:
    """Write down of a run that its commit, or one with the same key, is there."""
    intents = Intents(manifest.objects)
    for intent in intents.list():
        if intent.staged.id == run.commit_id == commit.id:
            intents.end(intent)
    clear_folder(manifest, run, (run.path, f"{run.folder}/rejects"))
    return Runs(manifest.objects).end(run, RunState.FINISHED, {"commit": commit.id})


def abort_run(manifest: Manifest, run: Run) -> Run:
    """Give a run up: nobody can publish it any more, and what it staged is removed."""
    runs = Runs(manifest.objects)
    kind = None
    for intent in Intents(manifest.objects).list():
        if intent.staged.id == run.commit_id:
            kind = withdraw(manifest, intent)
    if kind in (RecoveryKind.ALREADY_PUBLISHED, RecoveryKind.ROLLED_FORWARD):
        return runs.end(run, RunState.FINISHED, {"commit": run.commit_id})
    discard(manifest, staged_by(run))
    clear_folder(manifest, run, (run.path, f"{run.folder}/rejects"))
    return runs.end(run, RunState.ABORTED)


def discard(manifest: Manifest, staged: Staged | None) -> None:
    """Remove the files of staged rows that no version anybody can see refers to."""
    if staged is None:
        return
    paths: list[str] = []
    for type_ in staged.types.values():
        for fragment in type_.fragments:
            for name in fragment.paths:
                file = f"{type_.path}/data/{name}"
                large = manifest.objects.list(file.removesuffix(".lance"))
                paths += [file, *(found.path for found in large if found.path != file)]
    manifest.objects.delete(paths)


def clear_folder(manifest: Manifest, run: Run, keep: tuple[str, ...]) -> None:
    """Remove the files a run keeps for itself."""
    found = (info.path for info in manifest.objects.list(run.folder))
    manifest.objects.delete([path for path in found if not path.startswith(keep)])
