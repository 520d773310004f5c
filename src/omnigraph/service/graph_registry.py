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
from omnigraph.policy import BundleScope, Policy
from omnigraph.policy.policy import read_policy_text
from omnigraph.service.stored_queries import (
    StoredQueries,
    StoredQueryFile,
    compile_stored_queries,
    read_query_files,
)
from omnigraph.service.write_queue import WriteQueue

OPEN_CONCURRENCY = 4
RESERVED_GRAPH_IDS = frozenset({"policies", "healthz", "openapi", "graphs"})
_GRAPH_ID = re.compile(r"[a-zA-Z0-9-]{1,64}")
_log = logging.getLogger("omnigraph.service")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSource:
    """A graph to be served: where it is, and what belongs to it.

    `policy` reads the policy when the graph is opened, so that a bad one is that graph's trouble.
    """

    id: str
    uri: str
    queries: Callable[[], Sequence[StoredQueryFile]] = tuple
    policy: Callable[[], Policy] | None = None
    embedding: ProviderChoice = None
    external_blobs: Sequence[str] = ()

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
    write_queue: WriteQueue = field(default_factory=WriteQueue)


@dataclass(frozen=True, slots=True)
class GraphRegistry:
    """The graphs that are served by id, and why others are not."""

    graphs: Mapping[str, RegisteredGraph]
    quarantined: Mapping[str, str] = field(default_factory=dict)

    def get(self, graph_id: str) -> RegisteredGraph:
        """Return a graph by id; one in quarantine is as if it were not there."""
        check_graph_id(graph_id)
        found = self.graphs.get(graph_id)
        if found is None:
            message = f"graph '{graph_id}' not found"
            raise NotFound(message, code="graph_not_found", graph=graph_id)
        return found


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
    lock_dir: Path | None = None,
    previous: GraphRegistry | None = None,
) -> GraphRegistry:
    """Open graphs, some at a time; raise when none can be served, or with `require_all` any.

    `lock_dir` is a folder shared by all processes that serve them. Graphs that are open in
    `previous` stay open; only their stored queries and policies are read again.
    """
    known = {} if previous is None else previous.graphs
    wanted = list(sources)
    ids = [check_graph_id(source.id) for source in wanted]
    for graph_id in sorted({graph_id for graph_id in ids if ids.count(graph_id) > 1}):
        message = f"two graphs are called '{graph_id}'"
        raise InvalidInput(message, code="graph_id_duplicate", graph=graph_id)
    if not wanted:
        raise InvalidInput("there is no graph to serve", code="no_graphs")
    with ThreadPoolExecutor(OPEN_CONCURRENCY) as pool:
        opened = list(
            pool.map(lambda source: _try_open(source, lock_dir, known.get(source.id)), wanted)
        )
    graphs = {found.id: found for found in opened if isinstance(found, RegisteredGraph)}
    failed = {
        source.id: found
        for source, found in zip(wanted, opened, strict=True)
        if isinstance(found, OmniError)
    }
    for graph_id, error in failed.items():
        _log.error("graph '%s' is not served: %s", graph_id, error.message)
    if failed and (require_all or not graphs):
        listed = "\n".join(
            f"  [{e.code}] {graph_id}: {e.message}" for graph_id, e in failed.items()
        )
        raise InvalidInput(f"graphs cannot be served:\n{listed}", code="graphs_not_served")
    return GraphRegistry(graphs, {graph_id: error.message for graph_id, error in failed.items()})


def _try_open(
    source: GraphSource, lock_dir: Path | None, known: RegisteredGraph | None
) -> RegisteredGraph | OmniError:
    try:
        return _open_or_reuse(source, lock_dir, known)
    except OmniError as error:
        return error


def _open_or_reuse(
    source: GraphSource, lock_dir: Path | None, known: RegisteredGraph | None
) -> RegisteredGraph:
    policy = source.policy() if source.policy is not None else None
    if known is not None and not known.source.is_same_graph(source):
        known = None
    graph = known.unrestricted if known is not None else _open(source)
    stored = compile_stored_queries(source.queries(), graph.schema.catalog)
    guarded = graph if policy is None else graph.with_policy(policy)
    return RegisteredGraph(
        id=source.id,
        graph=guarded,
        unrestricted=graph,
        source=source,
        stored=stored,
        policy=policy,
        write_queue=known.write_queue if known is not None else _write_queue(source.id, lock_dir),
    )


def _open(source: GraphSource) -> Graph:
    return open_graph(source.uri, external_blobs=source.external_blobs, embedding=source.embedding)


def _write_queue(graph_id: str, lock_dir: Path | None) -> WriteQueue:
    folder = lock_dir / graph_id if lock_dir is not None else None
    if folder is not None:
        folder.mkdir(exist_ok=True)
    return WriteQueue(folder=folder)


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
    return None if file is None else partial(_graph_policy, Path(file), graph_id)


def _graph_policy(file: Path, graph_id: str) -> Policy:
    return Policy.parse(read_policy_text(file), BundleScope.GRAPH, graph=graph_id)
