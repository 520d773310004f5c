"""Open what a server serves by its settings, and read its files again while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from omnigraph.embed.config import read_settings
from omnigraph.errors import InvalidInput
from omnigraph.policy import BundleScope, Policy
from omnigraph.query.limits import PROCESS_MEMORY
from omnigraph.server.settings import ServerSettings
from omnigraph.service.admission import AdmissionControl
from omnigraph.service.auth import AuthMode, TokenStore, choose_auth_mode
from omnigraph.service.cluster.serving import ServedGraph, ServedPolicy, read_applied_revision
from omnigraph.service.graph_registry import (
    GraphSource,
    graph_sources,
    open_registry,
    server_policy,
)
from omnigraph.service.session import GraphService
from omnigraph.service.stored_queries import StoredQueryFile

# A cluster: what its ledger says was applied.


@dataclass(frozen=True, slots=True)
class ServiceSources:
    """The graphs of a cluster, whether any policy decides, and the one of the server itself."""

    sources: tuple[GraphSource, ...]
    policies: bool
    policy: Policy | None
    revision: int | None = None


def read_cluster_sources(cluster: str, environment: Mapping[str, str]) -> ServiceSources:
    """Read what a cluster serves; raise ServingRefused when it cannot be served as a whole."""
    serving = read_applied_revision(cluster)
    shared = serving.policy_of(None)
    sources = tuple(
        _graph_source(graph, serving.policy_of(graph.id), environment) for graph in serving.graphs
    )
    policy = None if shared is None else Policy.parse(shared.text, BundleScope.SERVER)
    return ServiceSources(sources, bool(serving.policies), policy, serving.revision)


def _graph_source(
    graph: ServedGraph, policy: ServedPolicy | None, environment: Mapping[str, str]
) -> GraphSource:
    decide: Callable[[], Policy] | None = None
    if policy is not None:
        decide = partial(Policy.parse, policy.text, BundleScope.GRAPH, graph=graph.id)
    return GraphSource(
        id=graph.id,
        uri=graph.uri,
        queries=partial(_stored_query_texts, graph, environment),
        checks=graph.checks,
        policy=decide,
        embedding=graph.embedding,
        external_blobs=graph.external_blobs,
    )


def _stored_query_texts(
    graph: ServedGraph, environment: Mapping[str, str]
) -> Sequence[StoredQueryFile]:
    """Return the stored queries of a graph; raise what keeps this graph from being served."""
    if graph.quarantine is not None:
        code, _, reason = graph.quarantine.partition(": ")
        raise InvalidInput(reason, code=code, graph=graph.id)
    if graph.embedding is not None:
        read_settings(graph.embedding, environment)
    return [StoredQueryFile(f"{name}.gq", text, name) for name, text in graph.queries.items()]


def build_service(
    settings: ServerSettings, environment: Mapping[str, str], previous: GraphService | None = None
) -> GraphService:
    """Open everything; raise OmniError when it cannot be served as configured.

    Graphs that are open in `previous` stay open.
    """
    if settings.cluster is None:
        wanted = _configured_sources(settings)
    else:
        wanted = read_cluster_sources(settings.cluster, environment)
    tokens, state = _authentication(settings, environment, policies=wanted.policies)
    PROCESS_MEMORY.set_limit(settings.query_memory_total)
    registry = open_registry(
        [replace(source, durability=settings.durability) for source in wanted.sources],
        require_all=settings.require_all,
        previous=None if previous is None else previous.registry,
    )
    return GraphService(
        registry=registry,
        state=state,
        tokens=tokens,
        policy=wanted.policy,
        admission=AdmissionControl.from_environment(environment),
        declared=settings.cluster is not None,
        local=settings.studio is not None,
        revision=wanted.revision,
        seconds=settings.query_seconds,
        memory=settings.query_memory,
    )


def _authentication(
    settings: ServerSettings, environment: Mapping[str, str], *, policies: bool
) -> tuple[TokenStore, AuthMode]:
    """Return the tokens and the mode; a local server has one token, and is open to its actor."""
    if settings.studio is not None:
        tokens = TokenStore.of([(settings.studio.actor, [settings.studio.token])])
        return tokens, AuthMode.POLICY_ENABLED if policies else AuthMode.OPEN
    tokens = TokenStore.from_environment(environment)
    mode = choose_auth_mode(
        tokens=bool(tokens), policies=policies, unauthenticated=settings.unauthenticated
    )
    return tokens, mode


def rebuild_service(
    settings: ServerSettings, environment: Mapping[str, str], previous: GraphService
) -> GraphService:
    """Read tokens, policies and stored queries again, and keep graphs open.

    Raises OmniError when any of them is invalid, when a graph that is served could no longer be
    served, or when callers would be authenticated in another way than before.
    """
    service = build_service(settings, environment, previous)
    lost = [name for name in service.registry.quarantined if name in previous.registry.graphs]
    if lost:
        reasons = "; ".join(f"{name}: {service.registry.quarantined[name]}" for name in lost)
        raise InvalidInput(f"graphs could not be served: {reasons}", code="graphs_not_served")
    states = {service.state, previous.state}
    if len(states) > 1 and (settings.cluster is None or AuthMode.OPEN in states):
        message = (
            f"the server would change from {previous.state} to {service.state}; "
            "restart it if that is intended"
        )
        raise InvalidInput(message, code="reload_changes_state")
    return replace(service, admission=previous.admission)


def _configured_sources(settings: ServerSettings) -> ServiceSources:
    """Return what to serve by the settings of the server itself."""
    policy = server_policy(settings.server_policy)
    sources = graph_sources(
        settings.graphs,
        queries=settings.queries,
        policies=settings.policies,
        external_blobs=settings.external_blobs,
    )
    policies = bool(settings.policies) or policy is not None
    return ServiceSources(tuple(sources), policies, policy)
