"""`cluster status`, `refresh` and `import`: compare the ledger with the graphs in storage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from omnigraph.errors import OmniError
from omnigraph.service.cluster.diagnostics import ClusterOperationRefused
from omnigraph.service.cluster.ledger import (
    ClusterState,
    LedgerEntry,
    ResourceStatus,
    to_wire_map,
)
from omnigraph.service.cluster.live_graph import LiveGraph, inspect_graph
from omnigraph.service.cluster.recovery import recover_intents
from omnigraph.service.cluster.resources import DesiredState
from omnigraph.service.cluster.session import ClusterCommandResult, ClusterSession
from omnigraph.service.cluster.store import PAYLOADS


def refresh(folder: Path, options: Mapping[str, str] | None = None) -> ClusterCommandResult:
    """Inspect every declared graph and every content, and update the ledger."""
    return _run_observation(folder, "refresh", options)


def import_state(folder: Path, options: Mapping[str, str] | None = None) -> ClusterCommandResult:
    """Create the ledger of a cluster, with the declared graphs that exist already."""
    return _run_observation(folder, "import", options)


def status(folder: Path, options: Mapping[str, str] | None = None) -> ClusterCommandResult:
    """Report the contents of the ledger, and whether the stored contents exist; take no lock."""
    session = ClusterSession(folder, options)
    if session.config() is not None:
        with session.findings.catching(session.path):
            if session.read().text is None:
                message = "the cluster has no ledger yet; create it with: omnigraph cluster import"
                session.findings.warn("state_missing", session.store.state_path, message)
            _check_payloads(session)
    return session.outcome(**_facts(session))


def _facts(session: ClusterSession) -> dict[str, Any]:
    state = session.ledger.state
    return {
        "state_observations": session.observations(),
        "resource_digests": {a: state.resources[a].digest for a in sorted(state.resources)},
        "resource_statuses": to_wire_map(state.statuses),
        "observations": {a: dict(state.observations[a]) for a in sorted(state.observations)},
    }


def _check_payloads(session: ClusterSession) -> None:
    for address, entry in sorted(session.ledger.state.resources.items()):
        if address.partition(".")[0] not in PAYLOADS:
            continue
        try:
            fault = session.store.payload_fault(address, entry.digest)
        except OmniError as error:
            session.findings.error("catalog_payload_read_error", address, error.message)
            continue
        if fault is not None:
            message = (
                f"its content is {'not there' if fault == 'missing' else 'not what was applied'}"
            )
            code = f"catalog_payload_{fault}"
            session.findings.warn(code, address, f"{message}; apply again after `cluster refresh`")


def _run_observation(
    folder: Path, operation: str, options: Mapping[str, str] | None
) -> ClusterCommandResult:
    session = ClusterSession(folder, options)
    session.run(operation, lambda desired: _observe_graphs(session, desired, operation))
    return session.outcome(operation=operation, **_facts(session))


def _observe_graphs(session: ClusterSession, desired: DesiredState, operation: str) -> None:
    if operation == "refresh":
        base = session.need_state()
    else:
        base = session.read()
        if base.text is not None:
            message = "the cluster has a ledger already; update it with `cluster refresh`"
            raise ClusterOperationRefused("state_already_exists", session.store.state_path, message)
    store, findings = session.store, session.findings
    schemas = desired.schemas
    recovered = recover_intents(store, base.state, schemas, findings)
    state = recovered.state
    for id_, schema in schemas.items():
        live = inspect_graph(store, id_)
        if live.error is not None:
            findings.error("graph_open_failed", f"graph.{id_}", live.error)
        state = _with_observation(state, id_, live, schema)
    state = _without_lost_payloads(session, state)
    if operation == "import" and not findings.ok:
        return
    session.ledger = store.write(base, state.folded())
    recovered.delete_records(store)


def _with_observation(
    state: ClusterState, id_: str, live: LiveGraph, schema: tuple[str, str]
) -> ClusterState:
    """Return the state with the observation of a graph."""
    address, schema_address = f"graph.{id_}", f"schema.{id_}"
    resources, statuses = dict(state.resources), dict(state.statuses)
    observation = live.observation(address, schema)
    if live.error is not None:
        statuses[address] = ResourceStatus("error", ("graph_open_failed",), live.error)
    elif not live.exists:
        for missing in state.addresses_of(id_):
            del resources[missing]
        statuses[address] = statuses[schema_address] = ResourceStatus("drifted", ("graph_missing",))
    else:
        resources[schema_address] = LedgerEntry(observation["schema_digest"])
        resources.setdefault(address, LedgerEntry(""))
        status = ResourceStatus("drifted", ("schema_mismatch",))
        if observation["schema_matches_desired"]:
            status = ResourceStatus("applied")
        statuses[address] = statuses[schema_address] = status
    observations = {**state.observations, address: observation}
    return replace(state, resources=resources, statuses=statuses, observations=observations)


def _without_lost_payloads(session: ClusterSession, state: ClusterState) -> ClusterState:
    """Return the state without contents that are missing or were changed."""
    resources, statuses = dict(state.resources), dict(state.statuses)
    for address, entry in state.resources.items():
        if address.partition(".")[0] not in PAYLOADS:
            continue
        fault = session.store.payload_fault(address, entry.digest)
        if fault is not None:
            del resources[address]
            statuses[address] = ResourceStatus("drifted", (f"payload_{fault}",))
    return replace(state, resources=resources, statuses=statuses)
