"""Differences between a cluster and its configuration, and which of them can be applied now.

Everything here is pure: entries and facts in, changes out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.service.cluster.config import CLUSTER
from omnigraph.service.cluster.ledger import ClusterState, LedgerEntry

APPLIED = "applied"
DERIVED = "derived"
DEFERRED = "deferred"
BLOCKED = "blocked"
APPROVAL_REQUIRED = "approval_required"
NOT_APPLIED = "dependency_not_applied"
PENDING = "cluster_recovery_pending"
UNSUPPORTED = "apply_unsupported_kind"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceChange:
    """One resource that differs, and how apply handles it."""

    resource: str
    operation: str
    before: str | None = None
    after: str | None = None
    disposition: str | None = None
    reason: str | None = None
    binding_change: bool = False
    metadata_change: str | None = None
    migration: Mapping[str, Any] | None = None

    @property
    def kind(self) -> str:
        """The kind of the resource, as its address begins."""
        return self.resource.partition(".")[0]

    @property
    def graph(self) -> str:
        """The graph a graph, schema or query belongs to."""
        return self.resource.split(".")[1]

    @property
    def is_done(self) -> bool:
        """Whether the change is made in this run."""
        return self.disposition in (APPLIED, DERIVED)

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        facts = {
            "resource": self.resource,
            "operation": self.operation,
            "before_digest": self.before,
            "after_digest": self.after,
            "disposition": self.disposition,
            "reason": self.reason,
            "binding_change": self.binding_change or None,
            "metadata_change": self.metadata_change,
            "migration": self.migration,
        }
        return {name: value for name, value in facts.items() if value is not None}


def diff_resources(
    declared: Mapping[str, LedgerEntry], state: ClusterState
) -> list[ResourceChange]:
    """Return the resources to create, update and delete, by address."""
    changes = []
    for address in sorted({*declared, *state.resources}):
        before, after = state.resources.get(address), declared.get(address)
        if before is not None and after is not None:
            changes += [] if before == after else [_resource_update(address, before, after)]
        elif after is not None:
            changes.append(ResourceChange(resource=address, operation="create", after=after.digest))
        elif before is not None:
            deleted = before.digest
            changes.append(ResourceChange(resource=address, operation="delete", before=deleted))
    return changes


def _resource_update(address: str, before: LedgerEntry, after: LedgerEntry) -> ResourceChange:
    bindings = before.applies_to != after.applies_to
    metadata = None
    if before.digest == after.digest:
        metadata = "policy_bindings" if bindings else "embedding_profile"
        if address.startswith("pipeline."):
            metadata = "pipeline_graph"
    return ResourceChange(
        resource=address,
        operation="update",
        before=before.digest,
        after=after.digest,
        binding_change=bindings,
        metadata_change=metadata,
    )


@dataclass(frozen=True, slots=True)
class ApplyConditions:
    """The conditions of a change: pending recoveries, approvals, and failures so far."""

    pending: Collection[str] = ()
    """Graphs with an interrupted operation."""
    approved: Collection[str] = ()
    """Resources whose deletion was approved."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Graphs and schemas that could not be changed, and how that failed."""


def changes_requiring_approval(changes: list[ResourceChange]) -> list[ResourceChange]:
    """Return the changes that need approval: deleted graphs, and schemas without a graph."""
    graphs = {c.resource for c in changes if c.kind == "graph" and c.operation == "delete"}
    return [
        change
        for change in changes
        if change.operation == "delete"
        and (
            change.kind == "graph"
            or (change.kind == "schema" and f"graph.{change.graph}" not in graphs)
        )
    ]


def classify_changes(
    changes: list[ResourceChange],
    declared: Mapping[str, LedgerEntry],
    state: ClusterState,
    situation: ApplyConditions,
) -> list[ResourceChange]:
    """Classify changes: whether each is made in this run, and if not, why."""
    classifier = _ChangeClassifier(changes, declared, state, situation)
    return [classifier.decide(change) for change in changes]


