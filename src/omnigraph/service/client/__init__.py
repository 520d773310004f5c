"""Remote client: a graph behind a server, with the methods of an embedded one.

Connections are kept and shared. Only requests that cannot take effect twice are retried.
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from omnigraph.errors import InvalidInput, NotFound
from omnigraph.policy import PolicyDenied
from omnigraph.service.client.async_graph import AsyncGraph
from omnigraph.service.client.event_loop import EventLoopTransport
from omnigraph.service.client.graph import RemoteGraph
from omnigraph.service.client.resources import RemoteAddress
from omnigraph.service.client.transport import RetryPolicy, Transport
from omnigraph.service.operations import server as operations
from omnigraph.service.wire import NoRequest

__all__ = ["AsyncGraph", "RemoteGraph", "RetryPolicy", "aconnect", "connect", "list_graphs"]


def connect(
    url: str,
    *,
    token: str | None = None,
    graph: str | None = None,
    patience: RetryPolicy | None = None,
) -> RemoteGraph:
    """Connect to a graph that a server serves.

    `url` is the address of the server, or of a graph of it (`…/graphs/ID`, or as a gateway shows
    it). Without `graph` the server must have exactly one. `token` identifies the actor.
    """
    base, named = _address(url, graph)
    return _bind(Transport(base, token, patience), named)


async def aconnect(
    url: str,
    *,
    token: str | None = None,
    graph: str | None = None,
    patience: RetryPolicy | None = None,
    connections: int = 100,
) -> AsyncGraph:
    """Connect to a graph that a server serves, from a program with an event loop.

    The arguments are those of `connect`. At most `connections` requests are sent at a time, by as
    many threads; more wait.
    """
    base, named = _address(url, graph)
    loop = EventLoopTransport(connections)
    try:
        transport = Transport(base, token, patience, loop)
        return AsyncGraph(await loop.run(lambda: _bind(transport, named)), loop)
    except BaseException:
        await loop.aclose()
        raise


def list_graphs(
    url: str, *, token: str | None = None, patience: RetryPolicy | None = None
) -> list[dict[str, str]]:
    """Return the graphs a server serves, each with its `graph_id` and `uri`."""
    transport = Transport(_split(url)[0], token, patience)
    try:
        return _graphs(transport)
    finally:
        transport.close()


def _address(url: str, graph: str | None) -> tuple[str, str | None]:
    """Return the address of a server, and the graph that is named with it."""
    base, named = _split(url)
    if named is not None and graph is not None and named != graph:
        message = f"the address names graph '{named}', not '{graph}'"
        raise InvalidInput(message, code="graph_ambiguous")
    return base, graph or named


def _bind(transport: Transport, graph: str | None) -> RemoteGraph:
    return RemoteGraph(RemoteAddress(transport, graph or _single_graph(transport)))


def _graphs(transport: Transport) -> list[dict[str, str]]:
    answer = RemoteAddress(transport, None).call(operations.list_graphs, NoRequest())
    return [{"graph_id": graph.graph_id, "uri": graph.uri} for graph in answer.graphs]


def _split(url: str) -> tuple[str, str | None]:
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        message = f"'{url}' is not the address of a server; write http://HOST:PORT or https://HOST"
        raise InvalidInput(message, code="server_invalid", server=url)
    if parts.username or parts.password:
        message = "the address of a server holds no password; give the token apart"
        raise InvalidInput(message, code="server_invalid")
    before, found, name = parts.path.rstrip("/").rpartition("/graphs/")
    path = before if found else parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}", unquote(name) if found else None


def _single_graph(transport: Transport) -> str | None:
    """Return the one graph a server has; None where no list is, for that is a graph itself."""
    try:
        ids = [graph["graph_id"] for graph in _graphs(transport)]
    except NotFound:
        return None
    except PolicyDenied as error:
        return _default_graph(transport, error)
    if len(ids) == 1:
        return ids[0]
    what = f"graphs {', '.join(ids)}" if ids else "no graph"
    raise InvalidInput(f"the server has {what}; name one with `graph`", code="graph_ambiguous")


def _default_graph(transport: Transport, denied: PolicyDenied) -> str:
    """Return the one graph of a server that does not list its graphs."""
    try:
        answer = RemoteAddress(transport, None).call(operations.default_graph, NoRequest())
    except (NotFound, PolicyDenied):
        message = f"the server does not list its graphs ({denied.message}); name one with `graph`"
        raise InvalidInput(message, code="graph_ambiguous") from denied
    return answer.graph_id
