"""`omnigraph protection`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from omnigraph.cli.open_graph import graph_command
from omnigraph.cli.output import print_result
from omnigraph.errors import InvalidInput
from omnigraph.graph import Graph
from omnigraph.policy.protection_rules import ProtectionRule, describe_rule, parse_rules


@click.group()
def protection() -> None:
    """Protect branches: only proposals that satisfy the rules are merged into them."""


@protection.command("set")
@graph_command(actor=True, mode="rw")
@click.option("--branch", "branches", multiple=True, help="Branch or pattern; repeatable.")
@click.option("--tag", "tags", multiple=True, help="Tag or pattern; repeatable.")
@click.option("--approvals", type=click.IntRange(0), default=1, help="Required approvals.")
@click.option("--from", "group", help="Group of the policy whose approvals count.")
@click.option("--approver", "approvers", multiple=True, help="Actor whose approval counts.")
@click.option("--check", "checks", multiple=True, help="Check that has to pass; repeatable.")
@click.option("--stale-approvals", is_flag=True, help="Count approvals of older states, too.")
@click.option("--self-approval", is_flag=True, help="Count approvals of authors, too.")
@click.option("--rules", type=click.Path(path_type=Path), help="JSON file with a list of rules.")
@click.option("--add", is_flag=True, help="Add to the stored rules instead of replacing them.")
def set_protection(
    graph: Graph,
    branches: tuple[str, ...],
    tags: tuple[str, ...],
    approvals: int,
    group: str | None,
    approvers: tuple[str, ...],
    checks: tuple[str, ...],
    stale_approvals: bool,
    self_approval: bool,
    rules: Path | None,
    add: bool,
) -> None:
    """Store rules, in place of those that are stored."""
    if group is not None and approvers:
        raise click.UsageError("--from names a group and --approver actors: pass one of them")
    if rules is not None:
        if branches or tags or group or approvers or checks:
            raise click.UsageError("--rules FILE has whole rules: pass it, or options, not both")
        new = _read_rules(rules)
    else:
        if not branches and not tags:
            raise click.UsageError("no branch given: pass --branch, --tag or --rules FILE")
        listed: str | list[str] | None = group if not approvers else list(approvers)
        require = {
            "approvals": approvals,
            "from": listed,
            "checks": list(checks),
            "fresh": not stale_approvals,
            "self_approval": self_approval,
        }
        rule = {"branches": list(branches), "tags": list(tags), "require": require}
        new = parse_rules([rule])
    graph.protection.set([*(graph.protection.rules if add else ()), *new])
    _print(graph)


def _read_rules(file: Path) -> tuple[ProtectionRule, ...]:
    try:
        return parse_rules(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        message = f"cannot read the rules in {file}: {error}"
        raise InvalidInput(message, code="protection_invalid", problems=[message]) from error


@protection.command()
@graph_command()
def show(graph: Graph) -> None:
    """Show the stored rules and those of the policy."""
    _print(graph)


@protection.command()
@graph_command(actor=True, mode="rw")
def clear(graph: Graph) -> None:
    """Remove the stored rules."""
    graph.protection.clear()
    _print(graph)


def _print(graph: Graph) -> None:
    stored, policy = graph.protection.rules, graph.protection.policy_rules
    value = {
        "rules": [rule.to_json() for rule in stored],
        "policy_rules": [rule.to_json() for rule in policy],
    }
    lines = [describe_rule(rule) for rule in stored]
    lines += [f"{describe_rule(rule)} (policy)" for rule in policy]
    print_result(value, *(lines or ["no branch is protected"]))
