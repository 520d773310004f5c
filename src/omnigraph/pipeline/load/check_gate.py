"""Run the checks of a pipeline on the state that it is about to publish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.commit.snapshot import apply_scope
from omnigraph.query.checks import ChecksFailed, StateCheck, run_checks
from omnigraph.query.engine import Engine
from omnigraph.write.request import WriteRequest


@dataclass(slots=True)
class CheckGate:
    """Checks, and what they found last: a state that is rebased is checked again.

    They see what the actor may read.
    """

    manifest: Manifest
    request: WriteRequest
    checks: Sequence[StateCheck]
    results: list[dict[str, Any]] = field(default_factory=list)

    def check(self, snapshot: Snapshot) -> None:
        """Raise ChecksFailed when a check of severity `fail` finds something."""
        engine = Engine(self.manifest, may_write=False, embedder=self.request.embedder)
        shown = apply_scope(self.manifest, snapshot, self.request.rights.read)
        results = run_checks(engine, shown, self.checks)
        self.results[:] = [result.to_json() for result in results]
        if any(result.is_failed for result in results):
            raise ChecksFailed(results)
