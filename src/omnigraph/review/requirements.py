"""Whether a proposal satisfies the rules that protect its target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omnigraph.commit.proposal_log import ProposalRecord
from omnigraph.policy.protection_rules import ProtectionRule, group_members, lacks_approvers
from omnigraph.review.model import Requirement, Verdict


def evaluate_rules(
    rules: Sequence[ProtectionRule],
    record: ProposalRecord,
    head: tuple[str, str],
    authors: frozenset[str],
    groups: Mapping[str, Sequence[str]] | None,
    sets_values: str | None = None,
) -> dict[ProtectionRule, list[Requirement]]:
    """Return the requirements of each rule.

    `head` is the commit and the lineage of the source now, `authors` are the actors of the commits
    to be merged. Checks are not among them: they run on the state that the merge makes.
    `sets_values` is who merges, if they set values of their own where the branches conflict.
    """
    return {rule: _evaluate(rule, record, head, authors, groups, sets_values) for rule in rules}


def _evaluate(
    rule: ProtectionRule,
    record: ProposalRecord,
    head: tuple[str, str],
    authors: frozenset[str],
    groups: Mapping[str, Sequence[str]] | None,
    sets_values: str | None,
) -> list[Requirement]:
    members = group_members(rule, groups)
    excluded = frozenset() if rule.self_approval else authors | {record.author}
    approving, stale = set[str](), set[str]()
    for actor, verdict in record.verdicts.items():
        counts = (members is None or actor in members) and actor not in excluded
        if verdict[0] == Verdict.APPROVE and counts:
            is_fresh = (verdict[1], verdict[2]) == head
            (approving if is_fresh or not rule.fresh else stale).add(actor)
    blocking = sorted(
        actor
        for actor, verdict in record.verdicts.items()
        if verdict[0] == Verdict.REQUEST_CHANGES and (members is None or actor in members)
    )
    found = []
    if rule.approvals:
        found.append(_approvals(rule, approving, stale, groups))
        if sets_values is not None:
            found.append(_set_values(sets_values, approving))
    if blocking:
        names = ", ".join(blocking)
        message = f"{names} requested changes; a later approval of the same reviewer withdraws that"
        found.append(Requirement(rule="request_changes", satisfied=False, message=message))
    return found


def _approvals(
    rule: ProtectionRule,
    approving: set[str],
    stale: set[str],
    groups: Mapping[str, Sequence[str]] | None,
) -> Requirement:
    who = rule.approvers if isinstance(rule.approvers, str) else ", ".join(rule.approvers or ())
    message = f"{len(approving)} of {rule.approvals} approvals" + (f" from {who}" if who else "")
    if not rule.self_approval:
        message += ", authors not counted"
    if stale:
        message += f"; {', '.join(sorted(stale))} approved an older state of the branch"
    if isinstance(rule.approvers, str) and rule.approvers not in (groups or {}):
        message += f"; the policy in use has no group '{rule.approvers}': use one that has it"
    elif lacks_approvers(rule, groups):
        message += f"; {who} has fewer actors than approvals are required"
    satisfied = len(approving) >= rule.approvals
    return Requirement(rule="approvals", satisfied=satisfied, message=message)


def _set_values(actor: str, approving: set[str]) -> Requirement:
    """Return the requirement of a merge that sets values which no approval covers."""
    who = actor or "an actor without a name"
    message = (
        f"{who} sets values that no approval covers: let an actor whose approval counts merge, or "
        "take the values of one side"
    )
    return Requirement(rule="resolution", satisfied=actor in approving, message=message)
