"""Operations on the schema: read, plan, apply."""

from __future__ import annotations

from omnigraph.errors import Category, OmniError
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.operations import tool_arguments
from omnigraph.service.operations.access import READ_STATE, branch_name, on_graph, on_target, state
from omnigraph.service.operations.answers import to_answer
from omnigraph.service.operations.links import Link, from_answer
from omnigraph.service.operations.operation import Tool, operation
from omnigraph.service.operations.paths import JSON_ERRORS
from omnigraph.service.session import GraphSession

_SCHEMA = {"schema_source": from_answer("schema_source")}
_EXAMPLE = {"schema_source": "node Person {\n  name: String @key\n  age: I64?\n}\n"}


@operation(
    name="cluster_getSchema",
    route="GET /schema",
    tag="schema",
    summary="Return the schema",
    access=on_graph(PolicyAction.READ),
    links=(Link("planSchema", body=_SCHEMA), Link("cluster_applySchema", body=_SCHEMA)),
    tools=(
        Tool(
            name="schema_get",
            description="Show the schema: node and edge types with their properties. "
            "Look here first.",
            arguments=tool_arguments.PagedArguments,
            adapter="schema_get",
        ),
    ),
)
def get_schema(session: GraphSession, _: wire.NoRequest) -> wire.SchemaOutput:
    """Return the text of the accepted schema of the branch main."""
    return wire.SchemaOutput(schema_source=session.graph.schema.source)


@operation(
    name="planSchema",
    route="POST /schema/plan",
    tag="schema",
    summary="List the steps from the accepted schema to another",
    errors=(*JSON_ERRORS, 503),
    access=READ_STATE,
    extension=True,
    example=_EXAMPLE,
)
def plan_schema(session: GraphSession, request: wire.SchemaPlanRequest) -> wire.SchemaPlanOutput:
    """Return the migration steps to a schema, and whether all of them are supported."""
    plan = session.graph.schema.plan(
        request.schema_source,
        allow_data_loss=request.allow_data_loss,
        at=state(session, request.branch, request.snapshot),
    )
    return to_answer(plan.to_json(), wire.SchemaPlanOutput)


@operation(
    name="cluster_applySchema",
    route="POST /schema/apply",
    tag="mutations",
    summary="Apply a schema",
    access=on_target(PolicyAction.SCHEMA_APPLY),
    example=_EXAMPLE,
    writes=True,
    tools=(
        Tool(
            name="schema_apply",
            description="Apply a schema: make it the accepted one.",
            arguments=tool_arguments.SchemaApplyArguments,
            destroys=True,
        ),
    ),
)
def apply_schema(session: GraphSession, request: wire.SchemaApplyRequest) -> wire.SchemaApplyOutput:
    """Migrate a branch to a schema, as one commit.

    The schema of a graph that belongs to a cluster is changed in the cluster instead.
    """
    if session.service.declared:
        message = "this graph belongs to a cluster: change its schema there and apply the cluster"
        raise OmniError(message, code="schema_declared", category=Category.CONFLICT)
    source = request.schema_source
    # With a line end it cannot be a path: a caller must not name a file of this machine.
    text = source if "\n" in source or "{" in source else f"{source}\n"
    with session.admit(len(text)):
        result = session.graph.schema.apply(
            text,
            branch=branch_name(request.branch),
            allow_data_loss=request.allow_data_loss,
            message=request.message,
            timeout=session.timeout,
            dry_run=request.dry_run,
        )
    uri = session.registered.graph.uri
    return to_answer({**result.to_json(), "uri": uri}, wire.SchemaApplyOutput)
