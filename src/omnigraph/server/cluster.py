"""This module serves a cluster: what was applied of it, as the ledger says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from omnigraph.embed.config import read_settings
from omnigraph.errors import InvalidInput
from omnigraph.policy import BundleScope, Policy
from omnigraph.service.cluster.serving import ServedGraph, ServedPolicy, read_serving
from omnigraph.service.registry import GraphSource
from omnigraph.service.stored import StoredText


@dataclass(frozen=True, slots=True)
class Declared:
    """The graphs of a cluster, whether any policy decides, and the one of the server itself."""

    sources: tuple[GraphSource, ...]
    policies: bool
    policy: Policy | None
    revision: int | None = None


def read_declared(cluster: str, environment: Mapping[str, str]) -> Declared:
    """Read what a cluster serves; raise ServingRefused when it cannot be served as a whole."""
    serving = read_serving(cluster)
    shared = serving.policy_of(None)
    sources = tuple(
        _source(graph, serving.policy_of(graph.id), environment) for graph in serving.graphs
    )
    policy = None if shared is None else Policy.parse(shared.text, BundleScope.SERVER)
    return Declared(sources, bool(serving.policies), policy, serving.revision)


def _source(
    graph: ServedGraph, policy: ServedPolicy | None, environment: Mapping[str, str]
) -> GraphSource:
    decide: Callable[[], Policy] | None = None
    if policy is not None:
        decide = partial(Policy.parse, policy.text, BundleScope.GRAPH, graph=graph.id)
    return GraphSource(
        id=graph.id,
        uri=graph.uri,
        queries=partial(_texts, graph, environment),
        policy=decide,
        embedding=graph.embedding,
        external_blobs=graph.external_blobs,
    )


def _texts(graph: ServedGraph, environment: Mapping[str, str]) -> Sequence[StoredText]:
    """Return the stored queries of a graph; raise what keeps this graph from being served."""
    if graph.quarantine is not None:
        code, _, reason = graph.quarantine.partition(": ")
        raise InvalidInput(reason, code=code, graph=graph.id)
    if graph.embedding is not None:
        read_settings(graph.embedding, environment)
    return [StoredText(f"{name}.gq", text, name) for name, text in graph.queries.items()]