class _ChangeClassifier:
    """Decides about changes of one run, each in view of the others."""

    def __init__(
        self,
        changes: list[ResourceChange],
        declared: Mapping[str, LedgerEntry],
        state: ClusterState,
        situation: ApplyConditions,
    ) -> None:
        self._changes = {change.resource: change for change in changes}
        self._declared = declared
        self._state = state
        self._situation = situation

        self._rules = {
            "graph": self._graph,
            "schema": self._schema,
            "query": self._query,
            "policy": self._policy,
            "pipeline": self._policy,
            "provider": self._provider,
        }

    def decide(self, change: ResourceChange) -> ResourceChange:
        disposition, reason = self._rules[change.kind](change)
        return replace(change, disposition=disposition, reason=reason)

    def _graph(self, change: ResourceChange) -> tuple[str, str | None]:
        if change.graph in self._situation.pending:
            return BLOCKED, PENDING
        failed = self._situation.failed.get(change.resource)
        if failed is not None:
            return BLOCKED, failed
        if change.operation == "update":
            return DERIVED, None
        if change.operation == "delete" and change.resource not in self._situation.approved:
            return BLOCKED, APPROVAL_REQUIRED
        return APPLIED, None

    def _schema(self, change: ResourceChange) -> tuple[str, str | None]:
        graph = self._changes.get(f"graph.{change.graph}")
        if change.operation != "update":
            if graph is not None and graph.operation == change.operation:
                return self._graph(graph)
            return DEFERRED, UNSUPPORTED
        if change.graph in self._situation.pending:
            return BLOCKED, PENDING
        failed = self._situation.failed.get(change.resource)
        return (APPLIED, None) if failed is None else (BLOCKED, failed)

    def _query(self, change: ResourceChange) -> tuple[str, str | None]:
        if change.graph in self._situation.pending:
            return BLOCKED, PENDING
        parts = (f"graph.{change.graph}", f"schema.{change.graph}")
        changed = [self._changes[part] for part in parts if part in self._changes]
        exists = change.operation == "delete" or self._will_exist(change.graph)
        if not exists or any(not self.decide(part).is_done for part in changed):
            return BLOCKED, NOT_APPLIED
        return APPLIED, None

    def _policy(self, change: ResourceChange) -> tuple[str, str | None]:
        if change.operation == "delete":
            return APPLIED, None
        scopes = self._declared[change.resource].applies_to or ()
        graphs = [scope.partition(".")[2] for scope in scopes if scope != CLUSTER]
        if any(graph in self._situation.pending for graph in graphs):
            return BLOCKED, PENDING
        if not all(self._will_exist(graph) for graph in graphs):
            return BLOCKED, NOT_APPLIED
        return APPLIED, None

    def _provider(self, change: ResourceChange) -> tuple[str, str | None]:
        if change.operation != "delete":
            return APPLIED, None
        for address, entry in self._state.resources.items():
            if entry.embedding_provider == change.resource:
                user = self._changes.get(address)
                if user is None or not self.decide(user).is_done:
                    return BLOCKED, NOT_APPLIED
        return APPLIED, None

    def _will_exist(self, graph: str) -> bool:
        change = self._changes.get(f"graph.{graph}")
        if change is None or change.operation == "update":
            return f"graph.{graph}" in self._state.resources
        return change.operation == "create" and self.decide(change).is_done


def applied_resources(
    changes: list[ResourceChange], declared: Mapping[str, LedgerEntry], state: ClusterState
) -> dict[str, LedgerEntry]:
    """Return the ledger entries once the applied changes are made."""
    resources = dict(state.resources)
    for change in changes:
        if not change.is_done:
            continue
        if change.operation == "delete":
            resources.pop(change.resource, None)
        else:
            resources[change.resource] = declared[change.resource]
    return resources
