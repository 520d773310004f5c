"""Authorise reads and writes of the data source, whose options name the actor and the policy.

The policy is passed as text, because Spark commits in a process of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Snapshot
from omnigraph.commit.snapshot import apply_scope
from omnigraph.policy import Policy, PolicyAction, TypeScope
from omnigraph.policy.authorization import AccessRights, Authorizer
from omnigraph.policy.policy import read_policy_text


@dataclass(frozen=True, slots=True)
class SourcePermission:
    """Who acts, and the text of the policy that decides; without one, everything is allowed."""

    policy: str | None = None
    actor: str | None = None

    @classmethod
    def by_options(cls, options: Mapping[str, str]) -> SourcePermission:
        """Read the options `policy`, which is a file or its text, and `actor`."""
        given = options.get("policy")
        is_text = given is None or "\n" in given or ":" in given
        return cls(given if is_text else read_policy_text(Path(str(given))), options.get("actor"))

    @property
    def gate(self) -> Authorizer:
        """The authorizer of the actor."""
        return Authorizer(None if self.policy is None else Policy.parse(self.policy), self.actor)

    def shown(self, manifest: Manifest, state: Snapshot) -> Snapshot:
        """Return what may be seen of a state."""
        return apply_scope(manifest, state, self.gate.check(PolicyAction.READ, state.branch))

    def sight(self, branch: str) -> TypeScope:
        """Return which types may be seen on a branch."""
        return self.gate.check(PolicyAction.READ, branch.strip())

    def rights(self, manifest: Manifest, branch: str, from_: str | None) -> AccessRights:
        """Authorise changes of a branch, and its creation if it does not exist."""
        gate, name = self.gate, branch.strip()
        gate.check_actor()
        if from_ is not None and name != MAIN and name not in manifest.branches():
            gate.check(PolicyAction.BRANCH_CREATE, from_.strip(), name)
        return gate.change_rights(name)
