"""Permission checks of operations, and how a request names the state it reads."""

from __future__ import annotations

from typing import Any

from omnigraph.commit.model import MAIN, Snapshot
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service.operations.operation import Access
from omnigraph.service.session import GraphSession, ServiceSession, log_commit


def branch_name(text: str | None) -> str:
    """Return the name of a branch without surrounding blanks; main when none is given."""
    if text is None:
        return MAIN
    name = text.strip()
    if not name:
        raise InvalidInput("the name of a branch is blank", code="branch_name_invalid")
    return name


def known_branch(session: GraphSession, name: str) -> str:
    """Return the name of an existing branch.

    A tag or a commit ID is not accepted: it would bypass the rules of its branch.
    """
    if not session.graph.branches.exists(name):
        message = f"branch '{name}' does not exist"
        raise NotFound(message, code="branch_not_found", branch=name)
    return name


def head(session: GraphSession, branch: str | None) -> Snapshot:
    """Return the newest state of a branch, if the caller may read it."""
    name = branch_name(branch)
    session.require(PolicyAction.READ, name)
    snapshot = session.graph.snapshot(known_branch(session, name))
    log_commit(snapshot.commit_id)
    return snapshot


def state(session: GraphSession, branch: str | None, snapshot: str | None) -> Snapshot:
    """Return the state of a branch, or of a commit ID, tag or time, if the caller may read it.

    A request resolves each state once: its check and its function get the same one.
    """
    if branch is not None and snapshot is not None:
        message = "`branch` and `snapshot` exclude each other: give one"
        raise InvalidInput(message, code="target_ambiguous")
    key = branch, snapshot
    if key not in session.snapshots:
        session.snapshots[key] = _resolve(session, branch, snapshot)
    return session.snapshots[key]


def _resolve(session: GraphSession, branch: str | None, snapshot: str | None) -> Snapshot:
    if snapshot is None:
        return head(session, branch)
    resolved = session.graph.snapshot(snapshot)
    log_commit(resolved.commit_id)
    session.require(PolicyAction.READ, resolved.branch)
    return resolved


def _read_state(session: GraphSession, request: Any) -> None:  # noqa: ANN401 - any request
    state(session, request.branch, request.snapshot)


READ_STATE = Access((PolicyAction.READ,), _read_state, "on the branch of the state")
"""The caller may read the state that `branch` or `snapshot` names."""

ANYONE = Access((), lambda _session, _request: None)
"""Every caller that is let in."""


def on_server(action: PolicyAction) -> Access:
    """Return the check for an action that concerns the server, not a graph."""

    def check(session: ServiceSession, _: object) -> None:
        session.require(action)

    return Access((action,), check)


def on_graph(action: PolicyAction) -> Access:
    """Return the check for an action on no branch in particular."""

    def check(session: GraphSession, _: object) -> None:
        session.require(action)

    return Access((action,), check)


def on_branch(action: PolicyAction, member: str = "branch") -> Access:
    """Return the check for an action on the branch that a member of the request names."""

    def check(session: GraphSession, request: object) -> None:
        session.require(action, branch_name(getattr(request, member)))

    return Access((action,), check, "on the branch")


def on_target(action: PolicyAction, member: str = "branch") -> Access:
    """Return the check for an action whose target is what a member of the request names."""

    def check(session: GraphSession, request: object) -> None:
        session.require(action, None, branch_name(getattr(request, member)))

    return Access((action,), check, "with it as the target branch")
