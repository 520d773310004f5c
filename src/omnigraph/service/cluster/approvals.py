"""Approvals: the permission of a user for one deletion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ulid import ULID

from omnigraph.service.cluster.diagnostics import ClusterDiagnostics
from omnigraph.service.cluster.live_graph import utc_now_text
from omnigraph.service.cluster.resource_changes import ResourceChange
from omnigraph.service.cluster.store import APPROVALS, ClusterStore, read_record

APPROVAL_REASON = "deletes the graph and all of its data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One approval; it is valid for exactly one change, once."""

    approval_id: str = field(default_factory=lambda: str(ULID()))
    resource: str
    operation: str
    reason: str = APPROVAL_REASON
    bound_config_digest: str
    bound_before_digest: str | None
    bound_after_digest: str | None
    approved_by: str
    created_at: str = field(default_factory=utc_now_text)
    consumed_at: str | None = None
    consumed_by_operation: str | None = None

    def fits(self, change: ResourceChange, config_digest: str) -> bool:
        """Return whether this still approves the change."""
        bound = (self.bound_config_digest, self.bound_before_digest, self.bound_after_digest)
        digests = (config_digest, change.before, change.after)
        return self.operation == change.operation and bound == digests


def write_approval(store: ClusterStore, approval: Approval) -> None:
    """Store an approval."""
    store.put_record(APPROVALS, approval.approval_id, asdict(approval))


def valid_approvals(
    store: ClusterStore,
    changes: list[ResourceChange],
    config_digest: str,
    findings: ClusterDiagnostics,
) -> dict[str, str]:
    """Return the approvals that count for changes, by resource; warn of those that are stale."""
    by_resource = {change.resource: change for change in changes}
    approvers: dict[str, str] = {}
    for approval in _read_approvals(store):
        change = by_resource.get(approval.resource)
        if change is None or approval.consumed_at is not None:
            continue
        if approval.fits(change, config_digest):
            approvers[approval.resource] = approval.approval_id
        else:
            message = (
                f"approval {approval.approval_id} of {approval.approved_by} was given for another"
                " configuration; approve it again"
            )
            findings.warn("approval_stale", approval.resource, message)
    return approvers


def consume_approval(store: ClusterStore, approval_id: str, operation: str) -> None:
    """Mark an approval as consumed."""
    for approval in _read_approvals(store):
        if approval.approval_id == approval_id and approval.consumed_at is None:
            used = replace(approval, consumed_at=utc_now_text(), consumed_by_operation=operation)
            write_approval(store, used)


def add_consumed_approval(
    records: Mapping[str, Mapping[str, Any]], approval_id: str | None, operation: str
) -> Mapping[str, Mapping[str, Any]]:
    """Return the approval records of a ledger with one more consumed approval."""
    if approval_id is None:
        return records
    used = {"consumed_at": utc_now_text(), "consumed_by_operation": operation}
    return {**records, approval_id: used}


def _read_approvals(store: ClusterStore) -> list[Approval]:
    """Return all approvals, oldest first; invalid records approve nothing and are skipped."""
    records = store.records(APPROVALS).values()
    return [a for a in (read_record(Approval, facts) for facts in records) if a is not None]
