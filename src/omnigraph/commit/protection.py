"""Protection of branches: what publishing requires of a commit on a protected branch.

The rules are stored on main and folded into every head; those of the policy in use count as well.
A commit has to carry a proposal that satisfies every rule of its branch, or be made by an actor who
may bypass protection, which the commit records. Maintenance, which changes no entity, is allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.commit.model import CommitId, Head, ProposalMark
from omnigraph.errors import Category, OmniError
from omnigraph.policy.protection_rules import ProtectionRule, read_rules


def _never() -> bool:
    return False


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePermit:
    """What a writer shows where a branch is protected.

    `rules` are those of the policy in use. `satisfied` are the rules that the `proposal` was found
    to satisfy, `settled` the proposals whose merge is an event already. `confirm` raises unless the
    proposal can still be merged; every attempt to publish calls it. `may_bypass` decides whether
    the actor may bypass protection; it is called only where that matters.
    """

    rules: tuple[ProtectionRule, ...] = ()
    proposal: ProposalMark | None = None
    satisfied: frozenset[ProtectionRule] = frozenset()
    settled: frozenset[int] = frozenset()
    confirm: Callable[[], None] = field(default=_nothing, compare=False)
    may_bypass: Callable[[], bool] = field(default=_never, compare=False)


NO_PERMIT = WritePermit()


class BranchProtected(OmniError):
    """The branch accepts only merges of proposals that satisfy its rules."""

    def __init__(self, what: str, message: str, **details: Any) -> None:  # noqa: ANN401
        super().__init__(
            message, code="branch_protected", category=Category.DENIED, details=details
        )
        self.what = what


def rules_of(head: Head, permit: WritePermit = NO_PERMIT) -> tuple[ProtectionRule, ...]:
    """Return the stored rules of a graph and those of the policy in use."""
    stored = read_rules(head.protection.get("rules", []))
    return (*stored, *(rule for rule in permit.rules if rule not in stored))


def rules_for(
    branch: str, head: Head, permit: WritePermit = NO_PERMIT
) -> tuple[ProtectionRule, ...]:
    """Return the rules about a branch."""
    if not head.protection and not permit.rules:
        return ()
    return tuple(rule for rule in rules_of(head, permit) if rule.covers(branch) and rule.proposal)


def check_publish(branch: str, head: Head, permit: WritePermit) -> bool:
    """Return whether a commit bypasses the protection of its branch.

    Raises:
        BranchProtected: the branch is protected and the writer shows nothing that permits it.
        OmniError: the proposal was merged already.
    """
    proposal = permit.proposal
    if proposal is not None and str(proposal.number) in head.merged:
        raise already_merged(proposal.number, head.merged[str(proposal.number)])
    permit.confirm()
    rules = rules_for(branch, head, permit)
    missing = [rule for rule in rules if rule not in permit.satisfied]
    if proposal is not None and not missing:
        return False
    if not rules:
        return False
    if permit.may_bypass():
        return True
    raise direct_write_refused(branch)


def head_after_merge(head: Head, permit: WritePermit, commit_id: CommitId) -> Head:
    """Return the head with the proposal that a commit merges; settled ones are dropped."""
    if permit.proposal is None:
        return head
    others = {n: id_ for n, id_ in head.merged.items() if int(n) not in permit.settled}
    return replace(head, merged={**others, str(permit.proposal.number): commit_id})


def already_merged(number: int, commit_id: str | None) -> OmniError:
    """Return the error for merging a proposal twice; one without changes has no commit."""
    by = "" if commit_id is None else f", by commit {commit_id}"
    return OmniError(
        f"proposal {number} was merged already{by}",
        code="proposal_not_open",
        category=Category.CONFLICT,
        details={"proposal": number, "commit_id": commit_id},
    )


def direct_write_refused(branch: str) -> BranchProtected:
    """Return the error for a write that does not carry out a satisfied proposal."""
    message = (
        f"branch '{branch}' is protected: change it on a branch of its own, open a proposal into "
        f"'{branch}' (`omnigraph proposal create`, `graph.proposals.create`), and merge that"
    )
    return BranchProtected("commit", message, branch=branch)


def check_ref_change(what: str, kind: str, name: str, head: Head, permit: WritePermit) -> bool:
    """Return whether creating or deleting a branch or tag bypasses protection; raise if refused."""
    rules = rules_of(head, permit) if head.protection or permit.rules else ()
    covered = any(r.covers_tag(name) if kind == "tag" else r.covers(name) for r in rules)
    if not covered:
        return False
    if permit.may_bypass():
        return True
    message = (
        f"{kind} '{name}' is protected: to {what} it needs the policy action `bypass_protection`, "
        "or change the protection first (`omnigraph protection`)"
    )
    raise BranchProtected(what, message, **{kind: name})


def folded_protection(head: Head) -> dict[str, Any]:
    """Return the protection of main as the head of a new branch holds it."""
    return {k: v for k, v in head.protection.items() if k != "spreading"}
