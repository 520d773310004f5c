"""This module runs stored queries; one that a caller may not run is as if it were not there."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import InvalidInput
from omnigraph.policy import PolicyDenied
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.operations.reading import query
from omnigraph.service.operations.writing import mutate
from omnigraph.service.session import GraphSession
from omnigraph.service.stored_queries import StoredQuery, unknown_query


@dataclass(frozen=True, slots=True)
class Invocation:
    """Which stored query to run; `if_commit` makes it a conditional mutation."""

    name: str
    request: wire.InvokeStoredQueryRequest
    if_commit: str | None = None


def list_queries(visit: GraphSession) -> wire.QueriesCatalogOutput:
    """List the stored queries, except those that name types hidden from the caller."""
    visit.require(PolicyAction.READ, "main")
    return wire.QueriesCatalogOutput(queries=[stored.entry() for stored in visible(visit)])


def visible(visit: GraphSession) -> list[StoredQuery]:
    """Return the stored queries whose types and properties the caller may see, by name."""
    found = sorted(visit.served.stored.queries.items())
    graph = visit.graph
    return [stored for _, stored in found if graph.can_name(stored.source, stored.name)]


def invoke(visit: GraphSession, invocation: Invocation) -> wire.ReadOutput | wire.ChangeOutput:
    """Run a stored query by name."""
    request = resolve(visit, invocation)
    if isinstance(request, wire.QueryRequest):
        return query(visit, request)
    return mutate(visit, request, invocation.if_commit)


def resolve(visit: GraphSession, invocation: Invocation) -> wire.QueryRequest | wire.ChangeRequest:
    """Return the request a stored query stands for, once the caller may run it."""
    try:
        visit.require(PolicyAction.INVOKE_QUERY)
    except PolicyDenied as error:
        raise unknown_query() from error
    stored, request = visit.served.stored.get(invocation.name), invocation.request
    if not visit.graph.can_name(stored.source, stored.name):
        raise unknown_query()
    wants, is_mutation = request.expect_mutation, stored.is_mutation
    if wants is not None and wants is not is_mutation:
        message = f"stored query '{stored.name}' {'changes data' if is_mutation else 'only reads'}"
        raise InvalidInput(message, code="stored_query_unexpected")
    if not is_mutation:
        if invocation.if_commit is not None:
            message = f"stored query '{stored.name}' only reads: it knows no condition"
            raise InvalidInput(message, code="stored_query_unexpected")
        return wire.QueryRequest(
            query=stored.source,
            name=stored.name,
            params=request.params,
            branch=request.branch,
            snapshot=request.snapshot,
        )
    if request.snapshot is not None:
        message = f"stored query '{stored.name}' changes data; it takes a branch, no snapshot"
        raise InvalidInput(message, code="stored_query_unexpected")
    return wire.ChangeRequest(
        query=stored.source, name=stored.name, params=request.params, branch=request.branch
    )
