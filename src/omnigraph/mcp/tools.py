"""This module is the table of tools that every graph has."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from omnigraph.mcp import arguments as takes
from omnigraph.mcp.paging import Page, paged, part_of
from omnigraph.policy.actions import Action
from omnigraph.service import operations, wire
from omnigraph.service.visit import Visit


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What an agent can do with a graph; whoever may do all `actions` somewhere gets it.

    A tool that `writes` changes something, one that `destroys` may do away with something.
    """

    name: str
    description: str
    run: Callable[[Visit, Any], dict[str, Any]]
    takes: type[takes.Arguments] = takes.Arguments
    actions: Sequence[Action] = (Action.READ,)
    writes: bool = False
    destroys: bool = False


def plain(answer: object) -> dict[str, Any]:
    """Return an answer of the service as JSON values."""
    found: dict[str, Any] = msgspec.to_builtins(answer)
    return found


def rows(answer: wire.ReadOutput, page: Page, mark: str = "") -> dict[str, Any]:
    """Return the rows that are wanted; the rest is to be read from the same commit.

    `mark` stands before the names of arguments that are no parameters.
    """
    hint = f" and {mark}snapshot='{answer.graph_commit_id}', without {mark}branch"
    return paged(plain(answer), "rows", page, f"{mark}skip", hint)


def page_of(given: takes.Paged) -> Page:
    """Return which part of a list is wanted."""
    return Page(given.skip, given.limit)


def _snapshot(visit: Visit, given: takes.OfBranch) -> dict[str, Any]:
    return paged(plain(operations.snapshot(visit, given.branch)), "datasets", page_of(given))


def _schema(visit: Visit, given: takes.Paged) -> dict[str, Any]:
    lines = operations.get_schema(visit).schema_source.splitlines(keepends=True)
    found = paged({"schema_source": lines}, "schema_source", page_of(given))
    return {**found, "schema_source": "".join(found["schema_source"])}


def _branches(visit: Visit, given: takes.Paged) -> dict[str, Any]:
    return paged(plain(operations.list_branches(visit)), "branches", page_of(given))


def _commits(visit: Visit, given: takes.OfBranch) -> dict[str, Any]:
    return paged(plain(operations.list_commits(visit, given.branch)), "commits", page_of(given))


def _commit(visit: Visit, given: takes.OfCommit) -> dict[str, Any]:
    return plain(operations.get_commit(visit, given.commit_id))


def _query(visit: Visit, given: takes.Query) -> dict[str, Any]:
    request = wire.QueryRequest(
        query=given.query,
        name=given.name,
        params=given.params,
        branch=given.branch,
        snapshot=given.snapshot,
    )
    return rows(operations.query(visit, request), page_of(given))


def _explain(visit: Visit, given: takes.Explain) -> dict[str, Any]:
    request = wire.ExplainRequest(**msgspec.structs.asdict(given))
    return plain(operations.explain(visit, request))


def _mutate(visit: Visit, given: takes.Mutate) -> dict[str, Any]:
    request = wire.ChangeRequest(
        query=given.query,
        name=given.name,
        params=given.params,
        branch=given.branch,
        message=given.message,
    )
    return plain(operations.mutate(visit, request, given.if_commit))


def _ingest(visit: Visit, given: takes.Ingest) -> dict[str, Any]:
    request = wire.IngestRequest(
        data=given.data, branch=given.branch, from_=given.from_, mode=given.mode
    )
    return plain(operations.load(visit, request))


def _create(visit: Visit, given: takes.BranchCreate) -> dict[str, Any]:
    request = wire.BranchCreateRequest(name=given.name, from_=given.from_)
    return plain(operations.create_branch(visit, request))


def _delete(visit: Visit, given: takes.BranchDelete) -> dict[str, Any]:
    return plain(operations.delete_branch(visit, given.name))


def _branches_merge(visit: Visit, given: takes.BranchMerge) -> dict[str, Any]:
    request = wire.BranchMergeRequest(
        source=given.source, target=given.target, delete_branch=given.delete_branch
    )
    return plain(operations.merge_branches(visit, request))


def _merge(visit: Visit, given: takes.Merge) -> dict[str, Any]:
    request = wire.BranchMergeRequest(**msgspec.structs.asdict(given))
    return _conflicts_cut(operations.merge_branches(visit, request))


def _conflicts_cut(answer: wire.BranchMergeOutput) -> dict[str, Any]:
    """Show the first conflicts, and say how many there are."""
    merged = plain(answer)
    conflicts = merged.get("conflicts", [])
    shown = part_of(conflicts, Page()).items
    return {**merged, "conflicts": shown, "conflict_count": len(conflicts)}


