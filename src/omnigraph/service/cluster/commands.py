"""The commands `cluster validate`, `plan`, `approve` and `force-unlock`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from omnigraph.errors import OmniError
from omnigraph.service.cluster.approvals import (
    APPROVAL_REASON,
    Approval,
    valid_approvals,
    write_approval,
)
from omnigraph.service.cluster.config import CONFIG_FILE
from omnigraph.service.cluster.diagnostics import ClusterOperationRefused
from omnigraph.service.cluster.live_graph import inspect_graph
from omnigraph.service.cluster.recovery import read_intents
from omnigraph.service.cluster.resource_changes import (
    ApplyConditions,
    ResourceChange,
    changes_requiring_approval,
    classify_changes,
    diff_resources,
)
from omnigraph.service.cluster.resources import DesiredState, dependents
from omnigraph.service.cluster.session import ClusterCommandResult, ClusterSession

_NO_RESOURCES: Mapping[str, Any] = {"resource_digests": {}, "dependencies": []}


def plan(folder: Path, options: Mapping[str, str] | None = None) -> ClusterCommandResult:
    """List the differences between a cluster and its configuration."""
    session = ClusterSession(folder, options)
    facts: dict[str, Any] = {"changes": [], "blast_radius": [], "approvals_required": []}
    desired = session.run("plan", lambda desired: facts.update(_plan(session, desired)))
    return session.outcome(
        desired_revision={} if desired is None else {"config_digest": desired.digest},
        **(_NO_RESOURCES if desired is None else desired.to_json()),
        state_observations=session.observations(),
        **facts,
    )


def _plan(session: ClusterSession, desired: DesiredState) -> dict[str, Any]:
    ledger = session.read()
    if ledger.text is None:
        message = "the cluster has no ledger yet; create it with: omnigraph cluster import"
        session.findings.warn("state_missing", session.store.state_path, message)
    pending = set()
    for intent in read_intents(session.store):
        pending.add(intent.graph_id)
        message = f"{intent.kind} was interrupted; `cluster apply` settles it first"
        session.findings.warn("cluster_recovery_pending", f"graph.{intent.graph_id}", message)
    changes = diff_resources(desired.entries, ledger.state)
    approved = valid_approvals(
        session.store, changes_requiring_approval(changes), desired.digest, session.findings
    )
    situation = ApplyConditions(pending, approved)
    decided = classify_changes(changes, desired.entries, ledger.state, situation)
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
            {"resource": c.resource, "reason": APPROVAL_REASON, "satisfied": c.resource in approved}
            for c in changes_requiring_approval(changes)
        ],
    }


def _with_migration(
    session: ClusterSession, desired: DesiredState, change: ResourceChange
) -> ResourceChange:
    """Return a change of a schema with its migration steps."""
    if change.kind != "schema" or change.operation != "update":
        return change
    live = inspect_graph(session.store, change.graph)
    reason = live.error or "the graph does not exist"
    if live.graph is not None:
        try:
            steps = live.graph.schema.plan(desired.schema(change.graph)).to_json()
        except OmniError as error:
            reason = error.message
        else:
            migration = {"supported": steps["supported"], "steps": steps["steps"]}
            return replace(change, migration=migration)
    message = f"cannot plan the migration steps: {reason}"
    session.findings.warn("schema_preview_unavailable", change.resource, message)
    return change


def validate(folder: Path) -> ClusterCommandResult:
    """Check a configuration and every file it names; storage is not read."""
    session = ClusterSession(folder)
    desired = session.desired()
    if desired is not None:
        for graph in desired.config.graphs.values():
            if not graph.external_blobs:
                message = "blobs given as a URI are refused; list allowed bases in `external_blobs`"
                place = f"graphs.{graph.id}"
                session.findings.warn("external_blob_ingress_default_deny", place, message)
    resources = [] if desired is None else list(desired.resources.values())
    return session.outcome(
        config_file=str(folder / CONFIG_FILE),
        resources=[resource.to_json() for resource in resources],
        **(_NO_RESOURCES if desired is None else desired.to_json()),
    )


def approve(
    folder: Path, resource: str, actor: str, options: Mapping[str, str] | None = None
) -> ClusterCommandResult:
    """Approve one pending deletion, as it is planned now."""
    session = ClusterSession(folder, options)
    facts: dict[str, Any] = {}
    session.run(
        "approve",
        lambda desired: facts.update(_approve(session, desired, resource, actor)),
        resource,
    )
    return session.outcome(**facts)


def _approve(
    session: ClusterSession, desired: DesiredState, resource: str, actor: str
) -> dict[str, Any]:
    state = session.need_state().state
    pending = {
        change.resource: change
        for change in changes_requiring_approval(diff_resources(desired.entries, state))
    }
    change = pending.get(resource)
    if change is None:
        waiting = f"; pending approvals: {', '.join(pending)}" if pending else ""
        message = f"{resource} has no change that needs an approval{waiting}"
        raise ClusterOperationRefused("approval_not_required", resource, message)
    approval = Approval(
        resource=resource,
        operation=change.operation,
        bound_config_digest=desired.digest,
        bound_before_digest=change.before,
        bound_after_digest=change.after,
        approved_by=actor,
    )
    write_approval(session.store, approval)
    return {
        "approval_id": approval.approval_id,
        "resource": resource,
        "operation": approval.operation,
        "approved_by": actor,
    }


def force_unlock(
    folder: Path, lock_id: str, options: Mapping[str, str] | None = None
) -> ClusterCommandResult:
    """Remove a stale lock; its id must match."""
    session = ClusterSession(folder, options)
    removed = False
    if session.config() is not None:
        with session.findings.catching(session.path):
            session.lock = session.store.lock()
            removed = _unlock(session, lock_id)
        with session.findings.catching(session.path):
            session.ledger = session.store.read()
    return session.outcome(state_observations=session.observations(), lock_removed=removed)


def _unlock(session: ClusterSession, lock_id: str) -> bool:
    store, held = session.store, session.lock
    if held is None:
        raise ClusterOperationRefused(
            "state_lock_missing", store.lock_path, "no process holds the lock"
        )
    if held.lock_id != lock_id:
        message = f"the lock is {held.lock_id}, not {lock_id}"
        raise ClusterOperationRefused("state_lock_id_mismatch", store.lock_path, message)
    return store.release_lock(lock_id)
