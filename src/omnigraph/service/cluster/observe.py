"""This module looks at all graphs of a cluster and brings the ledger up to what is really there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from omnigraph.errors import OmniError
from omnigraph.service.cluster.approvals import consume
from omnigraph.service.cluster.findings import Refused
from omnigraph.service.cluster.ledger import Entry, State, Status
from omnigraph.service.cluster.live import Live, look
from omnigraph.service.cluster.recovery import Swept, sweep
from omnigraph.service.cluster.resources import Desired
from omnigraph.service.cluster.session import Outcome, Session, wire
from omnigraph.service.cluster.store import PAYLOADS, RECOVERIES


def refresh(folder: Path, options: Mapping[str, str] | None = None) -> Outcome:
    """Look at every declared graph and every content, and note in the ledger what is there."""
    return _observe(folder, "refresh", options)


def import_state(folder: Path, options: Mapping[str, str] | None = None) -> Outcome:
    """Make the first ledger of a cluster, with the declared graphs that exist already."""
    return _observe(folder, "import", options)


def status(folder: Path, options: Mapping[str, str] | None = None) -> Outcome:
    """Tell what the ledger says, and whether the contents it names are there; take no lock."""
    session = Session(folder, options)
    if session.config() is not None:
        with session.findings.catching(session.path):
            if session.read().text is None:
                message = "there is no ledger yet; make it with: omnigraph cluster import"
                session.findings.warn("state_missing", session.store.state_path, message)
            _check_payloads(session)
    return session.outcome(**_facts(session))


def _facts(session: Session) -> dict[str, Any]:
    state = session.ledger.state
    return {
        "state_observations": session.observations(),
        "resource_digests": {a: state.resources[a].digest for a in sorted(state.resources)},
        "resource_statuses": wire(state.statuses),
        "observations": {a: dict(state.observations[a]) for a in sorted(state.observations)},
    }


def _check_payloads(session: Session) -> None:
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


def _observe(folder: Path, operation: str, options: Mapping[str, str] | None) -> Outcome:
    session = Session(folder, options)
    desired = session.desired()
    if desired is not None:
        with session.findings.catching(session.path), session.locked(operation, desired.config):
            _run(session, desired, operation)
    return session.outcome(operation=operation, **_facts(session))


def _run(session: Session, desired: Desired, operation: str) -> None:
    if operation == "refresh":
        base = session.need_state()
    else:
        base = session.read()
        if base.text is not None:
            message = "there is a ledger already; `cluster refresh` brings it up to date"
            raise Refused("state_already_exists", session.store.state_path, message)
    store, findings = session.store, session.findings
    digests = desired.digests
    wanted = {id_: (desired.schema(id_), digests[f"schema.{id_}"]) for id_ in desired.config.graphs}
    swept = sweep(store, base.state, wanted, findings)
    state = swept.state
    for id_, schema in wanted.items():
        live = look(store, id_)
        if live.error is not None:
            findings.error("graph_open_failed", f"graph.{id_}", live.error)
        state = _observed(state, id_, live, schema)
    state = _without_lost_payloads(session, state)
    if operation == "import" and not findings.ok:
        return
    session.ledger = store.write(base, state.folded())
    _tidy(session, swept)


def _observed(state: State, id_: str, live: Live, schema: tuple[str, str]) -> State:
    """Return the state with what a look at a graph showed."""
    address, schema_address = f"graph.{id_}", f"schema.{id_}"
    resources, statuses = dict(state.resources), dict(state.statuses)
    observation = live.observation(address, schema)
    if live.error is not None:
        statuses[address] = Status("error", ("graph_open_failed",), live.error)
    elif not live.exists:
        gone = [a for a in resources if a in (address, schema_address) or _asks(a, id_)]
        for lost in gone:
            del resources[lost]
        statuses[address] = statuses[schema_address] = Status("drifted", ("graph_missing",))
    else:
        resources[schema_address] = Entry(observation["schema_digest"])
        resources.setdefault(address, Entry(""))
        matches = observation["schema_matches_desired"]
        found = Status("applied") if matches else Status("drifted", ("schema_mismatch",))
        statuses[address] = statuses[schema_address] = found
    observations = {**state.observations, address: observation}
    return replace(state, resources=resources, statuses=statuses, observations=observations)


def _asks(address: str, graph: str) -> bool:
    return address.startswith(f"query.{graph}.")


def _without_lost_payloads(session: Session, state: State) -> State:
    """Return the state without the contents that are gone or not what they should be."""
    resources, statuses = dict(state.resources), dict(state.statuses)
    for address, entry in state.resources.items():
        if address.partition(".")[0] not in PAYLOADS:
            continue
        fault = session.store.payload_fault(address, entry.digest)
        if fault is not None:
            del resources[address]
            statuses[address] = Status("drifted", (f"payload_{fault}",))
    return replace(state, resources=resources, statuses=statuses)


def _tidy(session: Session, swept: Swept) -> None:
    for operation in swept.settled:
        session.store.delete_record(RECOVERIES, operation)
    for approval, operation in swept.approvals.items():
        consume(session.store, approval, operation)
