"""Sessions: who calls which graph, what the policy allows, and the log fields of a request."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field

from omnigraph.commit.model import Snapshot
from omnigraph.graph import Graph
from omnigraph.policy import Policy, PolicyDenied
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service.admission import AdmissionControl
from omnigraph.service.auth import AuthMode, TokenStore
from omnigraph.service.graph_registry import GraphRegistry, RegisteredGraph

_policy_log = logging.getLogger("omnigraph.policy")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphService:
    """The graphs a server serves, with its tokens, policy and limits.

    Schemas of `declared` graphs are changed in the cluster, not here. `seconds` and `memory`
    limit each query.
    """

    registry: GraphRegistry
    state: AuthMode
    tokens: TokenStore = field(default_factory=TokenStore)
    policy: Policy | None = None
    admission: AdmissionControl = field(default_factory=AdmissionControl)
    declared: bool = False
    local: bool = False
    """Serves one person on this machine: `omnigraph studio`."""
    revision: int | None = None
    """The applied revision of the cluster that is served."""
    seconds: float | None = None
    memory: int | None = None

    def identify(self, authorization: str | None) -> str | None:
        """Return the actor of an Authorization header; None on a server without tokens.

        Raises:
            Unauthorized: the header has no token, or an unknown one.
        """
        return self.tokens.actor_of(authorization) if self.tokens else None

    def session(self, graph_id: str, actor: str | None) -> GraphSession:
        """Return the session of a caller on a graph."""
        return GraphSession(self, self.registry.get(graph_id), actor)


@dataclass(frozen=True, slots=True)
class ServiceSession:
    """One caller of the server, for operations that do not address a graph."""

    service: GraphService
    actor: str | None
    expires_at: int | None = None
    """When the session of a browser ends, in seconds since 1970; None for other callers."""

    def require(self, action: PolicyAction) -> None:
        """Raise PolicyDenied unless the policy of the server allows an action."""
        policy = self.service.policy
        if policy is None or self.actor is None:
            raise _denied(self.actor, action)
        decision = policy.decide(self.actor, action)
        if not decision.allowed:
            raise PolicyDenied(decision.message)

    def may_somewhere(self, action: PolicyAction) -> bool:
        """Return whether the policy of the server allows an action."""
        if self.service.policy is None or self.actor is None:
            return False
        return self.service.policy.allows_somewhere(self.actor, action)


@dataclass(frozen=True, slots=True)
class GraphSession:
    """One caller of one graph, for one request.

    `timeout` is how many seconds a write waits for other writers. `snapshots` holds the states the
    request has resolved, so that its permission check and its function read the same one.
    """

    service: GraphService
    registered: RegisteredGraph
    actor: str | None
    timeout: float | None = None
    snapshots: dict[tuple[str | None, str | None], Snapshot] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def graph(self) -> Graph:
        """The graph, restricted to what the caller may see and do."""
        graph, checks = self.registered.graph, self.registered.stored.checks
        if self.actor is not None:
            graph = graph.as_verified_actor(self.actor)
        return graph.with_checks(checks) if checks else graph

    def require(
        self, action: PolicyAction, branch: str | None = None, target_branch: str | None = None
    ) -> None:
        """Raise PolicyDenied unless the policy of the graph allows an action."""
        if self.service.state is AuthMode.OPEN:
            return
        if self.registered.policy is not None and self.actor is not None:
            decision = self.registered.policy.decide(self.actor, action, branch, target_branch)
            if not decision.allowed:
                raise PolicyDenied(decision.message)
        elif action is not PolicyAction.READ:
            raise _denied(self.actor, action, branch, target_branch)

    def may_somewhere(self, action: PolicyAction) -> bool:
        """Return whether the policy allows an action on at least one branch."""
        if self.service.state is AuthMode.OPEN:
            return True
        if self.registered.policy is not None and self.actor is not None:
            return self.registered.policy.allows_somewhere(self.actor, action)
        return action is PolicyAction.READ

    def admit(self, size: int) -> AbstractContextManager[None]:
        """Count a change of `size` bytes against the limits of the actor while it runs."""
        return self.service.admission.admit(self.actor, size)


def _denied(
    actor: str | None,
    action: PolicyAction,
    branch: str | None = None,
    target_branch: str | None = None,
) -> PolicyDenied:
    facts = {
        "actor": actor,
        "action": str(action),
        "branch": branch,
        "target_branch": target_branch,
        "allowed": False,
        "matched_rule": None,
    }
    message = f"no policy allows action '{action}' for actor '{actor or 'anonymous'}'"
    _policy_log.info("%s", message, extra=facts)
    return PolicyDenied(message)


# Log fields of a request.


@dataclass(slots=True)
class RequestLog:
    """Fields of one request; the commit is the one that was read, or that a change made."""

    request_id: str
    client_address: str | None = None
    graph_id: str | None = None
    commit_id: str | None = None


current_request: ContextVar[RequestLog | None] = ContextVar("current_request", default=None)
"""The request on whose behalf code runs, also in threads that copy the context."""


def log_commit(commit_id: str) -> None:
    """Note which commit the current request is about."""
    request = current_request.get()
    if request is not None:
        request.commit_id = commit_id


def log_result_commit(answer: object) -> None:
    """Note the commit of a change, if its answer (a body, or its members) has one."""
    commit = _member(answer, "commit")
    commit_id = None if commit is None else _member(commit, "graph_commit_id")
    if isinstance(commit_id, str):
        log_commit(commit_id)


def _member(body: object, name: str) -> object:
    return body.get(name) if isinstance(body, dict) else getattr(body, name, None)
