"""The lease of a running load: its run record, its intent, and cleanup afterwards.

The intent protects staged files from cleanup. A thread renews it and checks whether the run was
aborted. A load that fails removes its staged files; the files of a killed one wait until the run is
resumed, aborted or cleaned up.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Any

from omnigraph.commit.intent_log import IntentLog, OperationIntent
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, Snapshot
from omnigraph.commit.recovery import STALE_AFTER, RecoveryKind, abort_intent
from omnigraph.commit.staged_commit import StagedCommit
from omnigraph.errors import OmniError, OutcomeUnknown
from omnigraph.pipeline.errors import RunStopped
from omnigraph.pipeline.load.staged_load import RESULTS
from omnigraph.pipeline.runs.recovery import (
    clear_folder,
    find_intent,
    kept_parts,
    position_files,
    remove_unpublished_files,
)
from omnigraph.pipeline.runs.run import PipelineRun, RunState, RunStore
from omnigraph.storage.layout import POSITIONS, REMOVED, VECTORS
from omnigraph.write.request import WriteRequest

HEARTBEATS = 5
"""Heartbeats within the time after which a load is considered dead."""
WATCH_SECONDS = 5.0
"""The longest time until a load notices that it was aborted elsewhere."""
RESUME_WINDOW = timedelta(days=1)
"""How long the staged files of a killed driver are kept for resuming its run."""
_DEPENDENT_STAGES = ("stage", "embed", "validate")
"""Stages that are repeated together."""


class RunLease:
    """A running load; `stop` cancels its jobs when it is aborted elsewhere."""

    def __init__(
        self,
        manifest: Manifest,
        request: WriteRequest,
        source: Snapshot,
        run: PipelineRun | None,
        stop: Callable[[], None],
    ) -> None:
        self._manifest = manifest
        self._runs = RunStore(manifest.objects)
        self._intents = IntentLog(manifest.objects)
        self._stop = stop
        self._is_own = run is None
        self.run = self._runs.begin(request.branch) if run is None else run
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._source = source
        self._permit = request.permit
        self._commit = StagedCommit(
            id=self.run.commit_id, operation=request.operation, actor=request.actor
        )
        self._intent = self._resume_intent()
        self._heart = threading.Thread(target=self._beat, name="omnigraph-heartbeat", daemon=True)

    def _resume_intent(self) -> OperationIntent:
        """Return the intent of the run; without one, staged files may be gone and are discarded."""
        intent = find_intent(self._manifest, self.run)
        if intent is not None:
            return self._intents.update(intent, intent.staged)
        if self.run.stages:
            clear_folder(self._manifest, self.run, but=[VECTORS])
            self.run = self._runs.restart(self.run)
        patience = None if self._is_own else RESUME_WINDOW
        return self._intents.begin(
            self._source.branch,
            self._source.lineage_id,
            replace(self._commit, id=self.run.commit_id),
            resume_window=patience,
        )

    def __enter__(self) -> RunLease:
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
            clear_folder(self._manifest, self.run, entirely=self._is_own)
            return
        stopped = self._stopped()
        if stopped is None or stopped.code != "run_taken":
            # The process that took the run over needs the staged files.
            self._abort(error)
        if stopped is not None and stopped is not error:
            raise stopped from error

    def _stopped(self) -> RunStopped | None:
        """Return why this process no longer owns the run, or None."""
        try:
            self._runs.check(self.run)
        except RunStopped as stopped:
            return stopped
        except OmniError:
            return None
        return None

    def _abort(self, error: BaseException) -> None:
        if isinstance(error, OutcomeUnknown):
            return
        with suppress(OmniError):
            if abort_intent(self._manifest, self._intent) is RecoveryKind.ROLLED_BACK:
                remove_unpublished_files(self._manifest, self.run)
        with suppress(OmniError):
            # A resumed run reuses the vectors.
            clear_folder(self._manifest, self.run, entirely=self._is_own, but=[VECTORS])
        with suppress(OmniError):
            self.run = self._runs.end(self.run, RunState.FAILED, {"error": str(error)})

    def _beat(self) -> None:
        beaten = time.monotonic()
        while not self._over.wait(WATCH_SECONDS):
            if self._stopped() is not None:
                self._stop()
                continue  # several jobs may have to be cancelled
            if time.monotonic() - beaten < STALE_AFTER.total_seconds() / HEARTBEATS:
                continue
            with self._lock, suppress(OmniError):
                self._intent = self._intents.update(self._intent, self._intent.staged)
                self._runs.beat(self.run)
                beaten = time.monotonic()

    # --- progress ------------------------------------------------------------------------------

    def finish_stage(self, name: str, facts: Mapping[str, Any]) -> None:
        """Record that a stage is finished."""
        self.run = self._runs.finish_stage(self.run, name, facts)
        self._manifest.datasets.observe(f"pipeline: finished {name}")

    def restage(self, signature: str | None = None) -> set[str]:
        """Record that rows must be staged again, and remove the staged ones.

        Return the parts of the input that are kept: those that tasks staged under a signature.
        """
        parts = {} if signature is None else kept_parts(self._manifest, self.run, signature)
        kept = {path for paths in parts.values() for path in paths}
        remove_unpublished_files(self._manifest, self.run, kept)
        clear_folder(self._manifest, self.run, but=[POSITIONS, VECTORS, REMOVED], parts=parts)
        if self.run.stages.keys() & set(_DEPENDENT_STAGES):
            self.run = self._runs.forget_stages(self.run, *_DEPENDENT_STAGES)
        return set(parts)

    def staged(self, results: Sequence[Mapping[str, Any]], files: Sequence[Any]) -> None:
        """Keep the results of all tasks, and remove rows that are not among them."""
        remove_unpublished_files(self._manifest, self.run, position_files(results))
        document = json.dumps({"results": results, "files": files}).encode()
        self._manifest.objects.put(f"{self.run.folder}/{RESULTS}", document)

    def validated(self, snapshot: Snapshot) -> StagedCommit | None:
        """Return the commit that was validated on a snapshot before the load was interrupted."""
        stage = self.run.stages.get("validate")
        if stage is None or stage["on"] != snapshot.commit_id or not self._intent.staged.datasets:
            return None
        return replace(self._intent.staged, permit=self._permit)

    def prepared(self, snapshot: Snapshot, ready: StagedCommit, facts: Mapping[str, Any]) -> None:
        """Record the commit that is about to be published, and its branch."""
        with self._lock:
            # The branch may be younger than the intent.
            intent = replace(self._intent, branch=snapshot.branch, lineage_id=snapshot.lineage_id)
            self._intent = self._intents.update(intent, ready)
        self.finish_stage("validate", {"on": snapshot.commit_id, **facts})
        self._manifest.datasets.observe("pipeline: prepared")

    def finished(self, commit: Commit) -> PipelineRun:
        """Record that the commit is published."""
        self._manifest.datasets.observe("pipeline: published")
        self.run = self._runs.end(self.run, RunState.FINISHED, {"commit": commit.id})
        return self.run
