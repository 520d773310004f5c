"""Registry of served graphs; one that cannot be opened does not stop the others."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from omnigraph.embed.embedder import ProviderChoice
from omnigraph.errors import InvalidInput, NotFound, OmniError
from omnigraph.graph import Graph
from omnigraph.graph import open as open_graph
from omnigraph.graph.modes import Durability
from omnigraph.policy import BundleScope, Policy
from omnigraph.policy.policy import read_policy_text
from omnigraph.service.stored_queries import (
    StoredQueries,
    StoredQueryFile,
    compile_stored_queries,
    read_query_files,
)

OPEN_CONCURRENCY = 4
RESERVED_GRAPH_IDS = frozenset({"policies", "healthz", "openapi", "graphs"})
_GRAPH_ID = re.compile(r"[a-zA-Z0-9-]{1,64}")
_log = logging.getLogger("omnigraph.service")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSource:
    """A graph to be served: its address, stored queries, policy and settings.

    `policy` reads the policy when the graph is opened, so that an invalid one affects only it.
    """

    id: str
    uri: str
    queries: Callable[[], Sequence[StoredQueryFile]] = tuple
    checks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    policy: Callable[[], Policy] | None = None
    embedding: ProviderChoice = None
    external_blobs: Sequence[str] = ()
    durability: Durability | None = None

    def is_same_graph(self, other: GraphSource) -> bool:
        """Return whether an open handle of this graph also serves the other one."""
        mine, theirs = (
            (source.uri, source.embedding, tuple(source.external_blobs)) for source in (self, other)
        )
        return mine == theirs


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredGraph:
    """A graph that is served; `unrestricted` is the same graph without its policy."""

    id: str
    graph: Graph
    unrestricted: Graph
    source: GraphSource
    stored: StoredQueries = field(default_factory=StoredQueries)
    policy: Policy | None = None


@dataclass(frozen=True, slots=True)
class GraphRegistry:
    """The graphs that are served by id, and why others are not."""

    graphs: Mapping[str, RegisteredGraph]
    quarantined: Mapping[str, str] = field(default_factory=dict)

    def get(self, graph_id: str) -> RegisteredGraph:
        """Return a graph by ID; a quarantined one is not found."""
        check_graph_id(graph_id)
        if graph_id not in self.graphs:
            message = f"graph '{graph_id}' not found"
            raise NotFound(message, code="graph_not_found", graph=graph_id)
        return self.graphs[graph_id]


def check_graph_id(graph_id: str) -> str:
    """Return an id that can stand in an address, or raise InvalidInput."""
    if _GRAPH_ID.fullmatch(graph_id) is None or graph_id in RESERVED_GRAPH_IDS:
        message = (
            f"'{graph_id[:64]}' cannot be the id of a graph: use up to 64 letters, digits and `-`, "
            f"and none of {', '.join(sorted(RESERVED_GRAPH_IDS))}"
        )
        raise InvalidInput(message, code="graph_id_invalid")
    return graph_id


def open_registry(
    sources: Iterable[GraphSource],
    *,
    require_all: bool = False,
    previous: GraphRegistry | None = None,
) -> GraphRegistry:
    """Open graphs, some at a time; raise when none can be served, or with `require_all` any.

    Graphs that are open in `previous` stay open; only their stored queries and policies are read
    again.
    """
    open_graphs = {} if previous is None else previous.graphs
    listed = list(sources)
    ids = [check_graph_id(source.id) for source in listed]
    for graph_id in sorted({graph_id for graph_id in ids if ids.count(graph_id) > 1}):
        message = f"two graphs are called '{graph_id}'"
        raise InvalidInput(message, code="graph_id_duplicate", graph=graph_id)
    if not listed:
        raise InvalidInput("there is no graph to serve", code="no_graphs")
    with ThreadPoolExecutor(OPEN_CONCURRENCY) as pool:
        previous_graphs = (open_graphs.get(graph_id) for graph_id in ids)
        opened = list(pool.map(_try_open, listed, previous_graphs))
    graphs = {result.id: result for result in opened if isinstance(result, RegisteredGraph)}
    failed = {
        graph_id: result
        for graph_id, result in zip(ids, opened, strict=True)
        if isinstance(result, OmniError)
    }
    for graph_id, error in failed.items():
        _log.error("graph '%s' is not served: %s", graph_id, error.message)
    if failed and (require_all or not graphs):
        lines = (f"\n  [{e.code}] {graph_id}: {e.message}" for graph_id, e in failed.items())
        raise InvalidInput(f"graphs cannot be served:{''.join(lines)}", code="graphs_not_served")
    return GraphRegistry(graphs, {graph_id: error.message for graph_id, error in failed.items()})


def _try_open(source: GraphSource, previous: RegisteredGraph | None) -> RegisteredGraph | OmniError:
    """Open a graph, or use its open handle again; return an error instead of raising it."""
    if previous is not None and not previous.source.is_same_graph(source):
        previous = None
    try:
        policy = source.policy() if source.policy is not None else None
        if previous is not None:
            graph = previous.unrestricted
        else:
            blobs, embedding = source.external_blobs, source.embedding
            graph = open_graph(
                source.uri,
                external_blobs=blobs,
                embedding=embedding,
                durability=source.durability,
            )
        return RegisteredGraph(
            id=source.id,
            graph=graph if policy is None else graph.with_policy(policy),
            unrestricted=graph,
            source=source,
            stored=compile_stored_queries(source.queries(), graph.schema.catalog, source.checks),
            policy=policy,
        )
    except OmniError as error:
        return error


# Graphs to open, each with its stored queries and its policy.


ALL_GRAPHS = ""
"""In place of the id of a graph: every graph that has nothing of its own."""


def graph_sources(
    graphs: Mapping[str, str],
    *,
    queries: Mapping[str, str],
    policies: Mapping[str, str],
    external_blobs: Sequence[str] = (),
) -> list[GraphSource]:
    """Return graphs by id and address; `queries` and `policies` are folders and files by id."""
    return [
        GraphSource(
            id=graph_id,
            uri=uri,
            queries=_queries(queries.get(graph_id, queries.get(ALL_GRAPHS))),
            policy=_policy(policies.get(graph_id, policies.get(ALL_GRAPHS)), graph_id),
            external_blobs=external_blobs,
        )
        for graph_id, uri in graphs.items()
    ]


def server_policy(file: str | None) -> Policy | None:
    """Return the policy of the server itself, if there is one."""
    if file is None:
        return None
    return Policy.parse(read_policy_text(Path(file)), BundleScope.SERVER)


def _queries(folder: str | None) -> Callable[[], Sequence[StoredQueryFile]]:
    return tuple if folder is None else partial(read_query_files, Path(folder))


def _policy(file: str | None, graph_id: str) -> Callable[[], Policy] | None:
    if file is None:
        return None
    return lambda: Policy.parse(read_policy_text(Path(file)), BundleScope.GRAPH, graph=graph_id)
