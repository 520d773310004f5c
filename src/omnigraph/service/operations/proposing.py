"""This module proposes changes: made on a branch of their own, for somebody to look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ulid import ULID

from omnigraph.errors import Category, InvalidInput, OmniError
from omnigraph.policy import PolicyDenied
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.operations.branching import create_branch, merge_output
from omnigraph.service.operations.own import diff
from omnigraph.service.operations.targets import branch_name, head
from omnigraph.service.operations.writing import mutate
from omnigraph.service.session import GraphSession

PROPOSALS = "proposal/"
"""What the names of branches begin with that nobody named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRequest:
    """A mutation for a branch of its own, which is made for it.

    `from_` is where the branch begins, `target` where it is to be merged; both are main, or the
    one of them that is given.
    """

    query: str
    name: str | None = None
    params: Any = None
    branch: str | None = None
    from_: str | None = None
    target: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalResult:
    """What was proposed: the branch, what it changes, and what a merge would come to.

    `changes` are lines of JSON; `preview` is None for somebody who may not merge.
    """

    branch: str
    base: str
    target: str
    base_commit_id: str
    done: wire.ChangeOutput
    preview: wire.BranchMergeOutput | None
    changes: Iterator[str] = field(repr=False)


def propose(visit: GraphSession, proposal: ProposalRequest) -> ProposalResult:
    """Make a branch, run a mutation there, and tell what it changes and whether it would merge.

    When the mutation fails or changes nothing, the branch is removed again.
    """
    base = branch_name(proposal.from_ or proposal.target)
    target = branch_name(proposal.target or proposal.from_)
    name = branch_name(proposal.branch or f"{PROPOSALS}{str(ULID()).lower()}")
    visit.require(PolicyAction.CHANGE, name)
    for looked_at in (name, target):
        visit.require(PolicyAction.READ, looked_at)
    start = head(visit, base).commit_id
    create_branch(visit, wire.BranchCreateRequest(name=name, from_=base))
    try:
        done = _changed(visit, name, proposal)
    except OmniError as error:
        if error.category is not Category.OUTCOME_UNKNOWN:
            _removed(visit, name, error)
        raise
    return ProposalResult(
        branch=name,
        base=base,
        target=target,
        base_commit_id=start,
        done=done,
        preview=_preview(visit, name, target),
        changes=diff(visit, wire.DiffRequest(from_=start, to=name)),
    )


def _changed(visit: GraphSession, branch: str, proposal: ProposalRequest) -> wire.ChangeOutput:
    request = wire.ChangeRequest(
        query=proposal.query,
        name=proposal.name,
        params=proposal.params,
        branch=branch,
        message=proposal.message,
    )
    done = mutate(visit, request)
    if done.commit is None:
        message = f"'{done.query_name}' changes nothing, so there is nothing to propose"
        raise InvalidInput(message, code="proposal_empty")
    return done


def _removed(visit: GraphSession, branch: str, error: OmniError) -> None:
    """Remove the branch; who may make one may not always delete it, and is told that it stays."""
    try:
        visit.graph.branches.delete(branch)
    except PolicyDenied:
        error.details["branch_left"] = branch


def _preview(visit: GraphSession, source: str, target: str) -> wire.BranchMergeOutput | None:
    try:
        return merge_output(visit.graph.merge(source, target, dry_run=True))
    except PolicyDenied:
        return None
