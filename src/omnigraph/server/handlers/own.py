"""This module answers what goes beyond the common contract."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from omnigraph.errors import InvalidInput
from omnigraph.server.readiness import not_ready
from omnigraph.server.request import RequestContext, json_response
from omnigraph.server.streaming import stream_ndjson
from omnigraph.service import operations, wire


async def health(asked: RequestContext) -> Response:
    """Say that the server is ready, to clients that know the address of a graph alone."""
    asked.service.visit(asked.path("graph_id"), asked.actor)  # raises where there is none
    return json_response(msgspec.json.encode(operations.health()))


async def default_graph(asked: RequestContext) -> Response:
    """Send the only graph of the server."""
    service, actor = asked.front.service, asked.actor
    return await asked.answer(lambda: operations.default_graph(service, actor))


async def ready(asked: RequestContext) -> Response:
    """Report whether the storage of a graph answers."""
    served = asked.visit.served
    if not await asked.front.readiness.is_ready(served):
        raise not_ready(f"the storage of graph '{served.id}' does not answer", 0, 1)
    return json_response(msgspec.json.encode(operations.ready(1, 1)))


async def explain(asked: RequestContext) -> Response:
    """Explain a query."""
    visit, request = asked.visit, await asked.json(wire.ExplainRequest)
    return await asked.answer(lambda: operations.explain(visit, request))


async def diff(asked: RequestContext) -> Response:
    """Compare two states."""
    visit, request = asked.visit, await asked.json(wire.DiffRequest)
    return await stream_ndjson(asked, lambda: operations.diff(visit, request))


async def entity(asked: RequestContext) -> Response:
    """Send one entity."""
    visit, (name, id_) = asked.visit, _needed(asked, "type", "id")
    branch, snapshot = asked.one("branch"), asked.one("snapshot")
    return await asked.answer(lambda: operations.entity(visit, name, id_, branch, snapshot))


async def branch(asked: RequestContext) -> Response:
    """Show a branch."""
    visit, name = asked.visit, asked.path("branch")
    return await asked.answer(lambda: operations.get_branch(visit, name))


async def tags(asked: RequestContext) -> Response:
    """List tags."""
    visit = asked.visit
    return await asked.answer(lambda: operations.list_tags(visit))


async def create_tag(asked: RequestContext) -> Response:
    """Make a tag."""
    visit, request = asked.visit, await asked.json(wire.TagCreateRequest)
    return await asked.change(lambda: operations.create_tag(visit, request))


async def delete_tag(asked: RequestContext) -> Response:
    """Forget a tag."""
    visit, name = asked.visit, asked.path("tag")
    return await asked.change(lambda: operations.delete_tag(visit, name))


async def revert(asked: RequestContext) -> Response:
    """Undo a commit."""
    visit, request = asked.visit, await asked.json(wire.PickRequest)
    return await asked.change(lambda: operations.revert(visit, request))


async def cherry_pick(asked: RequestContext) -> Response:
    """Do a commit again."""
    visit, request = asked.visit, await asked.json(wire.PickRequest)
    return await asked.change(lambda: operations.cherry_pick(visit, request))


async def plan_schema(asked: RequestContext) -> Response:
    """Plan a migration."""
    visit, request = asked.visit, await asked.json(wire.SchemaPlanRequest)
    return await asked.answer(lambda: operations.plan_schema(visit, request))


async def recoveries(asked: RequestContext) -> Response:
    """Send the audit of recovery."""
    visit = asked.visit
    return await asked.answer(lambda: operations.list_recoveries(visit))


async def merge_base(asked: RequestContext) -> Response:
    """Find common ancestors."""
    visit, (one, other) = asked.visit, _needed(asked, "one", "other")
    return await asked.answer(lambda: operations.merge_base(visit, one, other))


def _needed(asked: RequestContext, *names: str) -> list[str]:
    given = {name: asked.one(name) for name in names}
    missing = [f"`{name}`" for name, value in given.items() if value is None]
    if missing:
        raise InvalidInput(f"{', '.join(missing)} must be given", code="parameter_missing")
    return [value for value in given.values() if value is not None]
