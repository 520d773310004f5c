"""Open what a server serves by its settings, and read its files again while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from omnigraph.errors import InvalidInput
from omnigraph.query.budget import PROCESS_MEMORY
from omnigraph.server.cluster import Declared, read_declared
from omnigraph.server.settings import Settings
from omnigraph.service.admission import Admission
from omnigraph.service.registry import open_registry
from omnigraph.service.runtime import RuntimeState, classify
from omnigraph.service.sources import graph_sources, server_policy
from omnigraph.service.tokens import Tokens
from omnigraph.service.visit import Service


def make_service(
    settings: Settings, environment: Mapping[str, str], previous: Service | None = None
) -> Service:
    """Open everything; raise OmniError when it cannot be served as configured.

    Graphs that are open in `previous` stay open.
    """
    if settings.cluster is None:
        wanted = _told(settings)
    else:
        wanted = read_declared(settings.cluster, environment)
    tokens = Tokens.from_environment(environment)
    state = classify(
        tokens=bool(tokens), policies=wanted.policies, unauthenticated=settings.unauthenticated
    )
    PROCESS_MEMORY.set_limit(settings.query_memory_total)
    turns = None if settings.turns is None else Path(settings.turns)
    registry = open_registry(
        wanted.sources,
        require_all=settings.require_all,
        turns=turns,
        previous=None if previous is None else previous.registry,
    )
    return Service(
        registry=registry,
        state=state,
        tokens=tokens,
        policy=wanted.policy,
        admission=Admission.from_environment(environment),
        declared=settings.cluster is not None,
        revision=wanted.revision,
        seconds=settings.query_seconds,
        memory=settings.query_memory,
    )


def remake_service(
    settings: Settings, environment: Mapping[str, str], previous: Service
) -> Service:
    """Read tokens, policies and stored queries again, and keep graphs open.

    Raises OmniError when any of them is invalid, when a graph that is served could no longer be
    served, or when callers would be authenticated in another way than before.
    """
    service = make_service(settings, environment, previous)
    lost = [name for name in service.registry.quarantined if name in previous.registry.graphs]
    if lost:
        reasons = "; ".join(f"{name}: {service.registry.quarantined[name]}" for name in lost)
        raise InvalidInput(f"graphs could not be served: {reasons}", code="graphs_not_served")
    states = {service.state, previous.state}
    if len(states) > 1 and (settings.cluster is None or RuntimeState.OPEN in states):
        message = (
            f"the server would change from {previous.state} to {service.state}; "
            "restart it if that is intended"
        )
        raise InvalidInput(message, code="reload_changes_state")
    return replace(service, admission=previous.admission)


def _told(settings: Settings) -> Declared:
    """Return what is to be served by what a server was told itself."""
    policy = server_policy(settings.server_policy)
    sources = graph_sources(
        settings.graphs,
        queries=settings.queries,
        policies=settings.policies,
        external_blobs=settings.external_blobs,
    )
    policies = bool(settings.policies) or policy is not None
    return Declared(tuple(sources), policies, policy)
