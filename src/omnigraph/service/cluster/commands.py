"""This module is the smaller commands of a cluster: validate, approve, force-unlock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omnigraph.service.cluster.approvals import Approval, write_approval
from omnigraph.service.cluster.changes import difference, gated
from omnigraph.service.cluster.config import FILE
from omnigraph.service.cluster.findings import Refused
from omnigraph.service.cluster.plan import wire_dependencies
from omnigraph.service.cluster.resources import Desired
from omnigraph.service.cluster.session import Outcome, Session


def validate(folder: Path) -> Outcome:
    """Check a configuration and every file it names; storage is not looked at."""
    session = Session(folder)
    desired = session.desired()
    if desired is not None:
        for graph in desired.config.graphs.values():
            if not graph.external_blobs:
                message = "blobs given as a URI are refused; `external_blobs` allows some"
                place = f"graphs.{graph.id}"
                session.findings.warn("external_blob_ingress_default_deny", place, message)
    resources = [] if desired is None else list(desired.resources.values())
    return session.outcome(
        config_file=str(folder / FILE),
        resource_digests={} if desired is None else desired.digests,
        resources=[resource.to_json() for resource in resources],
        dependencies=[] if desired is None else wire_dependencies(desired),
    )


def approve(
    folder: Path, resource: str, actor: str, options: Mapping[str, str] | None = None
) -> Outcome:
    """Approve one pending deletion, as it is planned now."""
    session = Session(folder, options)
    desired = session.desired()
    facts: dict[str, Any] = {}
    if desired is not None:
        with session.findings.catching(resource), session.locked("approve", desired.config):
            facts = _approve(session, desired, resource, actor)
    return session.outcome(**facts)


def _approve(session: Session, desired: Desired, resource: str, actor: str) -> dict[str, Any]:
    state = session.need_state().state
    pending = {change.resource: change for change in gated(difference(desired.entries, state))}
    change = pending.get(resource)
    if change is None:
        waiting = f"; what does: {', '.join(pending)}" if pending else ""
        message = f"{resource} has no change that needs an approval{waiting}"
        raise Refused("approval_not_required", resource, message)
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


def force_unlock(folder: Path, lock_id: str, options: Mapping[str, str] | None = None) -> Outcome:
    """Remove a lock that was left behind; its id says that it is this one and no other."""
    session = Session(folder, options)
    removed = False
    if session.config() is not None:
        with session.findings.catching(session.path):
            session.lock = session.store.lock()
            removed = _unlock(session, lock_id)
        with session.findings.catching(session.path):
            session.ledger = session.store.read()
    return session.outcome(state_observations=session.observations(), lock_removed=removed)


def _unlock(session: Session, lock_id: str) -> bool:
    store, held = session.store, session.lock
    if held is None:
        raise Refused("state_lock_missing", store.lock_path, "nobody holds the lock")
    if held.lock_id != lock_id:
        message = f"the lock is {held.lock_id}, not {lock_id}"
        raise Refused("state_lock_id_mismatch", store.lock_path, message)
    return store.release_lock(lock_id)
