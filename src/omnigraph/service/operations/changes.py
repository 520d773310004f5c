"""This module tells what changed."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.changes.commit_changes import Limits
from omnigraph.commit.history import commit_not_found_error
from omnigraph.errors import InvalidInput
from omnigraph.policy import PolicyDenied
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.operations.reading import shaped
from omnigraph.service.operations.targets import branch_name
from omnigraph.service.session import GraphSession


def commit_changes(
    visit: GraphSession, commit_id: str, asked: wire.ChangesQuery
) -> wire.CommitChangesOutput:
    """Tell what one commit changed; one of a branch that is not to be read is not there."""
    try:
        page = visit.graph.commits.changes(
            commit_id,
            kinds=asked.kind,
            types=asked.type,
            ops=asked.op,
            page_token=asked.page_token,
            limits=_limits(asked.limit),
        )
    except PolicyDenied as error:
        raise commit_not_found_error(commit_id) from error
    return shaped(page.to_json(), wire.CommitChangesOutput)


def poll_changes(visit: GraphSession, asked: wire.ChangesQuery) -> wire.ChangeFeedOutput:
    """Tell what happened on a branch since a place in its changes."""
    branch = branch_name(asked.branch)
    visit.require(PolicyAction.READ, branch)
    page = visit.graph.changes.poll(
        branch=branch,
        start=asked.start,
        cursor=asked.cursor,
        page_token=asked.page_token,
        kinds=asked.kind,
        types=asked.type,
        ops=asked.op,
        limits=_limits(asked.limit),
    )
    return shaped(page.to_json(), wire.ChangeFeedOutput)


def baseline(visit: GraphSession, request: wire.ChangeBaselineRequest) -> Iterator[str]:
    """Return a whole state as lines, the last of which tells how to go on from it."""
    branch = branch_name(request.branch)
    visit.require(PolicyAction.EXPORT, branch)
    found = visit.graph.changes.baseline(
        branch=branch, kinds=request.kind, types=request.type, ops=request.op
    )
    return found.records()


def _limits(limit: int | None) -> Limits:
    if limit is None:
        return Limits()
    if limit == 0:
        raise InvalidInput("`limit` is at least 1", code="limit_invalid", limit=limit)
    return Limits(changes=limit)
