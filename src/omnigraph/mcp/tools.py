"""This module is the table of tools that every graph has."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from omnigraph.mcp import arguments as takes
from omnigraph.mcp.pagination import PageRequest, slice_page, with_page
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import operations, wire
from omnigraph.service.session import GraphSession


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphTool:
    """What an agent can do with a graph; whoever may do all `actions` somewhere gets it.

    A tool that `writes` changes something, one that `destroys` may do away with something.
    """

    name: str
    description: str
    run: Callable[[GraphSession, Any], dict[str, Any]]
    takes: type[takes.ToolArguments] = takes.ToolArguments
    actions: Sequence[PolicyAction] = (PolicyAction.READ,)
    writes: bool = False
    destroys: bool = False


def to_json_value(answer: object) -> dict[str, Any]:
    """Return an answer of the service as JSON values."""
    found: dict[str, Any] = msgspec.to_builtins(answer)
    return found


def page_rows(answer: wire.ReadOutput, page: PageRequest, mark: str = "") -> dict[str, Any]:
    """Return the rows that are wanted; the rest is to be read from the same commit.

    `mark` stands before the names of arguments that are no parameters.
    """
    hint = f" and {mark}snapshot='{answer.graph_commit_id}', without {mark}branch"
    return with_page(to_json_value(answer), "rows", page, f"{mark}skip", hint)


def page_request(given: takes.PagedArguments) -> PageRequest:
    """Return which part of a list is wanted."""
    return PageRequest(given.skip, given.limit)


def _snapshot(visit: GraphSession, given: takes.BranchArguments) -> dict[str, Any]:
    return with_page(
        to_json_value(operations.snapshot(visit, given.branch)), "datasets", page_request(given)
    )


def _schema(visit: GraphSession, given: takes.PagedArguments) -> dict[str, Any]:
    lines = operations.get_schema(visit).schema_source.splitlines(keepends=True)
    found = with_page({"schema_source": lines}, "schema_source", page_request(given))
    return {**found, "schema_source": "".join(found["schema_source"])}


def _branches(visit: GraphSession, given: takes.PagedArguments) -> dict[str, Any]:
    return with_page(
        to_json_value(operations.list_branches(visit)), "branches", page_request(given)
    )


def _commits(visit: GraphSession, given: takes.BranchArguments) -> dict[str, Any]:
    return with_page(
        to_json_value(operations.list_commits(visit, given.branch)), "commits", page_request(given)
    )


def _commit(visit: GraphSession, given: takes.CommitArguments) -> dict[str, Any]:
    return to_json_value(operations.get_commit(visit, given.commit_id))


def _query(visit: GraphSession, given: takes.QueryArguments) -> dict[str, Any]:
    request = wire.QueryRequest(
        query=given.query,
        name=given.name,
        params=given.params,
        branch=given.branch,
        snapshot=given.snapshot,
    )
    return page_rows(operations.query(visit, request), page_request(given))


def _explain(visit: GraphSession, given: takes.ExplainArguments) -> dict[str, Any]:
    request = wire.ExplainRequest(**msgspec.structs.asdict(given))
    return to_json_value(operations.explain(visit, request))


def _mutate(visit: GraphSession, given: takes.MutateArguments) -> dict[str, Any]:
    request = wire.ChangeRequest(
        query=given.query,
        name=given.name,
        params=given.params,
        branch=given.branch,
        message=given.message,
    )
    return to_json_value(operations.mutate(visit, request, given.if_commit))


def _ingest(visit: GraphSession, given: takes.IngestArguments) -> dict[str, Any]:
    request = wire.IngestRequest(
        data=given.data, branch=given.branch, from_=given.from_, mode=given.mode
    )
    return to_json_value(operations.load(visit, request))


def _create(visit: GraphSession, given: takes.BranchCreateArguments) -> dict[str, Any]:
    request = wire.BranchCreateRequest(name=given.name, from_=given.from_)
    return to_json_value(operations.create_branch(visit, request))


def _delete(visit: GraphSession, given: takes.BranchDeleteArguments) -> dict[str, Any]:
    return to_json_value(operations.delete_branch(visit, given.name))


def _branches_merge(visit: GraphSession, given: takes.BranchMergeArguments) -> dict[str, Any]:
    request = wire.BranchMergeRequest(
        source=given.source, target=given.target, delete_branch=given.delete_branch
    )
    return to_json_value(operations.merge_branches(visit, request))


def _merge(visit: GraphSession, given: takes.MergeArguments) -> dict[str, Any]:
    request = wire.BranchMergeRequest(**msgspec.structs.asdict(given))
    return _truncate_conflicts(operations.merge_branches(visit, request))


def _truncate_conflicts(answer: wire.BranchMergeOutput) -> dict[str, Any]:
    """Show the first conflicts, and say how many there are."""
    merged = to_json_value(answer)
    conflicts = merged.get("conflicts", [])
    shown = slice_page(conflicts, PageRequest()).items
    return {**merged, "conflicts": shown, "conflict_count": len(conflicts)}


def _apply(visit: GraphSession, given: takes.SchemaApplyArguments) -> dict[str, Any]:
    request = wire.SchemaApplyRequest(
        schema_source=given.schema_source, allow_data_loss=given.allow_data_loss
    )
    return to_json_value(operations.apply_schema(visit, request))


def _diff(visit: GraphSession, given: takes.DiffArguments) -> dict[str, Any]:
    request = wire.DiffRequest(
        from_=given.from_, to=given.to, kind=given.kinds, type=given.types, op=given.ops
    )
    found = map(json.loads, operations.diff(visit, request))
    facts = {"from": given.from_, "to": given.to, "changes": found}
    return with_page(facts, "changes", page_request(given))


def _propose(visit: GraphSession, given: takes.ProposeArguments) -> dict[str, Any]:
    proposal = operations.ProposalRequest(
        query=given.query,
        name=given.name,
        params=given.params,
        branch=given.branch,
        from_=given.from_,
        target=given.target,
        message=given.message,
    )
    found = operations.propose(visit, proposal)
    part = slice_page(map(json.loads, found.changes), PageRequest(limit=given.limit))
    facts = {
        "branch": found.branch,
        "base": found.base,
        "base_commit_id": found.base_commit_id,
        "target": found.target,
        **{name: fact for name, fact in to_json_value(found.done).items() if name != "branch"},
        "changes": part.items,
        "merge_preview": None if found.preview is None else _truncate_conflicts(found.preview),
        "next": f"Show this to whoever decides. `merge` with source='{found.branch}' and "
        f"target='{found.target}' makes it so, `branches_delete` drops it.",
    }
    if part.next_skip is not None:
        told = (
            f"`changes` goes on: call `diff` with from='{found.base_commit_id}', "
            f"to='{found.branch}' and skip={part.next_skip}"
        )
        facts["more"] = {"next_skip": part.next_skip, "hint": told}
    return facts


TOOLS = (
    GraphTool(
        name="schema_get",
        description="Show the schema: node and edge types with their properties. Look here first.",
        takes=takes.PagedArguments,
        run=_schema,
    ),
    GraphTool(
        name="query",
        description="Read: answer a query in the query language.",
        takes=takes.QueryArguments,
        run=_query,
    ),
    GraphTool(
        name="read", description="The same as `query`.", takes=takes.QueryArguments, run=_query
    ),
    GraphTool(
        name="explain",
        description="Show how a query is answered, step by step, and what it costs.",
        takes=takes.ExplainArguments,
        run=_explain,
    ),
    GraphTool(
        name="snapshot",
        description="List the types of a branch with the number of their entities and versions.",
        takes=takes.BranchArguments,
        run=_snapshot,
    ),
    GraphTool(
        name="branches_list",
        description="List the branches.",
        takes=takes.PagedArguments,
        run=_branches,
    ),
    GraphTool(
        name="commits_list",
        description="List the history of a branch, newest first.",
        takes=takes.BranchArguments,
        run=_commits,
    ),
    GraphTool(
        name="commits_get", description="Show a commit.", takes=takes.CommitArguments, run=_commit
    ),
    GraphTool(
        name="diff",
        description="Tell which entities differ between two states, before and after.",
        takes=takes.DiffArguments,
        run=_diff,
    ),
    GraphTool(
        name="propose_change",
        description="Propose a change for review: make a branch, run a mutation there, and show "
        "what it changes and whether it would merge. The target stays as it is.",
        takes=takes.ProposeArguments,
        run=_propose,
        actions=(PolicyAction.READ, PolicyAction.BRANCH_CREATE, PolicyAction.CHANGE),
        writes=True,
    ),
    GraphTool(
        name="mutate",
        description="Change data on a branch at once, as one commit. `propose_change` is safer.",
        takes=takes.MutateArguments,
        run=_mutate,
        actions=(PolicyAction.CHANGE,),
        writes=True,
        destroys=True,
    ),
    GraphTool(
        name="change",
        description="The same as `mutate`.",
        takes=takes.MutateArguments,
        run=_mutate,
        actions=(PolicyAction.CHANGE,),
        writes=True,
        destroys=True,
    ),
    GraphTool(
        name="ingest",
        description="Load nodes and edges given as lines of JSON, as one commit.",
        takes=takes.IngestArguments,
        run=_ingest,
        actions=(PolicyAction.CHANGE,),
        writes=True,
        destroys=True,
    ),
    GraphTool(
        name="branches_create",
        description="Make a branch.",
        takes=takes.BranchCreateArguments,
        run=_create,
        actions=(PolicyAction.BRANCH_CREATE,),
        writes=True,
    ),
    GraphTool(
        name="branches_delete",
        description="Delete a branch.",
        takes=takes.BranchDeleteArguments,
        run=_delete,
        actions=(PolicyAction.BRANCH_DELETE,),
        writes=True,
        destroys=True,
    ),
    GraphTool(
        name="branches_merge",
        description="Merge a branch into another; conflicts change nothing.",
        takes=takes.BranchMergeArguments,
        run=_branches_merge,
        actions=(PolicyAction.BRANCH_MERGE,),
        writes=True,
        destroys=True,
    ),
    GraphTool(
        name="merge",
        description="Merge a branch into another, decide conflicts, or with dry_run only tell "
        "what would happen.",
        takes=takes.MergeArguments,
        run=_merge,
        actions=(PolicyAction.BRANCH_MERGE,),
        writes=True,
        destroys=True,
    ),
    GraphTool(
        name="schema_apply",
        description="Make another schema the accepted one.",
        takes=takes.SchemaApplyArguments,
        run=_apply,
        actions=(PolicyAction.SCHEMA_APPLY,),
        writes=True,
        destroys=True,
    ),
)
