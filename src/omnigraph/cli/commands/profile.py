"""`omnigraph profile`."""

from __future__ import annotations

import os
from typing import Any

import click

from omnigraph.cli.graph_address import profile_address
from omnigraph.cli.options import InvalidUsage, json_option, option_value
from omnigraph.cli.output import print_result
from omnigraph.service.user_config import PROFILE_VARIABLE, Profile, UserConfig, read_user_config


@click.group()
def profile() -> None:
    """Show profiles: named addresses of servers, clusters and graphs."""


@profile.command("list")
@json_option
def list_profiles() -> None:
    """List all profiles."""
    operator = read_user_config(os.environ)
    facts = [_listed(one, operator) for _, one in sorted(operator.profiles.items())]
    lines = (
        f"{entry['name']}{' (active)' if entry['active'] else ''}  {entry['binding']}"
        + (f" · graph: {entry['default_graph']}" if entry["default_graph"] else "")
        for entry in facts
    )
    print_result(facts, *lines)


def _active() -> str | None:
    return option_value("profile") or os.environ.get(PROFILE_VARIABLE, "").strip() or None


def _listed(entry: Profile, operator: UserConfig) -> dict[str, Any]:
    error = None
    try:
        profile_address(entry, None, operator)
    except InvalidUsage as refused:
        error = refused.message
    target = entry.target
    return {
        "name": entry.name,
        "binding": "invalid" if target is None else f"{entry.kind}: {target}",
        "scope_kind": entry.kind,
        "target": target,
        "valid": error is None,
        "error": error,
        "default_graph": entry.default_graph,
        "active": entry.name == _active(),
    }


@profile.command()
@click.argument("name", required=False)
@json_option
def show(name: str | None) -> None:
    """Show a profile: NAME, the active one, or the defaults."""
    operator = read_user_config(os.environ)
    chosen = name or _active()
    if chosen is not None and chosen not in operator.profiles:
        names = ", ".join(sorted(operator.profiles)) or "none"
        raise InvalidUsage(f"unknown profile '{chosen}'; configured profiles: {names}")
    defaults = operator.defaults
    entry = (
        Profile("(defaults)", defaults.server, None, defaults.store, defaults.default_graph)
        if chosen is None
        else operator.profiles[chosen]
    )
    target = entry.target
    nothing = chosen is None and target is None
    facts = {
        "name": entry.name,
        "scope_kind": "none" if nothing else entry.kind,
        "target": target,
        "endpoint": None if target is None else profile_address(entry, None, operator).address,
        "default_graph": entry.default_graph,
        "output_format": defaults.output,
    }
    print_result(facts, *(f"{key}: {value or ''}".rstrip() for key, value in facts.items()))
