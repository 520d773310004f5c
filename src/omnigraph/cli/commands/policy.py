"""`omnigraph policy`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from omnigraph.cli.graph_address import cluster_address
from omnigraph.cli.open_graph import address_options, load_user_config
from omnigraph.cli.options import (
    InvalidUsage,
    actor_and_policy,
    command_words,
    json_option,
    location_options,
    policy_option,
    refuse_unused_options,
)
from omnigraph.cli.output import count_text, print_result
from omnigraph.policy import (
    BundleScope,
    Policy,
    PolicyAction,
    PolicyDecision,
    TypeScope,
    find_policy_test_failures,
    read_policy_tests,
)
from omnigraph.policy.policy import read_policy_text
from omnigraph.policy.protection_rules import ProtectionRule, describe_rule, lacks_approvers
from omnigraph.service.cluster.serving import read_applied_revision

_FILE = click.Path(path_type=Path)
_kind = click.option(
    "--kind",
    type=click.Choice([kind.value for kind in BundleScope]),
    default=BundleScope.GRAPH.value,
    help="What the policy applies to.  [default: graph]",
)
_WRITES = (
    PolicyAction.CHANGE,
    PolicyAction.SCHEMA_APPLY,
    PolicyAction.BRANCH_CREATE,
    PolicyAction.BRANCH_DELETE,
    PolicyAction.BRANCH_MERGE,
)


@click.group()
def policy() -> None:
    """Validate, test and explain policies."""


@policy.command()
@policy_option
@location_options
@_kind
@json_option
def validate(kind: str) -> None:
    """Check a policy file and list all its errors."""
    name, policy_ = _read(kind)
    actors, rules = len(policy_.bundle.actors), len(policy_.bundle.rules)
    facts = {"valid": True, "bundle": name, "actors": actors, "rules": rules}
    protection = policy_.bundle.protection
    if protection:
        facts["protect"] = [rule.to_json() for rule in protection]
    lines = (f"  protects {describe_rule(rule)}" for rule in protection)
    print_result(facts, f"policy valid: bundle '{name}' [{actors} actors]", *lines)
    for rule in protection:
        if lacks_approvers(rule, policy_.bundle.groups):
            message = f"warning: no proposal can satisfy '{describe_rule(rule)}': {rule.approvers}"
            click.echo(f"{message} has fewer actors than approvals are required", err=True)


@policy.command()
@policy_option
@location_options
@_kind
@click.option("--tests", "path", type=_FILE, required=True, help="Test cases (YAML).")
@json_option
def test(kind: str, path: Path) -> None:
    """Run test cases of a policy; exit 1 and list those that fail."""
    _, policy_ = _read(kind)
    cases = read_policy_tests(read_policy_text(path))
    failed = find_policy_test_failures(policy_, cases)
    lines = [f"policy tests passed: {len(cases)} cases"]
    if failed:
        lines = [f"policy tests failed: {len(failed)} of {count_text(len(cases), 'case')}"]
        lines += [f"  {case}" for case in failed]
    print_result({"cases": len(cases), "failed": [case.to_json() for case in failed]}, *lines)
    sys.exit(1 if failed else 0)


@policy.command()
@policy_option
@location_options
@_kind
@click.option("--actor", required=True, help="Actor of the request.")
@click.option(
    "--action",
    required=True,
    type=click.Choice([action.value for action in PolicyAction]),
    help="Action of the request.",
)
@click.option("--branch", help="Branch of the action.")
@click.option("--target-branch", help="Target branch of the action.")
@json_option
def explain(
    kind: str, actor: str, action: str, branch: str | None, target_branch: str | None
) -> None:
    """Show the decision of a policy, the matching rule and the types."""
    _, policy_ = _read(kind)
    decision = policy_.decide(actor, action, branch, target_branch)
    facts = {
        "decision": "allow" if decision.allowed else "deny",
        "actor": actor,
        "action": action,
        "branch": branch,
        "target_branch": target_branch,
        **_reasons(decision),
    }
    lines = [f"{key}: {value}" for key, value in facts.items() if value is not None]
    rules = _protection(policy_, action, target_branch or branch)
    if rules:
        bypass = policy_.evaluate_bypass(actor, target_branch or branch)
        facts |= {"protection": [rule.to_json() for rule in rules], "may_bypass": bypass}
        lines += [f"protection: {describe_rule(rule)}" for rule in rules]
        lines.append(f"may_bypass: {'yes' if bypass else 'no'}")
    print_result(facts, *lines)


def _protection(policy_: Policy, action: str, branch: str | None) -> list[ProtectionRule]:
    """Return the rules that an action on a branch is held to, besides the permission."""
    if branch is None or action not in _WRITES:
        return []
    return [rule for rule in policy_.bundle.protection if rule.covers(branch)]


def _reasons(decision: PolicyDecision) -> dict[str, Any]:
    facts = {"matched_rule": decision.matched_rule_id, "message": decision.message}
    limited = decision.allowed and not decision.scope.is_everything
    return {**facts, "types": _types(decision.scope)} if limited else facts


def _types(scope: TypeScope) -> str:
    """Return the types of a scope, each with its masked properties."""
    names = sorted({name for grant in scope.grants for name in grant.types or ()})
    hidden = {name: sorted(frozenset.intersection(*scope.masks_of(name))) for name in names}
    return ", ".join(
        f"{name} without {' '.join(hidden[name])}" if hidden[name] else name for name in names
    )


def _read(kind: str) -> tuple[str, Policy]:
    path = actor_and_policy().policy
    if path is not None:
        return path.stem, Policy.parse(read_policy_text(path), kind)
    refuse_unused_options(command_words())
    scope = cluster_address(address_options(None, None), load_user_config())
    if scope is None:
        message = (
            "no policy given: pass --policy FILE, --cluster DIR|URI, or --profile NAME of a cluster"
        )
        raise InvalidUsage(message)
    return _applied(scope.address, scope.graph)


def _applied(cluster: str, graph: str | None) -> tuple[str, Policy]:
    """Return the applied policy of a graph or of the cluster, or the only one."""
    serving = read_applied_revision(cluster)
    policy_ = serving.policy_of(graph) or serving.policy_of(None)
    if graph is None:
        policy_ = serving.policies[0] if len(serving.policies) == 1 else None
    if policy_ is None:
        names = ", ".join(policy.name for policy in serving.policies) or "none"
        raise InvalidUsage(f"pass --graph ID to select a policy; the cluster has: {names}")
    scope = BundleScope.SERVER if policy_.cluster else BundleScope.GRAPH
    return policy_.name, Policy.parse(policy_.text, scope)
