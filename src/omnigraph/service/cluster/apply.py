"""`cluster apply`: make a cluster what its configuration declares.

Graphs move first, each after a record of what is about to happen; then contents are stored under
their digests; then one compare-and-swap of the ledger makes all of it the applied revision. Killed
in between, the next command finds the records and goes on from what really happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from omnigraph.errors import AlreadyExists, Category, OmniError
from omnigraph.graph import init as create_graph
from omnigraph.graph import open as open_graph
from omnigraph.service.cluster.approvals import valid_approvals
from omnigraph.service.cluster.diagnostics import ClusterOperationRefused
from omnigraph.service.cluster.ledger import ClusterState, ResourceStatus, to_wire_map
from omnigraph.service.cluster.live_graph import inspect_graph
from omnigraph.service.cluster.recovery import (
    CREATE,
    DELETE,
    MIGRATE,
    ClusterIntent,
    RecoveredState,
    recover_intents,
    remove_graph_entries,
    write_intent,
)
from omnigraph.service.cluster.resource_changes import (
    APPLIED,
    BLOCKED,
    DEFERRED,
    ApplyConditions,
    ResourceChange,
    applied_resources,
    changes_requiring_approval,
    classify_changes,
    diff_resources,
)
from omnigraph.service.cluster.resources import DesiredState
from omnigraph.service.cluster.serving import graph_policy
from omnigraph.service.cluster.session import ClusterCommandResult, ClusterSession
from omnigraph.service.cluster.store import PAYLOADS, RECOVERIES

_SKIP_WARNINGS = {
    BLOCKED: ("apply_dependency_blocked", "blocked"),
    DEFERRED: ("apply_unsupported_change", "not supported by apply"),
}
_UNCERTAIN_CATEGORIES = (Category.UNAVAILABLE, Category.OUTCOME_UNKNOWN, Category.INTERNAL)
StepObserver = Callable[[str], None]
"""Called with every step before it is taken; tests stop an apply there."""


def apply(
    folder: Path,
    *,
    actor: str | None = None,
    options: Mapping[str, str] | None = None,
    observer: StepObserver | None = None,
) -> ClusterCommandResult:
    """Make a cluster what its configuration declares."""
    session = ClusterSession(folder, options)
    run = _ApplyRun(session, actor, observer or (lambda _: None))
    desired = session.run("apply", run.go)
    facts: dict[str, Any] = {} if actor is None else {"actor": actor}
    return session.outcome(
        **facts,
        desired_revision={} if desired is None else {"config_digest": desired.digest},
        state_observations=session.observations(),
        changes=[change.to_json() for change in run.changes],
        applied_count=sum(change.is_done for change in run.changes),
        deferred_count=sum(not change.is_done for change in run.changes),
        converged=run.converged,
        state_written=run.written,
        resource_statuses=to_wire_map(session.ledger.state.statuses),
    )


class _ApplyRun:
    """One apply, from recovery to the ledger."""

    _desired: DesiredState

    def __init__(self, session: ClusterSession, actor: str | None, observer: StepObserver) -> None:
        self._session = session
        self._actor = actor
        self._observer = observer
        self._failed: dict[str, str] = {}
        self._approved: dict[str, str] = {}
        self._swept = RecoveredState(ClusterState())
        self._open: ClusterIntent | None = None
        self.changes: list[ResourceChange] = []
        self.converged = False
        self.written = False

    def go(self, desired: DesiredState) -> None:
        """Apply every change that can be made now."""
        self._desired = desired
        base = self._session.need_state()
        self._check_digests(base.state)
        store, findings = self._session.store, self._session.findings
        self._swept = recover_intents(store, base.state, self._desired.schemas, findings)
        if not findings.ok:
            return
        self._decide()
        self._move("create", "graph", self._create)
        self._move("update", "schema", self._migrate)
        self._store_payloads()
        self._move("delete", "graph", self._delete)
        state = self._applied()
        self._observer("write the ledger")
        newest = store.write(base, state)
        self.written = newest.text != base.text
        self._session.ledger = newest
        self._swept.delete_records(store, self._observer)
        self._warn_of_skipped()

    def _check_digests(self, state: ClusterState) -> None:
        for graph in state.graph_ids:
            if state.graph_digest(graph) not in (None, state.resources[f"graph.{graph}"].digest):
                message = "the ledger entry of the graph does not match its digest"
                raise ClusterOperationRefused(
                    "external_blob_policy_digest_mismatch", f"graph.{graph}", message
                )

    def _decide(self) -> None:
        """Classify every change, given the failures so far."""
        state, entries = self._swept.state, self._desired.entries
        changes = diff_resources(entries, state)
        if not self._approved:
            store, digest = self._session.store, self._desired.digest
            self._approved = valid_approvals(
                store, changes_requiring_approval(changes), digest, self._session.findings
            )
        situation = ApplyConditions(self._swept.pending, self._approved, self._failed)
        self.changes = classify_changes(changes, entries, state, situation)

    # --- graphs

    def _move(self, operation: str, kind: str, action: Callable[[ResourceChange], None]) -> None:
        """Change graphs one by one; after the first failure the others are skipped."""
        word = {"create": "graph_create", "update": "schema_apply", "delete": "graph_delete"}
        for change in self.changes:
            if (change.operation, change.kind, change.disposition) != (operation, kind, APPLIED):
                continue
            failure = f"{word[operation]}_failed"
            if self._failed:
                self._failed[change.resource] = failure
                message = "skipped, because an earlier graph failed"
                code = f"{word[operation]}_skipped"
                self._session.findings.warn(code, change.resource, message)
                continue
            try:
                action(change)
            except OmniError as error:
                self._failed[change.resource] = failure
                self._session.findings.error(failure, change.resource, error.message)
                self._give_up(error)
            else:
                self._swept.settled += [] if self._open is None else [self._open.operation_id]
            self._open = None
        if self._failed:
            self._decide()

    def _intent(self, change: ResourceChange, kind: str, **facts: Any) -> ClusterIntent:  # noqa: ANN401
        intent = ClusterIntent(
            kind=kind,
            graph_id=change.graph,
            graph_uri=self._session.store.graph_uri(change.graph),
            actor=self._actor,
            state_cas_base=self._session.ledger.token,
            **facts,
        )
        self._observer(f"{kind}: record {change.graph}")
        write_intent(self._session.store, intent)
        self._open = intent
        return intent

    def _give_up(self, error: OmniError) -> None:
        """Delete the record of a failed operation if it certainly had no effect."""
        if self._open is not None and error.category not in _UNCERTAIN_CATEGORIES:
            self._session.store.delete_record(RECOVERIES, self._open.operation_id)

    def _create(self, change: ResourceChange) -> None:
        store = self._session.store
        text, digest = self._desired.schemas[change.graph]
        intent = self._intent(change, CREATE, desired_schema_digest=digest)
        self._observer(f"{CREATE}: make {change.graph}")
        location = store.graph_location(change.graph)
        try:
            graph = create_graph(location.uri, text, storage_options=dict(location.options))
        except AlreadyExists as error:
            message = f"{error.message}; `cluster refresh` adds it to the ledger"
            raise AlreadyExists(message) from error
        version = graph.snapshot().manifest_version
        self._observer(f"{CREATE}: note {change.graph}")
        write_intent(store, replace(intent, expected_manifest_version=version))

    def _migrate(self, change: ResourceChange) -> None:
        store = self._session.store
        live = inspect_graph(store, change.graph)
        if live.graph is None:
            message = (
                live.error
                or "the graph does not exist; `cluster refresh` removes it from the ledger"
            )
            raise ClusterOperationRefused("schema_apply_failed", change.resource, message)
        text = self._desired.schema(change.graph)
        intent = self._intent(
            change,
            MIGRATE,
            desired_schema_digest=change.after,
            observed_manifest_version=live.manifest_version,
        )
        self._observer(f"{MIGRATE}: change {change.graph}")
        location = store.graph_location(change.graph)
        graph = open_graph(location.uri, storage_options=dict(location.options))
        acting = graph if self._actor is None else graph.as_actor(self._actor)
        policy = graph_policy(store, self._session.ledger.state, change.graph)
        if policy is not None and (policy.bundle.protection or graph.protection.rules):
            acting = acting.with_policy(policy)
        done = acting.schema.apply(text)
        self._observer(f"{MIGRATE}: note {change.graph}")
        write_intent(store, replace(intent, expected_manifest_version=done.manifest_version))

    def _delete(self, change: ResourceChange) -> None:
        intent = self._intent(change, DELETE, approval_id=self._approved[change.resource])
        self._observer(f"{DELETE}: remove {change.graph}")
        self._session.store.remove_graph(change.graph)
        self._observer(f"{DELETE}: removed {change.graph}")
        remove_graph_entries(self._swept, intent)

    # --- contents and ledger

    def _store_payloads(self) -> None:
        for change in self.changes:
            if change.kind not in PAYLOADS or change.disposition != APPLIED:
                continue
            if change.operation != "delete":
                resource = self._desired.resources[change.resource]
                self._observer(f"store {change.resource}")
                digest, content = resource.entry.digest, resource.content
                self._session.store.put_payload(change.resource, digest, content)

    def _applied(self) -> ClusterState:
        """Return the state with everything that was done."""
        state, entries = self._swept.state, self._desired.entries
        resources = applied_resources(self.changes, entries, state)
        folded = replace(state, resources=resources).folded()
        self.converged = not diff_resources(entries, folded)
        digest = self._desired.digest if self.converged else state.config_digest
        return replace(
            folded,
            statuses=self._statuses(folded),
            config_digest=digest,
            observations={**state.observations, **self._observations()},
        )

    def _observations(self) -> dict[str, dict[str, Any]]:
        """Read every changed graph again."""
        moved = {c.graph for c in self.changes if c.kind == "schema" and c.is_done}
        schemas = self._desired.schemas
        return {
            f"graph.{id_}": inspect_graph(self._session.store, id_).observation(
                f"graph.{id_}", schemas[id_]
            )
            for id_ in sorted(moved & set(schemas))
        }

    def _statuses(self, state: ClusterState) -> dict[str, ResourceStatus]:
        statuses = {a: status for a, status in state.statuses.items() if a in state.resources}
        for change in self.changes:
            if not change.is_done:
                failed = change.reason in self._failed.values()
                status = {BLOCKED: "blocked", DEFERRED: "pending"}[change.disposition or ""]
                reasons = (change.reason or "",)
                statuses[change.resource] = ResourceStatus("error" if failed else status, reasons)
            elif change.operation != "delete":
                statuses[change.resource] = ResourceStatus("applied")
        for address in state.resources:
            statuses.setdefault(address, ResourceStatus("applied"))
        unsettled = {f"graph.{graph}" for graph in self._swept.pending}
        kept = {a: status for a, status in state.statuses.items() if a in unsettled}
        return {**statuses, **kept}

    def _warn_of_skipped(self) -> None:
        for change in self.changes:
            if change.disposition in _SKIP_WARNINGS:
                code, problem = _SKIP_WARNINGS[change.disposition]
                message = f"{change.operation} is {problem}: {change.reason}"
                self._session.findings.warn(code, change.resource, message)
