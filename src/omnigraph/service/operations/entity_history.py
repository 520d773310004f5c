"""Operations on the history of one entity."""

from __future__ import annotations

from omnigraph.service import wire
from omnigraph.service.operations import tool_arguments
from omnigraph.service.operations.access import READ_STATE, state
from omnigraph.service.operations.answers import to_answer
from omnigraph.service.operations.links import Link, commit_links
from omnigraph.service.operations.operation import Tool, operation
from omnigraph.service.session import GraphSession

_EXAMPLE = {"type": "Person", "id": "ada"}


@operation(
    name="getHistory",
    route="GET /history",
    tag="changes",
    summary="List the commits that changed one entity, newest first",
    access=READ_STATE,
    extension=True,
    example={**_EXAMPLE, "limit": 20},
    links=commit_links("changes/0/commit/graph_commit_id"),
    tools=(
        Tool(
            name="history",
            description="List the commits that changed an entity, with it before and after.",
            arguments=tool_arguments.HistoryArguments,
            pages="changes",
            adapter="limited_list",
        ),
    ),
)
def history(session: GraphSession, request: wire.EntityHistoryQuery) -> wire.EntityHistoryOutput:
    """Return the changes of a node or an edge up to a state; merges are followed to their sources.

    Types and properties are followed through renames. The changes of `unknown_before`, and of
    commits before those, cannot be read any more, because older versions were cleaned up.
    """
    at = state(session, request.branch, request.snapshot)
    found = session.graph.history(request.type, request.id, at, limit=request.limit)
    return to_answer(found.to_json(), wire.EntityHistoryOutput)


@operation(
    name="getBlame",
    route="GET /blame",
    tag="changes",
    summary="Return the commit that last set each property of one entity",
    access=READ_STATE,
    extension=True,
    example=_EXAMPLE,
    links=(Link("getHistory", {"type": "$request.query.type", "id": "$request.query.id"}),),
    tools=(
        Tool(
            name="blame",
            description="Show which commit last set each property of an entity, and its actor.",
            arguments=tool_arguments.EntityArguments,
        ),
    ),
)
def blame(session: GraphSession, request: wire.EntityQuery) -> wire.BlameOutput:
    """Return by property the commit that last set the value, its actor, its time and its message.

    For an edge, `src` and `dst` are its ends.
    """
    at = state(session, request.branch, request.snapshot)
    origins = session.graph.blame(request.type, request.id, at)
    values = {name: origin.to_json() for name, origin in origins.items()}
    return to_answer({"values": values}, wire.BlameOutput)
