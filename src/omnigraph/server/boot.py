"""This module makes what is served out of what a server was told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from omnigraph.query.budget import PROCESS_MEMORY
from omnigraph.server.cluster import Declared, read_declared
from omnigraph.server.settings import Settings
from omnigraph.service.admission import Admission
from omnigraph.service.registry import open_registry
from omnigraph.service.runtime import classify
from omnigraph.service.sources import graph_sources, server_policy
from omnigraph.service.tokens import Tokens
from omnigraph.service.visit import Service


def make_service(settings: Settings, environment: Mapping[str, str]) -> Service:
    """Open everything; raise OmniError when it cannot be served as it was told."""
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
    return Service(
        registry=open_registry(wanted.sources, require_all=settings.require_all, turns=turns),
        state=state,
        tokens=tokens,
        policy=wanted.policy,
        admission=Admission.from_environment(environment),
        declared=settings.cluster is not None,
        seconds=settings.query_seconds,
        memory=settings.query_memory,
    )


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
