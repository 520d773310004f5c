"""Operations on running queries: an actor sees its own, and with the action `admin` all."""

from __future__ import annotations

from omnigraph.policy.permissions import PolicyAction
from omnigraph.query.running import RunningQuery, unknown_running_query
from omnigraph.service import wire
from omnigraph.service.operations.answers import epoch_micros, to_answer
from omnigraph.service.operations.operation import Access, operation
from omnigraph.service.session import GraphSession


def _check(session: GraphSession, _: object) -> None:
    if not session.may_somewhere(PolicyAction.READ):
        session.require(PolicyAction.READ)


_ACCESS = Access(
    (PolicyAction.READ,), _check, "on any branch; with `admin` also for queries of other actors"
)


@operation(
    name="listRunningQueries",
    route="GET /running",
    summary="List the running queries",
    errors=(400, 404, 503),
    access=_ACCESS,
    extension=True,
    handler="running",
)
def list_running(session: GraphSession, _: wire.NoRequest) -> wire.RunningQueryListOutput:
    """Return the queries of the graph that run in any process of the server, the oldest first.

    Texts and parameters are not shown; `query_digest` is equal for equal texts.
    """
    return wire.RunningQueryListOutput(queries=[_output(query) for query in _visible(session)])


@operation(
    name="cancelRunningQuery",
    route="DELETE /running/{query_id}",
    summary="Cancel a running query",
    errors=(400, 404, 503),
    access=_ACCESS,
    extension=True,
    handler="running",
)
def cancel_running(
    session: GraphSession, request: wire.RunningQueryQuery
) -> wire.RunningQueryOutput:
    """Cancel a query, and return what it was; it fails with `query_cancelled` within moments."""
    queries = {query.id: query for query in _visible(session)}
    if request.query_id not in queries:
        raise unknown_running_query(request.query_id)
    session.graph.cancel_query(request.query_id)
    return _output(queries[request.query_id])


def _visible(session: GraphSession) -> list[RunningQuery]:
    """Return the queries the caller may see: a server with tokens may have no policy."""
    queries = session.graph.running_queries()
    if session.may_somewhere(PolicyAction.ADMIN):
        return queries
    return [query for query in queries if query.actor == session.actor]


def _output(query: RunningQuery) -> wire.RunningQueryOutput:
    facts = {**query.to_json(), "started_at": epoch_micros(query.started_at)}
    return to_answer(facts, wire.RunningQueryOutput)
