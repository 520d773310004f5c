"""Recovery of interrupted cluster commands.

Before a command creates, migrates or deletes a graph, it records its intent. A later command reads
that record, inspects the graph, and either adds the change to the ledger or deletes the record. If
neither is certain, the record stays and the graph is not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace

from ulid import ULID

from omnigraph.service.cluster.approvals import add_consumed_approval, consume_approval
from omnigraph.service.cluster.diagnostics import ClusterDiagnostics, ClusterOperationRefused
from omnigraph.service.cluster.ledger import (
    ClusterState,
    LedgerEntry,
    ResourceStatus,
    content_digest,
)
from omnigraph.service.cluster.live_graph import LiveGraph, inspect_graph, utc_now_text
from omnigraph.service.cluster.store import RECOVERIES, ClusterStore, read_record

CREATE = "graph_create"
MIGRATE = "schema_apply"
DELETE = "graph_delete"
_KINDS = (CREATE, MIGRATE, DELETE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterIntent:
    """The change that a command is about to make to a graph."""

    operation_id: str = field(default_factory=lambda: str(ULID()))
    started_at: str = field(default_factory=utc_now_text)
    actor: str | None = None
    kind: str
    graph_id: str
    graph_uri: str
    observed_manifest_version: int | None = None
    expected_manifest_version: int | None = None
    desired_schema_digest: str | None = None
    state_cas_base: str | None = None
    approval_id: str | None = None


def write_intent(store: ClusterStore, intent: ClusterIntent) -> None:
    """Record what is about to happen."""
    store.put_record(RECOVERIES, intent.operation_id, asdict(intent))


def read_intents(store: ClusterStore) -> list[ClusterIntent]:
    """Return the recorded intents, oldest first; raise if one cannot be read."""
    intents = []
    for id_, facts in store.records(RECOVERIES).items():
        intent = read_record(ClusterIntent, facts)
        if intent is None or intent.operation_id != id_ or intent.kind not in _KINDS:
            message = "the record of an interrupted operation cannot be read; inspect it"
            path = store.root.child(f"{RECOVERIES}/{id_}.json")
            raise ClusterOperationRefused("recovery_sidecar_read_error", path, message)
        intents.append(intent)
    return intents


@dataclass(slots=True)
class RecoveredState:
    """A state after recovery; records in `settled` are deleted once the state is written."""

    state: ClusterState
    pending: set[str] = field(default_factory=set)
    settled: list[str] = field(default_factory=list)
    approvals: dict[str, str] = field(default_factory=dict)
    """Consumed approvals, each with the operation that consumed it."""

    def delete_records(
        self, store: ClusterStore, observer: Callable[[str], None] = lambda _: None
    ) -> None:
        """Delete the records of changes that the ledger now has."""
        for operation in self.settled:
            observer(f"forget {operation}")
            store.delete_record(RECOVERIES, operation)
        for approval, operation in self.approvals.items():
            consume_approval(store, approval, operation)


def recover_intents(
    store: ClusterStore,
    state: ClusterState,
    declared: Mapping[str, tuple[str, str]],
    findings: ClusterDiagnostics,
) -> RecoveredState:
    """Settle every record; `declared` has the schema of each declared graph and its digest."""
    swept = RecoveredState(state)
    for intent in read_intents(store):
        settled = (
            _settle_delete(store, intent, swept, findings)
            if intent.kind == DELETE
            else _settle_intent(
                inspect_graph(store, intent.graph_id), intent, swept, (declared, findings)
            )
        )
        if settled:
            swept.settled.append(intent.operation_id)
        else:
            swept.pending.add(intent.graph_id)
    return swept


def _settle_intent(
    live: LiveGraph,
    intent: ClusterIntent,
    swept: RecoveredState,
    context: tuple[Mapping[str, tuple[str, str]], ClusterDiagnostics],
) -> bool:
    """Settle the record of a creation or a migration; return whether it can be removed."""
    declared, findings = context
    address = f"graph.{intent.graph_id}"
    if live.error is not None:
        _unopened(live, intent, swept, findings)
        return False
    if not live.exists:
        return True
    recorded = swept.state.resources.get(f"schema.{intent.graph_id}")
    if _is_applied(live, intent, declared.get(intent.graph_id)):
        if recorded is None or recorded.digest != intent.desired_schema_digest:
            _roll_forward(intent, swept)
            message = f"an interrupted {intent.kind} had succeeded and is now in the ledger"
            findings.warn("cluster_recovery_rolled_forward", address, message)
        return True
    unmoved = live.manifest_version == intent.observed_manifest_version
    if unmoved or (recorded is not None and live.digest() == recorded.digest):
        return True
    status = ResourceStatus(
        "drifted", ("actual_applied_state_pending",), "its schema is neither old nor new"
    )
    _set_status(swept, address, status)
    message = f"an interrupted {intent.kind} left a schema that is neither the old nor the new one"
    findings.warn("cluster_recovery_pending", address, message)
    return False


def _is_applied(live: LiveGraph, intent: ClusterIntent, declared: tuple[str, str] | None) -> bool:
    """Return whether a graph has the schema of the interrupted change."""
    assert live.schema is not None, "it opens"
    if content_digest(live.schema.encode()) == intent.desired_schema_digest:
        return True
    if declared is None or declared[1] != intent.desired_schema_digest:
        return False
    return live.digest(*declared) == intent.desired_schema_digest


def _unopened(
    live: LiveGraph, intent: ClusterIntent, swept: RecoveredState, findings: ClusterDiagnostics
) -> None:
    address = f"graph.{intent.graph_id}"
    if intent.kind == CREATE:
        _set_status(
            swept, address, ResourceStatus("error", ("graph_create_incomplete",), live.error)
        )
        message = f"its creation was interrupted and it does not open: {live.error}"
        findings.error("graph_create_incomplete", address, message)
        return
    message = (
        f"an interrupted {intent.kind} cannot be recovered, the graph does not open: {live.error}"
    )
    findings.warn("cluster_recovery_pending", address, message)


def _settle_delete(
    store: ClusterStore, intent: ClusterIntent, swept: RecoveredState, findings: ClusterDiagnostics
) -> bool:
    address = f"graph.{intent.graph_id}"
    if store.has_graph_files(intent.graph_id):
        message = "its deletion was interrupted; it is planned again"
        findings.warn("graph_delete_incomplete", address, message)
        return True
    remove_graph_entries(swept, intent)
    _record(intent, swept)
    message = "an interrupted graph_delete had succeeded and is now in the ledger"
    findings.warn("cluster_recovery_rolled_forward", address, message)
    return True


def remove_graph_entries(swept: RecoveredState, intent: ClusterIntent) -> None:
    """Remove a deleted graph, its schema and its queries from the ledger."""
    graph, state = intent.graph_id, swept.state
    gone = state.addresses_of(graph)
    tombstone = {
        "kind": "tombstone",
        "deleted_at": utc_now_text(),
        "approval_id": intent.approval_id,
        "actor": intent.actor,
    }
    swept.state = replace(
        state,
        resources={a: entry for a, entry in state.resources.items() if a not in gone},
        statuses={a: status for a, status in state.statuses.items() if a not in gone},
        observations={**state.observations, f"graph.{graph}": tombstone},
        approvals=add_consumed_approval(state.approvals, intent.approval_id, intent.operation_id),
    )
    if intent.approval_id is not None:
        swept.approvals[intent.approval_id] = intent.operation_id


def _roll_forward(intent: ClusterIntent, swept: RecoveredState) -> None:
    state, graph = swept.state, intent.graph_id
    assert intent.desired_schema_digest is not None, "a creation or migration has a schema"
    resources = dict(state.resources)
    resources[f"schema.{graph}"] = LedgerEntry(intent.desired_schema_digest)
    resources.setdefault(f"graph.{graph}", LedgerEntry(""))
    swept.state = replace(state, resources=resources).folded()
    for address in (f"graph.{graph}", f"schema.{graph}"):
        _set_status(swept, address, ResourceStatus("applied"))
    _record(intent, swept)


def _record(intent: ClusterIntent, swept: RecoveredState) -> None:
    record = {
        "kind": intent.kind,
        "graph_id": intent.graph_id,
        "outcome": "rolled_forward",
        "recovered_at": utc_now_text(),
        "actor": intent.actor,
    }
    recoveries = {**swept.state.recoveries, intent.operation_id: record}
    swept.state = replace(swept.state, recoveries=recoveries)


def _set_status(swept: RecoveredState, address: str, status: ResourceStatus) -> None:
    swept.state = replace(swept.state, statuses={**swept.state.statuses, address: status})
