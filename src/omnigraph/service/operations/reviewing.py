"""This module is for changes that somebody looks at first: explain, compare, try, propose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ulid import ULID

from omnigraph.changes.model import Change
from omnigraph.errors import Category, InvalidInput, OmniError
from omnigraph.policy import PolicyDenied
from omnigraph.policy.actions import Action
from omnigraph.service import wire
from omnigraph.service.admission import BRANCH_BYTES
from omnigraph.service.operations.branching import create_branch
from omnigraph.service.operations.targets import branch_name, head, state
from omnigraph.service.operations.writing import mutate
from omnigraph.service.visit import Visit

PROPOSALS = "proposal/"
"""What the names of branches begin with that nobody named."""


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes somebody wants to see; what is empty asks for all."""

    kinds: Sequence[str] = ()
    types: Sequence[str] = ()
    ops: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeWish:
    """A merge: `dry_run` only tells what would happen, `resolve` says who wins."""

    source: str
    target: str | None = None
    dry_run: bool = False
    strict: bool = False
    resolve: Any = None
    delete_branch: bool = False
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """What was proposed: the branch, what it changes, and what a merge would come to.

    `preview` is None for somebody who may not even try the merge.
    """

    branch: str
    base: str
    target: str
    base_commit_id: str
    done: wire.ChangeOutput
    preview: dict[str, Any] | None
    changes: Iterator[Change] = field(repr=False)


def explain(visit: Visit, request: wire.QueryRequest, *, analyze: bool = False) -> dict[str, Any]:
    """Show how a query is answered."""
    at = state(visit, request.branch, request.snapshot)
    found = visit.graph.explain(
        request.query, request.params, name=request.name, at=at, analyze=analyze
    )
    return found.to_json()


def compare(
    visit: Visit, old: str, new: str, wanted: ChangeFilter | None = None
) -> Iterator[Change]:
    """Tell what became of each entity between two states: branches, tags, commit ids or times."""
    chosen = wanted or ChangeFilter()
    before, after = (state(visit, None, name) for name in (old, new))
    return visit.graph.diff(before, after, kinds=chosen.kinds, types=chosen.types, ops=chosen.ops)


def merge(visit: Visit, wish: MergeWish) -> dict[str, Any]:
    """Merge a branch into another, or tell what that would come to, conflicts included."""
    source, target = branch_name(wish.source), branch_name(wish.target)
    visit.require(Action.BRANCH_MERGE, source, target)
    if wish.delete_branch:
        visit.require(Action.BRANCH_DELETE, None, source)
    with visit.admit(BRANCH_BYTES):
        done = visit.graph.merge(
            source,
            target,
            dry_run=wish.dry_run,
            strict=wish.strict,
            resolve=wish.resolve,
            delete_branch=wish.delete_branch,
            message=wish.message,
        )
    return done.to_json()


def propose(visit: Visit, proposal: Proposal) -> Proposed:
    """Make a branch, run a mutation there, and tell what it changes and whether it would merge.

    When the mutation fails or changes nothing, the branch is removed again.
    """
    base = branch_name(proposal.from_ or proposal.target)
    target = branch_name(proposal.target or proposal.from_)
    name = branch_name(proposal.branch or f"{PROPOSALS}{str(ULID()).lower()}")
    visit.require(Action.CHANGE, name)
    for looked_at in (name, target):
        visit.require(Action.READ, looked_at)
    start = head(visit, base)
    create_branch(visit, wire.BranchCreateRequest(name=name, from_=base))
    try:
        done = _changed(visit, name, proposal)
    except OmniError as error:
        if error.category is not Category.OUTCOME_UNKNOWN:
            # Who may make a branch may not always delete one: then it stays, as it was forked.
            with suppress(PolicyDenied):
                visit.graph.branches.delete(name)
        raise
    return Proposed(
        branch=name,
        base=base,
        target=target,
        base_commit_id=start.commit_id,
        done=done,
        preview=_preview(visit, name, target),
        changes=compare(visit, start.commit_id, name),
    )


def _changed(visit: Visit, branch: str, proposal: Proposal) -> wire.ChangeOutput:
    request = wire.ChangeRequest(
        query=proposal.query, name=proposal.name, params=proposal.params, branch=branch
    )
    done = mutate(visit, request)
    if done.commit is None:
        message = f"'{done.query_name}' changes nothing, so there is nothing to propose"
        raise InvalidInput(message, code="proposal_empty")
    return done


def _preview(visit: Visit, source: str, target: str) -> dict[str, Any] | None:
    try:
        return visit.graph.merge(source, target, dry_run=True).to_json()
    except PolicyDenied:
        return None
