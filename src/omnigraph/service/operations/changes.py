"""Operations on history: commits, the changes of a commit or a branch, differences of states."""

from __future__ import annotations

import json
from collections.abc import Iterator

from omnigraph.changes.commit_changes import Limits
from omnigraph.commit.history import commit_not_found_error
from omnigraph.errors import InvalidInput
from omnigraph.policy import PolicyDenied
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.operations import tool_arguments
from omnigraph.service.operations.access import branch_name, on_branch, on_graph, state
from omnigraph.service.operations.answers import commit_output, to_answer
from omnigraph.service.operations.links import Link, commit_links, from_answer
from omnigraph.service.operations.operation import Access, Tool, operation
from omnigraph.service.operations.paths import JSON_ERRORS
from omnigraph.service.session import GraphSession

_CHANGE_ERRORS = (400, 404, 409, 410, 413, 500, 503)


@operation(
    name="cluster_listCommits",
    route="GET /commits",
    tag="commits",
    summary="List the commits of a branch, newest first",
    access=on_branch(PolicyAction.READ),
    example={"branch": "main", "limit": 20},
    links=commit_links("commits/0/graph_commit_id"),
    tools=(
        Tool(
            name="commits_list",
            description="List the commits of a branch, newest first.",
            arguments=tool_arguments.BranchArguments,
            pages="commits",
            adapter="limited_list",
        ),
    ),
)
def list_commits(session: GraphSession, request: wire.CommitListQuery) -> wire.CommitListOutput:
    """Return the commits a branch descends from; with `actor`, only those of one author."""
    commits = session.graph.commits.list(
        branch_name(request.branch), limit=request.limit, actor=request.actor
    )
    return wire.CommitListOutput(commits=[commit_output(commit) for commit in commits])


@operation(
    name="cluster_getCommit",
    route="GET /commits/{commit_id}",
    tag="commits",
    summary="Return a commit",
    access=on_graph(PolicyAction.READ),
    tools=(
        Tool(
            name="commits_get",
            description="Show a commit.",
            arguments=tool_arguments.CommitArguments,
        ),
    ),
)
def get_commit(session: GraphSession, request: wire.CommitQuery) -> wire.CommitOutput:
    """Return a commit of any branch: its parents, author, time and counts of changes."""
    return commit_output(session.graph.commits.get(request.commit_id))


def _check_commit_changes(session: GraphSession, request: wire.CommitChangesQuery) -> None:
    """Check that the caller may read at all; the graph checks the branch of the commit."""
    if not session.may_somewhere(PolicyAction.READ):
        raise commit_not_found_error(request.commit_id)


@operation(
    name="cluster_getCommitChanges",
    route="GET /commits/{commit_id}/changes",
    tag="changes",
    summary="List the changes of a commit",
    errors=_CHANGE_ERRORS,
    access=Access(
        (PolicyAction.READ,),
        _check_commit_changes,
        "on the branch of the commit; others are not found",
    ),
    example={"limit": 100, "kind": ["node"]},
    change_errors=True,
    exact_query=True,
    links=(
        Link(
            "cluster_getCommitChanges",
            {"commit_id": "$request.path.commit_id", "page_token": from_answer("next_page_token")},
        ),
    ),
)
def commit_changes(
    session: GraphSession, request: wire.CommitChangesQuery
) -> wire.CommitChangesOutput:
    """Return what a commit changed against its first parent, one page at a time."""
    try:
        page = session.graph.commits.changes(
            request.commit_id,
            kinds=request.kind,
            types=request.type,
            ops=request.op,
            page_token=request.page_token,
            limits=_limits(request.limit),
        )
    except PolicyDenied as error:
        raise commit_not_found_error(request.commit_id) from error
    return to_answer(page.to_json(), wire.CommitChangesOutput)


@operation(
    name="cluster_pollChanges",
    route="GET /changes",
    tag="changes",
    summary="List the changes of a branch since a cursor",
    errors=_CHANGE_ERRORS,
    access=on_branch(PolicyAction.READ),
    example={"branch": "main", "start": "beginning"},
    change_errors=True,
    exact_query=True,
    links=(Link("cluster_pollChanges", {"cursor": from_answer("cursor")}),),
)
def poll_changes(session: GraphSession, request: wire.ChangeFeedQuery) -> wire.ChangeFeedOutput:
    """Return the next page of changes of a branch, commit by commit, and a cursor to continue.

    `start` is `now`, `beginning` or `after:COMMIT_ID`; a later request has the `cursor` of the
    answer, or its `page_token` when the page ended within a commit.
    """
    page = session.graph.changes.poll(
        branch=branch_name(request.branch),
        start=request.start,
        cursor=request.cursor,
        page_token=request.page_token,
        kinds=request.kind,
        types=request.type,
        ops=request.op,
        limits=_limits(request.limit),
    )
    return to_answer(page.to_json(), wire.ChangeFeedOutput)


@operation(
    name="cluster_captureChangeBaseline",
    route="POST /changes/baseline",
    tag="changes",
    summary="Export a state with the cursor that continues from it",
    line=wire.ChangeBaselineRecord,
    errors=(400, 404, 408, 413, 415, 500, 503),
    access=on_branch(PolicyAction.EXPORT),
    example={"branch": "main"},
    change_errors=True,
    invalid_body_code="baseline_invalid",
)
def baseline(session: GraphSession, request: wire.ChangeBaselineRequest) -> Iterator[str]:
    """Return all entities of the newest state as lines; the last line has the cursor.

    A reader that keeps a copy loads the baseline and then polls changes from its cursor.
    """
    captured = session.graph.changes.baseline(
        branch=branch_name(request.branch), kinds=request.kind, types=request.type, ops=request.op
    )
    return captured.records()


def _check_diff(session: GraphSession, request: wire.DiffRequest) -> None:
    for name in (request.from_, request.to):
        state(session, None, name)


@operation(
    name="diff",
    route="POST /diff",
    tag="changes",
    summary="Compare two states, one line of JSON for each entity that differs",
    errors=(*JSON_ERRORS, 409, 503),
    access=Access((PolicyAction.READ,), _check_diff, "on the branches of both states"),
    extension=True,
    example={"from": "main", "to": "review/ada"},
    tools=(
        Tool(
            name="diff",
            description="List the entities that differ between two states, before and after.",
            arguments=tool_arguments.DiffArguments,
            adapter="diff",
        ),
    ),
)
def diff(session: GraphSession, request: wire.DiffRequest) -> Iterator[str]:
    """Return each entity that differs between two branches, tags, commits or times.

    Every line has the entity before and after, nodes first, sorted by type and ID.
    """
    old, new = (state(session, None, name) for name in (request.from_, request.to))
    changes = session.graph.diff(old, new, kinds=request.kind, types=request.type, ops=request.op)
    return (json.dumps(change.to_json(), ensure_ascii=False) for change in changes)


def _limits(limit: int | None) -> Limits:
    if limit is None:
        return Limits()
    if limit == 0:
        raise InvalidInput("`limit` is at least 1", code="limit_invalid", limit=limit)
    return Limits(changes=limit)
