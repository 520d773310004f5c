"""Authorisation of every operation on a graph.

Without a policy it is open and costs nothing. With one, an actor is needed, and every action is
decided by the policy.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.policy.cedar import AuthorizationRequest
from omnigraph.policy.errors import PolicyDenied
from omnigraph.policy.permissions import ALL_TYPES, NO_TYPES, PolicyAction, TypeScope
from omnigraph.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class AccessRights:
    """Which types an actor may change, and which types and properties it may see.

    `named` has the types that a change and its errors may name, with all their properties.
    """

    change: TypeScope = ALL_TYPES
    read: TypeScope = ALL_TYPES
    named: TypeScope = ALL_TYPES

    @property
    def is_everything(self) -> bool:
        """Whether no type or property is left out."""
        return self.change.is_everything and self.read.is_everything


ALL_RIGHTS = AccessRights()


@dataclass(frozen=True, slots=True)
class Authorizer:
    """Who wants to pass, and the policy that decides; without a policy everybody may."""

    policy: Policy | None = None
    actor: str | None = None

    def check_actor(self) -> None:
        """Raise PolicyDenied if there is a policy and no actor, before anything is read."""
        if self.policy is not None:
            self._known()

    def check(
        self, action: PolicyAction, branch: str | None = None, target_branch: str | None = None
    ) -> TypeScope:
        """Return the types an action is allowed for; raise PolicyDenied when it is not."""
        if self.policy is None:
            return ALL_TYPES
        decision = self.policy.decide(self._known(), action, branch, target_branch)
        if not decision.allowed:
            raise PolicyDenied(
                decision.message,
                actor=self.actor,
                action=str(action),
                branch=branch,
                target_branch=target_branch,
            )
        return decision.scope

    def types(self, action: PolicyAction, branch: str | None = None) -> TypeScope:
        """Return the types an action would be allowed for, possibly none."""
        if self.policy is None:
            return ALL_TYPES
        return self.policy.evaluate(AuthorizationRequest(self._known(), action, branch)).scope

    def change(self, branch: str) -> AccessRights:
        """Allow to change a branch; say which types, and what may be looked at for that.

        Who may change everything and has no rule about reading is not limited in what a change
        may ask; who may change some types may ask about those it may read.
        """
        allowed = self.check(PolicyAction.CHANGE, branch)
        if self.policy is None:
            return ALL_RIGHTS
        readable = self.types(PolicyAction.READ, branch)
        unread = readable == NO_TYPES and allowed.is_everything
        read = ALL_TYPES if unread else readable
        return AccessRights(allowed, read, allowed.types_and(read))

    def bring(self, branch: str) -> AccessRights:
        """Return what rules about types leave of the right to bring changes to a branch.

        Bringing is allowed by its own action; only rules that name types limit it.
        """
        if self.policy is None:
            return ALL_RIGHTS
        scopes = [self.types(action, branch) for action in (PolicyAction.CHANGE, PolicyAction.READ)]
        change, read = (ALL_TYPES if scope == NO_TYPES else scope for scope in scopes)
        # A right to merge does not include a right to read: only granted types may be named.
        return AccessRights(change, read, scopes[0].types_and(scopes[1]))

    def sees_all(self, *branches: str) -> bool:
        """Return whether no rule about types limits the actor on branches, by default on any."""
        if self.policy is None:
            return True
        places = branches or self.policy.kinds_of_branches
        return all(self.bring(branch).is_everything for branch in places)

    def whole(self, what: str, *branches: str) -> None:
        """Refuse what shows or changes all types, to an actor whose rules leave some out.

        Without branches, it is about all of them.
        """
        if not self.sees_all(*branches):
            message = (
                f"policy denied {what} to actor '{self.actor}': it is about all types, "
                "and the actor's rules leave some out"
            )
            raise PolicyDenied(message, actor=self.actor)

    def _known(self) -> str:
        if self.actor is None or not self.actor.strip():
            message = (
                "policy denied: a policy is installed and no actor is given; "
                "bind the graph to an actor"
            )
            raise PolicyDenied(message, actor=self.actor)
        return self.actor


ALLOW_ALL = Authorizer()
"""The gate of a graph without a policy and an actor."""
