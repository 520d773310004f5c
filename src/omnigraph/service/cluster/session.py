"""State shared by all cluster commands: configuration, storage, lock, diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnigraph.service.cluster.config import CONFIG_FILE, ClusterConfig, read_config
from omnigraph.service.cluster.diagnostics import (
    ClusterDiagnostic,
    ClusterDiagnostics,
    ClusterOperationRefused,
)
from omnigraph.service.cluster.ledger import ClusterState
from omnigraph.service.cluster.resources import DesiredState, read_desired_state
from omnigraph.service.cluster.store import ClusterLedger, ClusterLock, ClusterStore
from omnigraph.storage import locate


@dataclass(frozen=True, slots=True)
class ClusterCommandResult:
    """How a command ended; `facts` is its answer in the wire form."""

    ok: bool
    facts: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[ClusterDiagnostic, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        diagnostics = [finding.to_json() for finding in self.findings]
        return {"ok": self.ok, **self.facts, "diagnostics": diagnostics}


class ClusterSession:
    """One command on one cluster."""

    def __init__(self, folder: Path, options: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.findings = ClusterDiagnostics()
        self.ledger = ClusterLedger(ClusterState(), None)
        self.lock: ClusterLock | None = None
        self._options = options
        self._store: ClusterStore | None = None
        self._acquired: ClusterLock | None = None

    @property
    def store(self) -> ClusterStore:
        """Where the cluster is stored, once its configuration was read."""
        assert self._store is not None, "the configuration comes first"
        return self._store

    def desired(self) -> DesiredState | None:
        """Read the configuration and every file it names."""
        state = read_desired_state(self.folder, self.findings)
        if state is not None:
            self._open(state.config)
        return state

    def run(
        self, operation: str, action: Callable[[DesiredState], object], path: str | None = None
    ) -> DesiredState | None:
        """Run an action under the lock; record its error. Return the configuration if valid."""
        desired = self.desired()
        if desired is not None:
            with self.findings.catching(path or self.path), self.locked(operation, desired.config):
                action(desired)
        return desired

    def config(self) -> ClusterConfig | None:
        """Read the configuration alone."""
        config = read_config(self.folder, self.findings)
        if config is None or not self.findings.ok:
            return None
        self._open(config)
        return config

    def _open(self, config: ClusterConfig) -> None:
        self._store = ClusterStore(locate(config.root, self._options))

    def read(self) -> ClusterLedger:
        """Read the ledger, and the holder of the lock."""
        self.lock = self.store.lock() if self._acquired is None else None
        self.ledger = self.store.read()
        return self.ledger

    @contextmanager
    def locked(self, operation: str, config: ClusterConfig) -> Iterator[None]:
        """Hold the lock during the block, unless the configuration disables it."""
        if not config.lock:
            message = "`state.lock` is false: concurrent commands are not prevented"
            self.findings.warn("state_lock_disabled", "state.lock", message)
            yield
            return
        try:
            self._acquired = self.store.take_lock(operation)
        except ClusterOperationRefused:
            self.read()
            raise
        try:
            yield
        finally:
            self.store.release_lock(self._acquired.lock_id)

    def need_state(self) -> ClusterLedger:
        """Read the ledger; raise if there is none."""
        ledger = self.read()
        if ledger.text is None:
            message = "the cluster has no ledger yet; create it with: omnigraph cluster import"
            raise ClusterOperationRefused("state_missing", self.store.state_path, message)
        return ledger

    def observations(self) -> dict[str, Any]:
        """Return the state of ledger and lock, in the wire form."""
        if self._store is None:
            return {}
        state, held = self.ledger.state, self.lock
        facts: dict[str, Any] = {
            "state_path": self.store.state_path,
            "lock_path": self.store.lock_path,
            "state_found": self.ledger.text is not None,
            "applied_config_digest": state.config_digest,
            "state_revision": state.revision,
            "state_cas": self.ledger.token,
            "resource_count": len(state.resources),
            "locked": held is not None,
            "lock_acquired": self._acquired is not None,
        }
        if self._acquired is not None:
            facts["acquired_lock_id"] = self._acquired.lock_id
        if held is not None:
            facts |= {
                "lock_id": held.lock_id,
                "lock_operation": held.operation,
                "lock_created_at": held.created_at,
                "lock_pid": held.pid,
                "lock_age_seconds": held.age,
            }
        return {name: value for name, value in facts.items() if value is not None}

    def outcome(self, **facts: Any) -> ClusterCommandResult:  # noqa: ANN401 - the wire form of an answer
        """Return how the command ended."""
        about = {"config_dir": str(self.folder)}
        return ClusterCommandResult(self.findings.ok, {**about, **facts}, tuple(self.findings))

    @property
    def path(self) -> str:
        """The path of findings about the whole configuration."""
        return str(self.folder / CONFIG_FILE)
