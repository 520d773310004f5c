"""Approvals: the permission of a user for one deletion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ulid import ULID

from omnigraph.service.cluster.diagnostics import ClusterDiagnostics
from omnigraph.service.cluster.live_graph import utc_now_text
from omnigraph.service.cluster.resource_changes import ResourceChange
from omnigraph.service.cluster.store import APPROVALS, ClusterStore

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
        seen = (self.bound_config_digest, self.bound_before_digest, self.bound_after_digest)
        return self.operation == change.operation and seen == (
            config_digest,
            change.before,
            change.after,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the record."""
        names = self.__dataclass_fields__
        return {"schema_version": 1, **{name: getattr(self, name) for name in names}}


def write_approval(store: ClusterStore, approval: Approval) -> None:
    """Keep an approval."""
    store.put_record(APPROVALS, approval.approval_id, approval.to_json())


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
    """Note in an approval that it is used up."""
    for approval in _read_approvals(store):
        if approval.approval_id == approval_id and approval.consumed_at is None:
            used = replace(approval, consumed_at=utc_now_text(), consumed_by_operation=operation)
            write_approval(store, used)


def add_consumed_approval(
    records: Mapping[str, Mapping[str, Any]], approval_id: str | None, operation: str
) -> Mapping[str, Mapping[str, Any]]:
    """Return the approval records of a ledger with one more that is used up."""
    if approval_id is None:
        return records
    used = {"consumed_at": utc_now_text(), "consumed_by_operation": operation}
    return {**records, approval_id: used}


def _read_approvals(store: ClusterStore) -> list[Approval]:
    """Return all approvals, oldest first; what is none is passed over, for it approves nothing."""
    approvals = []
    for facts in store.records(APPROVALS).values():
        stated = dict(facts or {})
        if stated.pop("schema_version", None) != 1:
            continue
        try:
            approvals.append(Approval(**stated))
        except TypeError:
            continue
    return approvals
