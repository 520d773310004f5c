"""Operations on stored queries; one that a caller may not run does not exist for that caller."""

from __future__ import annotations

from typing import Any

from omnigraph.errors import InvalidInput
from omnigraph.policy import PolicyDenied
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.operations.links import Link, from_answer
from omnigraph.service.operations.mutations import COMMIT_LINKS, mutate, mutate_if
from omnigraph.service.operations.operation import Access, operation
from omnigraph.service.operations.paths import WRITE_ERRORS
from omnigraph.service.operations.queries import query
from omnigraph.service.session import GraphSession
from omnigraph.service.stored_queries import StoredQuery, unknown_query

_EXAMPLE = {"params": {"name": "ada"}, "branch": "main"}


def _check_list(session: GraphSession, _: wire.NoRequest) -> None:
    session.require(PolicyAction.READ, "main")


@operation(
    name="cluster_list_queries",
    route="GET /queries",
    summary="List the stored queries",
    access=Access((PolicyAction.READ,), _check_list, "on the branch main"),
    links=tuple(
        Link("cluster_invoke_query", {"name": from_answer(f"queries/{number}/name")})
        for number in range(2)
    ),
)
def list_queries(session: GraphSession, _: wire.NoRequest) -> wire.QueriesCatalogOutput:
    """Return the stored queries with their parameters, except those that name hidden types."""
    return wire.QueriesCatalogOutput(queries=[stored.entry() for stored in visible(session)])


def visible(session: GraphSession) -> list[StoredQuery]:
    """Return the stored queries whose types and properties the caller may see, by name."""
    queries = sorted(session.registered.stored.queries.items())
    graph = session.graph
    return [stored for _, stored in queries if graph.can_name(stored.source, stored.name)]


def _check_invoke(session: GraphSession, _: Any) -> None:  # noqa: ANN401 - either request
    try:
        session.require(PolicyAction.INVOKE_QUERY)
    except PolicyDenied as error:
        raise unknown_query() from error


_INVOKE_ACCESS = Access(
    (PolicyAction.INVOKE_QUERY,), _check_invoke, "and `read` or `change` on the branch"
)


@operation(
    name="cluster_invoke_query",
    route="POST /queries/{name}",
    summary="Run a stored query",
    errors=(*WRITE_ERRORS, 500),
    access=_INVOKE_ACCESS,
    example=_EXAMPLE,
    links=COMMIT_LINKS,
    condition_path="queries/{name}/if-graph-commit",
    handler="invoke",
)
def invoke(
    session: GraphSession, request: wire.StoredQueryQuery
) -> wire.ReadOutput | wire.ChangeOutput:
    """Run a stored query by name: the answer has rows if it reads, a commit if it changes data."""
    resolved = resolve(session, request)
    if isinstance(resolved, wire.QueryRequest):
        return query(session, resolved)
    return mutate(session, resolved)


@operation(
    name="cluster_invoke_query_if_graph_commit",
    route="POST /queries/{name}/if-graph-commit",
    summary="Run a stored mutation if the branch is at a commit",
    errors=(*WRITE_ERRORS, 412, 500),
    access=_INVOKE_ACCESS,
    example=_EXAMPLE,
    links=COMMIT_LINKS,
    handler="invoke",
)
def invoke_if(
    session: GraphSession, request: wire.ConditionalStoredQueryQuery
) -> wire.ChangeOutput:
    """Run a stored mutation only if the branch is at the commit in the header."""
    resolved = resolve(session, request)
    assert isinstance(resolved, wire.ChangeRequest), "a query that reads takes no condition"
    return mutate_if(
        session, wire.ConditionalChangeQuery(if_commit=request.if_commit, body=resolved)
    )


def resolve(
    session: GraphSession, request: wire.StoredQueryQuery
) -> wire.QueryRequest | wire.ChangeRequest:
    """Return the query or mutation that a stored query runs, once the caller may run it."""
    _check_invoke(session, request)
    stored, options = session.registered.stored.get(request.name), request.body
    if not session.graph.can_name(stored.source, stored.name):
        raise unknown_query()
    expected, is_mutation = options.expect_mutation, stored.is_mutation
    if expected is not None and expected is not is_mutation:
        message = f"stored query '{stored.name}' {'changes data' if is_mutation else 'only reads'}"
        raise InvalidInput(message, code="stored_query_unexpected")
    if not is_mutation:
        if isinstance(request, wire.ConditionalStoredQueryQuery):
            message = f"stored query '{stored.name}' only reads: it takes no condition"
            raise InvalidInput(message, code="stored_query_unexpected")
        return wire.QueryRequest(
            query=stored.source,
            name=stored.name,
            params=options.params,
            branch=options.branch,
            snapshot=options.snapshot,
        )
    if options.snapshot is not None:
        message = f"stored query '{stored.name}' changes data; it takes `branch`, not `snapshot`"
        raise InvalidInput(message, code="stored_query_unexpected")
    return wire.ChangeRequest(
        query=stored.source, name=stored.name, params=options.params, branch=options.branch
    )
