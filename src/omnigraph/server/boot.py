"""This module makes what is served out of what a server was told."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.server.settings import Settings
from omnigraph.service.admission import Admission
from omnigraph.service.registry import open_registry
from omnigraph.service.runtime import classify
from omnigraph.service.sources import graph_sources, server_policy
from omnigraph.service.tokens import Tokens
from omnigraph.service.visit import Service


def make_service(settings: Settings, environment: Mapping[str, str]) -> Service:
    """Open everything; raise OmniError when it cannot be served as it was told."""
    tokens = Tokens.from_environment(environment)
    policies = bool(settings.policies) or settings.server_policy is not None
    state = classify(
        tokens=bool(tokens), policies=policies, unauthenticated=settings.unauthenticated
    )
    policy = server_policy(settings.server_policy)
    sources = graph_sources(
        settings.graphs,
        queries=settings.queries,
        policies=settings.policies,
        external_blobs=settings.external_blobs,
    )
    return Service(
        registry=open_registry(sources, require_all=settings.require_all),
        state=state,
        tokens=tokens,
        policy=policy,
        admission=Admission.from_environment(environment),
        seconds=settings.query_seconds,
        memory=settings.query_memory,
    )
