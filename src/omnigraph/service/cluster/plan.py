"""This module plans: what `cluster apply` would do, told without doing it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from omnigraph.errors import OmniError
from omnigraph.service.cluster.approvals import REASON, valid_approvals
from omnigraph.service.cluster.changes import Change, Situation, classify, difference, gated
from omnigraph.service.cluster.live import look
from omnigraph.service.cluster.recovery import read_intents
from omnigraph.service.cluster.resources import Desired, dependents
from omnigraph.service.cluster.session import Outcome, Session


def plan(folder: Path, options: Mapping[str, str] | None = None) -> Outcome:
    """Tell what separates a cluster from its configuration."""
    session = Session(folder, options)
    desired = session.desired()
    facts: dict[str, Any] = {"changes": [], "blast_radius": [], "approvals_required": []}
    if desired is not None:
        with session.findings.catching(session.path), session.locked("plan", desired.config):
            facts = _plan(session, desired)
    return session.outcome(
        desired_revision={} if desired is None else {"config_digest": desired.digest},
        resource_digests={} if desired is None else desired.digests,
        dependencies=[] if desired is None else wire_dependencies(desired),
        state_observations=session.observations(),
        **facts,
    )


def wire_dependencies(desired: Desired) -> list[dict[str, str]]:
    """Return who depends on whom, in the wire form."""
    return [{"from": one, "to": other} for one, other in desired.dependencies()]


def _plan(session: Session, desired: Desired) -> dict[str, Any]:
    ledger = session.read()
    if ledger.text is None:
        message = "there is no ledger yet; make it with: omnigraph cluster import"
        session.findings.warn("state_missing", session.store.state_path, message)
    pending = set()
    for intent in read_intents(session.store):
        pending.add(intent.graph_id)
        message = f"{intent.kind} was interrupted; `cluster apply` settles it first"
        session.findings.warn("cluster_recovery_pending", f"graph.{intent.graph_id}", message)
    changes = difference(desired.entries, ledger.state)
    approved = valid_approvals(session.store, gated(changes), desired.digest, session.findings)
    situation = Situation(pending, approved)
    decided = classify(changes, desired.entries, ledger.state, situation)
    shown = [_with_migration(session, desired, change) for change in decided]
    dependencies = desired.dependencies()
    radius = {change.resource: dependents(change.resource, dependencies) for change in changes}
    return {
        "changes": [change.to_json() for change in shown],
        "blast_radius": [
            {"resource": address, "affected": affected}
            for address, affected in radius.items()
            if affected
        ],
        "approvals_required": [
            {"resource": c.resource, "reason": REASON, "satisfied": c.resource in approved}
            for c in gated(changes)
        ],
    }


def _with_migration(session: Session, desired: Desired, change: Change) -> Change:
    """Return a change of a schema with the steps it takes."""
    if change.kind != "schema" or change.operation != "update":
        return change
    live = look(session.store, change.graph)
    reason = live.error or "there is no graph"
    if live.graph is not None:
        try:
            steps = live.plan(desired.schema(change.graph)).to_json()
        except OmniError as error:
            reason = error.message
        else:
            migration = {"supported": steps["supported"], "steps": steps["steps"]}
            return replace(change, migration=migration)
    message = f"cannot tell the steps: {reason}"
    session.findings.warn("schema_preview_unavailable", change.resource, message)
    return change
