"""Operations of the server itself: health, readiness, the list of graphs."""

from __future__ import annotations

from omnigraph.errors import NotFound
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.auth import AuthMode
from omnigraph.service.operations.access import ANYONE, on_server
from omnigraph.service.operations.links import GRAPH, Link, from_answer
from omnigraph.service.operations.operation import Access, Tool, operation
from omnigraph.service.session import GraphSession, ServiceSession
from omnigraph.version import INTERNAL_SCHEMA_VERSION, __version__


@operation(
    name="health",
    path="/healthz",
    tag="health",
    summary="Report that the server is running",
    access=ANYONE,
    public=True,
    immediate=True,
    tools=(Tool(name="health", description="Report that the server is running, and its version."),),
)
def health(_: ServiceSession, __: wire.NoRequest) -> wire.HealthOutput:
    """Return the version of the server; it answers also while all threads are busy."""
    return _health()


@operation(
    name="graphHealth",
    route="GET /healthz",
    tag="health",
    summary="Report that the server is running and serves a graph",
    access=ANYONE,
    extension=True,
    immediate=True,
)
def graph_health(_: GraphSession, __: wire.NoRequest) -> wire.HealthOutput:
    """Return the version of the server, to clients that only have the address of a graph."""
    return _health()


def _health() -> wire.HealthOutput:
    return wire.HealthOutput(
        status="ok", version=__version__, internal_schema_version=INTERNAL_SCHEMA_VERSION
    )


@operation(
    name="ready",
    path="/readyz",
    tag="health",
    summary="Report whether the storage of the graphs answers",
    errors=(503,),
    access=ANYONE,
    public=True,
    extension=True,
    handler="ready",
)
def ready(session: ServiceSession, _: wire.NoRequest) -> wire.ReadyOutput:
    """Return how many graphs have storage that answers, and the served revision of a cluster.

    The answer has status 503 when the storage of no graph answers.
    """
    graphs = len(session.service.registry.graphs)
    return ready_output(graphs, graphs, session.service.revision)


@operation(
    name="graphReady",
    route="GET /readyz",
    tag="health",
    summary="Report whether the storage of a graph answers",
    errors=(400, 404, 503),
    access=ANYONE,
    extension=True,
    handler="graph_ready",
)
def graph_ready(_: GraphSession, __: wire.NoRequest) -> wire.ReadyOutput:
    """Return that the storage of one graph answers; status 503 when it does not."""
    return ready_output(1, 1)


def ready_output(
    count: int, graphs: int, revision: int | None = None, refused: int | None = None
) -> wire.ReadyOutput:
    """Return how many graphs are ready, out of how many, and which revision is served."""
    return wire.ReadyOutput(
        status="ready",
        graphs=graphs,
        graphs_ready=count,
        cluster_revision=revision,
        cluster_revision_refused=refused,
    )


@operation(
    name="listGraphs",
    path="/graphs",
    tag="management",
    summary="List the graphs",
    errors=(405,),
    access=on_server(PolicyAction.GRAPH_LIST),
    links=(Link("cluster_getSnapshot", {GRAPH: from_answer("graphs/0/graph_id")}),),
    tools=(Tool(name="graphs_list", description="List the graphs.", pages="graphs"),),
)
def list_graphs(session: ServiceSession, _: wire.NoRequest) -> wire.GraphListResponse:
    """Return the ID and the address of every graph the server serves, sorted by ID."""
    graphs = sorted(session.service.registry.graphs.items())
    return wire.GraphListResponse(
        graphs=[wire.GraphInfo(graph_id=name, uri=served.graph.uri) for name, served in graphs]
    )


def _check_default_graph(session: ServiceSession, _: wire.NoRequest) -> None:
    """An open server has no callers to hide its graph from."""
    if session.service.state is not AuthMode.OPEN:
        session.require(PolicyAction.GRAPH_LIST)


@operation(
    name="getDefaultGraph",
    path="/default-graph",
    tag="management",
    summary="Return the graph of a server that serves exactly one",
    errors=(404,),
    access=Access((PolicyAction.GRAPH_LIST,), _check_default_graph, "not on an open server"),
    extension=True,
)
def default_graph(session: ServiceSession, _: wire.NoRequest) -> wire.GraphInfo:
    """Return the ID and the address of the only graph; status 404 when there are several."""
    graphs = session.service.registry.graphs
    if len(graphs) != 1:
        message = f"the server has {len(graphs)} graphs; name one of them"
        raise NotFound(message, code="graph_ambiguous")
    [(name, served)] = graphs.items()
    return wire.GraphInfo(graph_id=name, uri=served.graph.uri)
