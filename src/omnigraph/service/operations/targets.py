"""This module finds the state a request is about, and asks whether its branch may be read."""

from __future__ import annotations

from omnigraph.commit.model import MAIN, Snapshot
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service.session import GraphSession, log_commit


def branch_name(text: str | None) -> str:
    """Return the name of a branch without blanks around it; main when none is given."""
    if text is None:
        return MAIN
    name = text.strip()
    if not name:
        raise InvalidInput("the name of a branch is blank", code="branch_name_invalid")
    return name


def known_branch(visit: GraphSession, name: str) -> str:
    """Return the name of a branch there is.

    A name stands for a branch only: a tag or a commit id must not go around the rules of the branch
    it belongs to.
    """
    if not visit.graph.branches.exists(name):
        message = f"branch '{name}' does not exist"
        raise NotFound(message, code="branch_not_found", branch=name)
    return name


def head(visit: GraphSession, branch: str | None) -> Snapshot:
    """Return the newest state of a branch, if the caller may read it."""
    name = branch_name(branch)
    visit.require(PolicyAction.READ, name)
    found = visit.graph.snapshot(known_branch(visit, name))
    log_commit(found.commit_id)
    return found


def state(visit: GraphSession, branch: str | None, snapshot: str | None) -> Snapshot:
    """Return the state of a branch, or the one a commit id, tag or time names."""
    if branch is not None and snapshot is not None:
        message = "`branch` and `snapshot` exclude each other: give one"
        raise InvalidInput(message, code="target_ambiguous")
    if snapshot is None:
        return head(visit, branch)
    found = visit.graph.snapshot(snapshot)
    log_commit(found.commit_id)
    visit.require(PolicyAction.READ, found.branch)
    return found