def _apply(visit: Visit, given: takes.SchemaApply) -> dict[str, Any]:
    request = wire.SchemaApplyRequest(
        schema_source=given.schema_source, allow_data_loss=given.allow_data_loss
    )
    return plain(operations.apply_schema(visit, request))


def _diff(visit: Visit, given: takes.Diff) -> dict[str, Any]:
    request = wire.DiffRequest(
        from_=given.from_, to=given.to, kind=given.kinds, type=given.types, op=given.ops
    )
    found = map(json.loads, operations.diff(visit, request))
    facts = {"from": given.from_, "to": given.to, "changes": found}
    return paged(facts, "changes", page_of(given))


def _propose(visit: Visit, given: takes.Propose) -> dict[str, Any]:
    proposal = operations.Proposal(
        query=given.query,
        name=given.name,
        params=given.params,
        branch=given.branch,
        from_=given.from_,
        target=given.target,
        message=given.message,
    )
    found = operations.propose(visit, proposal)
    part = part_of(map(json.loads, found.changes), Page(limit=given.limit))
    facts = {
        "branch": found.branch,
        "base": found.base,
        "base_commit_id": found.base_commit_id,
        "target": found.target,
        **{name: fact for name, fact in plain(found.done).items() if name != "branch"},
        "changes": part.items,
        "merge_preview": None if found.preview is None else _conflicts_cut(found.preview),
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
    Tool(
        name="schema_get",
        description="Show the schema: node and edge types with their properties. Look here first.",
        takes=takes.Paged,
        run=_schema,
    ),
    Tool(
        name="query",
        description="Read: answer a query in the query language.",
        takes=takes.Query,
        run=_query,
    ),
    Tool(name="read", description="The same as `query`.", takes=takes.Query, run=_query),
    Tool(
        name="explain",
        description="Show how a query is answered, step by step, and what it costs.",
        takes=takes.Explain,
        run=_explain,
    ),
    Tool(
        name="snapshot",
        description="List the types of a branch with the number of their entities and versions.",
        takes=takes.OfBranch,
        run=_snapshot,
    ),
    Tool(name="branches_list", description="List the branches.", takes=takes.Paged, run=_branches),
    Tool(
        name="commits_list",
        description="List the history of a branch, newest first.",
        takes=takes.OfBranch,
        run=_commits,
    ),
    Tool(name="commits_get", description="Show a commit.", takes=takes.OfCommit, run=_commit),
    Tool(
        name="diff",
        description="Tell which entities differ between two states, before and after.",
        takes=takes.Diff,
        run=_diff,
    ),
    Tool(
        name="propose_change",
        description="Propose a change for review: make a branch, run a mutation there, and show "
        "what it changes and whether it would merge. The target stays as it is.",
        takes=takes.Propose,
        run=_propose,
        actions=(Action.READ, Action.BRANCH_CREATE, Action.CHANGE),
        writes=True,
    ),
    Tool(
        name="mutate",
        description="Change data on a branch at once, as one commit. `propose_change` is safer.",
        takes=takes.Mutate,
        run=_mutate,
        actions=(Action.CHANGE,),
        writes=True,
        destroys=True,
    ),
    Tool(
        name="change",
        description="The same as `mutate`.",
        takes=takes.Mutate,
        run=_mutate,
        actions=(Action.CHANGE,),
        writes=True,
        destroys=True,
    ),
    Tool(
        name="ingest",
        description="Load nodes and edges given as lines of JSON, as one commit.",
        takes=takes.Ingest,
        run=_ingest,
        actions=(Action.CHANGE,),
        writes=True,
        destroys=True,
    ),
    Tool(
        name="branches_create",
        description="Make a branch.",
        takes=takes.BranchCreate,
        run=_create,
        actions=(Action.BRANCH_CREATE,),
        writes=True,
    ),
    Tool(
        name="branches_delete",
        description="Delete a branch.",
        takes=takes.BranchDelete,
        run=_delete,
        actions=(Action.BRANCH_DELETE,),
        writes=True,
        destroys=True,
    ),
    Tool(
        name="branches_merge",
        description="Merge a branch into another; conflicts change nothing.",
        takes=takes.BranchMerge,
        run=_branches_merge,
        actions=(Action.BRANCH_MERGE,),
        writes=True,
        destroys=True,
    ),
    Tool(
        name="merge",
        description="Merge a branch into another, decide conflicts, or with dry_run only tell "
        "what would happen.",
        takes=takes.Merge,
        run=_merge,
        actions=(Action.BRANCH_MERGE,),
        writes=True,
        destroys=True,
    ),
    Tool(
        name="schema_apply",
        description="Make another schema the accepted one.",
        takes=takes.SchemaApply,
        run=_apply,
        actions=(Action.SCHEMA_APPLY,),
        writes=True,
        destroys=True,
    ),
)
