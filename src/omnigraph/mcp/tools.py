"""MCP tools of operations: how arguments become a request, and an answer becomes JSON in pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from omnigraph.mcp.pagination import slice_page, with_page
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.operations import OPERATIONS, AnyOperation, Tool
from omnigraph.service.operations import tool_arguments as arguments
from omnigraph.service.operations.mutations import mutate_if
from omnigraph.service.operations.queries import query
from omnigraph.service.session import GraphSession, ServiceSession
from omnigraph.service.wire.parameters import request_body

ToolSession: TypeAlias = GraphSession | ServiceSession
ToolAdapter: TypeAlias = Callable[[AnyOperation, Any, Any], dict[str, Any]]
"""Runs an operation for the arguments of a tool."""


@dataclass(frozen=True, slots=True)
class OperationTool:
    """A tool and the operation it calls, for callers who may do all `actions` somewhere."""

    operation: AnyOperation
    tool: Tool

    @property
    def name(self) -> str:
        """The name by which agents call it."""
        return self.tool.name

    @property
    def actions(self) -> Sequence[PolicyAction]:
        """The policy actions it needs."""
        declared = self.tool.actions
        return self.operation.access.actions if declared is None else declared

    @property
    def is_server_tool(self) -> bool:
        """Whether it addresses the server, not a graph."""
        path = self.operation.path
        return path is not None and "{graph_id}" not in path

    @property
    def arguments(self) -> type[Struct]:
        """The arguments it takes."""
        return _arguments(self.operation.request, self.tool)  # type: ignore[arg-type]

    def run(self, session: ToolSession, given: Mapping[str, Any]) -> dict[str, Any]:
        """Call the operation; the answer is JSON values, cut to a page."""
        adapter = _run_generic if self.tool.adapter is None else ADAPTERS[self.tool.adapter]
        call = msgspec.convert(given, self.arguments)
        answer = adapter(self.operation, session, call)
        if self.tool.pages is not None:
            return with_page(answer, self.tool.pages, call)  # type: ignore[arg-type]
        return answer


def operation_tools(operations: Iterable[AnyOperation] = OPERATIONS) -> list[OperationTool]:
    """Return the tools that operations declare."""
    return [OperationTool(operation, tool) for operation in operations for tool in operation.tools]


@lru_cache
def _arguments(request: type[Struct], tool: Tool) -> type[Struct]:
    if tool.arguments is not None:
        return tool.arguments
    body = request_body(request)
    assert body is None or body.field is None, "a tool with parameters and a body has arguments"
    return arguments.paged_arguments(request, paged=tool.pages is not None)


def to_json_value(answer: object) -> dict[str, Any]:
    """Return an answer of an operation as JSON values."""
    members: dict[str, Any] = msgspec.to_builtins(answer)
    return members


def page_rows(
    answer: wire.ReadOutput, page: arguments.PagedArguments, prefix: str = ""
) -> dict[str, Any]:
    """Return a page of rows; the next one is read from the same commit.

    `prefix` precedes the names of arguments that are not parameters of a stored query.
    """
    hint = f" and {prefix}snapshot='{answer.graph_commit_id}', without {prefix}branch"
    return with_page(to_json_value(answer), "rows", page, f"{prefix}skip", hint)


def to_request(operation: AnyOperation, call: Struct) -> Any:  # noqa: ANN401 - the request type
    """Return the request of an operation with the members that the arguments have."""
    names = {field.name for field in msgspec.structs.fields(operation.request)}
    members = msgspec.structs.asdict(call)
    return operation.request(**{name: value for name, value in members.items() if name in names})


def _run_generic(operation: AnyOperation, session: ToolSession, call: Struct) -> dict[str, Any]:
    return to_json_value(operation(session, to_request(operation, call)))


def _get_schema(
    operation: AnyOperation, session: GraphSession, call: arguments.PagedArguments
) -> dict[str, Any]:
    lines = operation(session, wire.NoRequest()).schema_source.splitlines(keepends=True)
    page = with_page({"schema_source": lines}, "schema_source", call)
    return {**page, "schema_source": "".join(page["schema_source"])}


def _query(
    _: AnyOperation, session: GraphSession, call: arguments.QueryArguments
) -> dict[str, Any]:
    return page_rows(query(session, to_request(query, call)), call)


def _mutate(
    operation: AnyOperation, session: GraphSession, call: arguments.MutateArguments
) -> dict[str, Any]:
    request = to_request(operation, call)
    if call.if_commit is None:
        return to_json_value(operation(session, request))
    conditional = wire.ConditionalChangeQuery(if_commit=call.if_commit, body=request)
    return to_json_value(mutate_if(session, conditional))


def _delete_branch(
    operation: AnyOperation, session: GraphSession, call: arguments.BranchDeleteArguments
) -> dict[str, Any]:
    return to_json_value(operation(session, wire.BranchQuery(branch=call.name)))


def _merge(
    operation: AnyOperation, session: GraphSession, call: arguments.MergeArguments
) -> dict[str, Any]:
    return _truncate_conflicts(operation(session, to_request(operation, call)))


def _truncate_conflicts(answer: wire.BranchMergeOutput) -> dict[str, Any]:
    """Return a merge with its first conflicts and their number."""
    merged = to_json_value(answer)
    conflicts = merged.get("conflicts", [])
    shown = slice_page(conflicts, arguments.PagedArguments()).items
    return {**merged, "conflicts": shown, "conflict_count": len(conflicts)}


def _diff(
    operation: AnyOperation, session: GraphSession, call: arguments.DiffArguments
) -> dict[str, Any]:
    request = wire.DiffRequest(
        from_=call.from_, to=call.to, kind=call.kinds, type=call.types, op=call.ops
    )
    changes = map(json.loads, operation(session, request))
    return with_page({"from": call.from_, "to": call.to, "changes": changes}, "changes", call)


def _limited_list(
    operation: AnyOperation, session: GraphSession, call: arguments.PagedArguments
) -> dict[str, Any]:
    """Return a list up to the end of the page, and one more item to know whether it goes on."""
    request = to_request(operation, call)
    request.limit = call.skip + call.limit + 1
    return to_json_value(operation(session, request))


def _propose(
    operation: AnyOperation, session: GraphSession, call: arguments.ProposeArguments
) -> dict[str, Any]:
    proposal = operation(session, to_request(operation, call))
    first = arguments.PagedArguments(limit=call.limit)
    page = slice_page(map(json.loads, proposal.changes), first)
    preview = proposal.preview
    answer = {
        "number": proposal.number,
        "branch": proposal.branch,
        "base": proposal.base,
        "base_commit_id": proposal.base_commit_id,
        "target": proposal.target,
        **{name: fact for name, fact in to_json_value(proposal.done).items() if name != "branch"},
        "changes": page.items,
        "merge_preview": None if preview is None else _truncate_conflicts(preview),
        "next": f"Show this to the reviewer. `proposal_merge` with number={proposal.number} "
        "applies it, `proposal_close` drops it.",
    }
    if page.next_skip is not None:
        hint = (
            f"`changes` goes on: call `diff` with from='{proposal.base_commit_id}', "
            f"to='{proposal.branch}' and skip={page.next_skip}"
        )
        answer["more"] = {"next_skip": page.next_skip, "hint": hint}
    return answer


def _proposal(
    operation: AnyOperation, session: GraphSession, call: arguments.ProposalArguments
) -> dict[str, Any]:
    """Call an operation on one proposal, whose body has the other arguments."""
    members = msgspec.structs.asdict(call)
    number = str(members.pop("number"))
    body = operation.body
    if body is None or body.field is None:
        return to_json_value(operation(session, operation.request(number=number)))
    names = {field.name for field in msgspec.structs.fields(body.type)}
    given = {name: value for name, value in members.items() if name in names and value is not None}
    request = operation.request(number=number, **{body.field: msgspec.convert(given, body.type)})
    answer = operation(session, request)
    if isinstance(answer, wire.BranchMergeOutput):
        return _truncate_conflicts(answer)
    return to_json_value(answer)


def _proposal_diff(
    operation: AnyOperation, session: GraphSession, call: arguments.ProposalDiffArguments
) -> dict[str, Any]:
    request = wire.ProposalDiffQuery(
        number=str(call.number),
        kind=[str(kind) for kind in call.kind],
        type=call.type,
        op=[str(op) for op in call.op],
    )
    changes = map(json.loads, operation(session, request))
    return with_page({"number": call.number, "changes": changes}, "changes", call)


def _list_proposals(
    _: AnyOperation, session: GraphSession, call: arguments.ProposalListArguments
) -> dict[str, Any]:
    """Return proposals up to the end of the page, and one more to know whether it goes on."""
    found = session.graph.proposals.list(
        call.state,
        author=call.author,
        reviewer=call.reviewer,
        target=call.target,
        limit=call.skip + call.limit + 1,
    )
    return {"proposals": [proposal.to_json() for proposal in found]}


ADAPTERS: Mapping[str, ToolAdapter] = {
    "schema_get": _get_schema,
    "query": _query,
    "mutate": _mutate,
    "branches_delete": _delete_branch,
    "merge": _merge,
    "diff": _diff,
    "limited_list": _limited_list,
    "propose_change": _propose,
    "proposal": _proposal,
    "proposal_diff": _proposal_diff,
    "proposals_list": _list_proposals,
}
"""Tools whose request or answer differs from that of the operation."""
