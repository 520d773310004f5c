"""This module finds the state a request is about, and asks whether its branch may be read."""

from __future__ import annotations

from omnigraph.commit.model import MAIN, Snapshot
from omnigraph.errors import InvalidInput
from omnigraph.policy.actions import Action
from omnigraph.service.visit import Visit


def branch_name(text: str | None) -> str:
    """Return the name of a branch without blanks around it; main when none is given."""
    if text is None:
        return MAIN
    name = text.strip()
    if not name:
        raise InvalidInput("the name of a branch is blank", code="branch_name_invalid")
    return name


def head(visit: Visit, branch: str | None, action: Action = Action.READ) -> Snapshot:
    """Return the newest state of a branch, if the caller may do that with it.

    A name stands for a branch only: a tag or a commit id must not go around the rules of the branch
    it belongs to.
    """
    name = branch_name(branch)
    visit.require(action, name)
    graph = visit.graph
    return graph.snapshot(graph.branches.get(name).name)


def state(visit: Visit, branch: str | None, snapshot: str | None) -> Snapshot:
    """Return the state of a branch, or the one a commit id, tag or time names."""
    if branch is not None and snapshot is not None:
        message = "`branch` and `snapshot` exclude each other: give one"
        raise InvalidInput(message, code="target_ambiguous")
    if snapshot is None:
        return head(visit, branch)
    found = visit.graph.snapshot(snapshot)
    visit.require(Action.READ, found.branch)
    return found
