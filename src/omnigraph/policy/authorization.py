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
    """An actor and the policy that decides; without a policy everything is allowed."""

    policy: Policy | None = None
    actor: str | None = None

    def check_actor(self) -> None:
        """Raise PolicyDenied if there is a policy and no actor, before anything is read."""
        if self.policy is not None:
            self._require_actor()

    def check(
        self, action: PolicyAction, branch: str | None = None, target_branch: str | None = None
    ) -> TypeScope:
        """Return the types an action is allowed for; raise PolicyDenied when it is not."""
        if self.policy is None:
            return ALL_TYPES
        decision = self.policy.decide(self._require_actor(), action, branch, target_branch)
        if not decision.allowed:
            raise PolicyDenied(
                decision.message,
                actor=self.actor,
                action=str(action),
                branch=branch,
                target_branch=target_branch,
            )
        return decision.scope

    def may_bypass_protection(self, branch: str) -> bool:
        """Return whether the actor may change a protected branch; the decision is logged.

        Without a policy no one may: protection would mean nothing.
        """
        if self.policy is None or self.actor is None:
            return False
        action = PolicyAction.BYPASS_PROTECTION
        return self.policy.decide(self.actor, action, None, branch).allowed

    def is_allowed_somewhere(self, action: PolicyAction) -> bool:
        """Return whether an action is allowed on any branch; nothing is logged."""
        if self.policy is None:
            return True
        return self.policy.allows_somewhere(self._require_actor(), action)

    def allowed_types(self, action: PolicyAction, branch: str | None = None) -> TypeScope:
        """Return the types an action would be allowed for, possibly none."""
        if self.policy is None:
            return ALL_TYPES
        return self.policy.evaluate(
            AuthorizationRequest(self._require_actor(), action, branch)
        ).scope

    def change_rights(self, branch: str) -> AccessRights:
        """Authorise changes of a branch; return which types, and what may be read for that.

        An actor that may change everything and has no rule about reading may use any type in
        conditions; one that may change some types may use those it may read.
        """
        allowed = self.check(PolicyAction.CHANGE, branch)
        if self.policy is None:
            return ALL_RIGHTS
        readable = self.allowed_types(PolicyAction.READ, branch)
        unread = readable == NO_TYPES and allowed.is_everything
        read = ALL_TYPES if unread else readable
        return AccessRights(allowed, read, allowed.union_of_types(read))

    def merge_rights(self, branch: str) -> AccessRights:
        """Return what rules about types leave of the right to bring changes to a branch.

        Bringing is allowed by its own action; only rules that name types limit it.
        """
        if self.policy is None:
            return ALL_RIGHTS
        scopes = [
            self.allowed_types(action, branch)
            for action in (PolicyAction.CHANGE, PolicyAction.READ)
        ]
        change, read = (ALL_TYPES if scope == NO_TYPES else scope for scope in scopes)
        # A right to merge does not include a right to read: only granted types may be named.
        return AccessRights(change, read, scopes[0].union_of_types(scopes[1]))

    def is_unrestricted(self, *branches: str) -> bool:
        """Return whether no rule about types limits the actor on branches, by default on any."""
        if self.policy is None:
            return True
        places = branches or self.policy.representative_branches
        return all(self.merge_rights(branch).is_everything for branch in places)

    def require_unrestricted(self, what: str, *branches: str) -> None:
        """Refuse what shows or changes all types, to an actor whose rules leave some out.

        Without branches, it is about all of them.
        """
        if not self.is_unrestricted(*branches):
            message = (
                f"policy denied {what} to actor '{self.actor}': it is about all types, "
                "and the actor's rules leave some out"
            )
            raise PolicyDenied(message, actor=self.actor)

    def _require_actor(self) -> str:
        if self.actor is None or not self.actor.strip():
            message = (
                "policy denied: a policy is installed and no actor is given; "
                "bind the graph to an actor"
            )
            raise PolicyDenied(message, actor=self.actor)
        return self.actor


ALLOW_ALL = Authorizer()
"""The gate of a graph without a policy and an actor."""
