"""This module is where a caller meets a graph: who it is, what it may do, how much at a time."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field

from omnigraph.graph import Graph
from omnigraph.policy import Policy, PolicyDenied
from omnigraph.policy.permissions import PolicyAction
from omnigraph.service.admission import AdmissionControl
from omnigraph.service.auth import AuthMode, TokenStore
from omnigraph.service.graph_registry import GraphRegistry, RegisteredGraph

_policy_log = logging.getLogger("omnigraph.policy")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphService:
    """Everything that is served, and the rules it is served by.

    Schemas of `declared` graphs change where they are declared, not here. `seconds` and `memory`
    bound each query.
    """

    registry: GraphRegistry
    state: AuthMode
    tokens: TokenStore = field(default_factory=TokenStore)
    policy: Policy | None = None
    admission: AdmissionControl = field(default_factory=AdmissionControl)
    declared: bool = False
    revision: int | None = None
    """The applied revision of the cluster that is served."""
    seconds: float | None = None
    memory: int | None = None

    def identify(self, authorization: str | None) -> str | None:
        """Return who a caller is, by the header it sends; nobody where nobody needs to be known.

        Raises:
            Unauthorized: the header shows no token, or one that nobody has.
        """
        return self.tokens.actor_of(authorization) if self.tokens else None

    def visit(self, graph_id: str, actor: str | None) -> GraphSession:
        """Let a caller in to a graph."""
        return GraphSession(self, self.registry.get(graph_id), actor)

    def require(self, actor: str | None, action: PolicyAction) -> None:
        """Raise PolicyDenied unless a caller may do something that concerns the server itself."""
        if self.policy is None or actor is None:
            raise _denied(actor, action)
        decision = self.policy.decide(actor, action)
        if not decision.allowed:
            raise PolicyDenied(decision.message)

    def could(self, actor: str | None, action: PolicyAction) -> bool:
        """Tell whether a caller may do something that concerns the server itself."""
        if self.policy is None or actor is None:
            return False
        return self.policy.allows_somewhere(actor, action)


@dataclass(frozen=True, slots=True)
class GraphSession:
    """One caller at one graph."""

    service: GraphService
    served: RegisteredGraph
    actor: str | None

    @property
    def graph(self) -> Graph:
        """The graph as this caller may use it."""
        return self.served.graph if self.actor is None else self.served.graph.as_actor(self.actor)

    def require(
        self, action: PolicyAction, branch: str | None = None, target_branch: str | None = None
    ) -> None:
        """Raise PolicyDenied unless the caller may do something here."""
        if self.service.state is AuthMode.OPEN:
            return
        if self.served.policy is not None and self.actor is not None:
            decision = self.served.policy.decide(self.actor, action, branch, target_branch)
            if not decision.allowed:
                raise PolicyDenied(decision.message)
        elif action is not PolicyAction.READ:
            raise _denied(self.actor, action, branch, target_branch)

    def could(self, action: PolicyAction) -> bool:
        """Tell whether there are branches on which the caller may do something here."""
        if self.service.state is AuthMode.OPEN:
            return True
        if self.served.policy is not None and self.actor is not None:
            return self.served.policy.allows_somewhere(self.actor, action)
        return action is PolicyAction.READ

    def admit(self, size: int) -> AbstractContextManager[None]:
        """Let a change of so many bytes through as long as it lasts."""
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


# ----------------------------------------------------------------------
# What every log line of one request carries: its id, its graph, its client, the commit.


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
