"""This module is where a caller meets a graph: who it is, what it may do, how much at a time."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from omnigraph.graph import Graph
from omnigraph.policy import Policy, PolicyDenied
from omnigraph.policy.actions import Action
from omnigraph.service.admission import Admission
from omnigraph.service.registry import Registry, Served
from omnigraph.service.runtime import RuntimeState
from omnigraph.service.tokens import Tokens

_log = logging.getLogger("omnigraph.policy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Everything that is served, and the rules it is served by.

    Schemas of `declared` graphs change where they are declared, not here. `seconds` and `memory`
    bound each query.
    """

    registry: Registry
    state: RuntimeState
    tokens: Tokens = field(default_factory=Tokens)
    policy: Policy | None = None
    admission: Admission = field(default_factory=Admission)
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

    def visit(self, graph_id: str, actor: str | None) -> Visit:
        """Let a caller in to a graph."""
        return Visit(self, self.registry.get(graph_id), actor)

    def require(self, actor: str | None, action: Action) -> None:
        """Raise PolicyDenied unless a caller may do something that concerns the server itself."""
        if self.policy is None or actor is None:
            raise _denied(actor, action)
        decision = self.policy.decide(actor, action)
        if not decision.allowed:
            raise PolicyDenied(decision.message)

    def could(self, actor: str | None, action: Action) -> bool:
        """Tell whether a caller may do something that concerns the server itself."""
        if self.policy is None or actor is None:
            return False
        return self.policy.allows_somewhere(actor, action)


@dataclass(frozen=True, slots=True)
class Visit:
    """One caller at one graph."""

    service: Service
    served: Served
    actor: str | None

    @property
    def graph(self) -> Graph:
        """The graph as this caller may use it."""
        return self.served.graph if self.actor is None else self.served.graph.as_actor(self.actor)

    def require(
        self, action: Action, branch: str | None = None, target_branch: str | None = None
    ) -> None:
        """Raise PolicyDenied unless the caller may do something here."""
        if self.service.state is RuntimeState.OPEN:
            return
        if self.served.policy is not None and self.actor is not None:
            decision = self.served.policy.decide(self.actor, action, branch, target_branch)
            if not decision.allowed:
                raise PolicyDenied(decision.message)
        elif action is not Action.READ:
            raise _denied(self.actor, action, branch, target_branch)

    def could(self, action: Action) -> bool:
        """Tell whether there are branches on which the caller may do something here."""
        if self.service.state is RuntimeState.OPEN:
            return True
        if self.served.policy is not None and self.actor is not None:
            return self.served.policy.allows_somewhere(self.actor, action)
        return action is Action.READ

    def admit(self, size: int) -> AbstractContextManager[None]:
        """Let a change of so many bytes through as long as it lasts."""
        return self.service.admission.admit(self.actor, size)


def _denied(
    actor: str | None,
    action: Action,
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
    _log.info("%s", message, extra=facts)
    return PolicyDenied(message)
