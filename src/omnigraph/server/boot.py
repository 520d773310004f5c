"""This module makes what is served out of what a server was told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from omnigraph.policy import BundleScope, Policy
from omnigraph.policy.policy import read_text
from omnigraph.server.cluster import Declared, read_declared
from omnigraph.server.settings import ALL, Settings
from omnigraph.service.admission import Admission
from omnigraph.service.registry import GraphSource, open_registry
from omnigraph.service.runtime import classify
from omnigraph.service.stored import stored_texts
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
    return Service(
        registry=open_registry(wanted.sources, require_all=settings.require_all),
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
    policy = None
    if settings.server_policy is not None:
        text = read_text(Path(settings.server_policy))
        policy = Policy.parse(text, BundleScope.SERVER)
    sources = [_source(settings, graph_id, uri) for graph_id, uri in settings.graphs.items()]
    policies = bool(settings.policies) or policy is not None
    return Declared(tuple(sources), policies, policy)


def _source(settings: Settings, graph_id: str, uri: str) -> GraphSource:
    folder = settings.queries.get(graph_id, settings.queries.get(ALL))
    file = settings.policies.get(graph_id, settings.policies.get(ALL))
    policy: Callable[[], Policy] | None = None
    if file is not None:
        policy = partial(_policy, Path(file), graph_id)
    return GraphSource(
        id=graph_id,
        uri=uri,
        queries=tuple if folder is None else partial(stored_texts, Path(folder)),
        policy=policy,
        external_blobs=settings.external_blobs,
    )


def _policy(file: Path, graph_id: str) -> Policy:
    return Policy.parse(read_text(file), BundleScope.GRAPH, graph=graph_id)
