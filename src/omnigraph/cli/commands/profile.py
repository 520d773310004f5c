"""`omnigraph profile`."""

from __future__ import annotations

import os
from typing import Any

import click

from omnigraph.cli.graph_address import profile_address
from omnigraph.cli.options import InvalidUsage, option_value
from omnigraph.cli.output import print_json
from omnigraph.service.user_config import PROFILE_VARIABLE, Profile, UserConfig, read_user_config


@click.group()
def profile() -> None:
    """Show profiles: named addresses of servers, clusters and graphs."""


@profile.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_profiles(as_json: bool) -> None:
    """List all profiles."""
    operator = read_user_config(os.environ)
    facts = [_listed(one, operator) for _, one in sorted(operator.profiles.items())]
    if as_json:
        print_json(facts)
        return
    for found in facts:
        active = " (active)" if found["active"] else ""
        graph = f" · graph: {found['default_graph']}" if found["default_graph"] else ""
        click.echo(f"{found['name']}{active}  {found['binding']}{graph}")


def _active() -> str | None:
    return option_value("profile") or os.environ.get(PROFILE_VARIABLE, "").strip() or None


def _listed(found: Profile, operator: UserConfig) -> dict[str, Any]:
    error = None
    try:
        profile_address(found, None, operator)
    except InvalidUsage as refused:
        error = refused.message
    target = found.target
    return {
        "name": found.name,
        "binding": "invalid" if target is None else f"{found.kind}: {target}",
        "scope_kind": found.kind,
        "target": target,
        "valid": error is None,
        "error": error,
        "default_graph": found.default_graph,
        "active": found.name == _active(),
    }


@profile.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(name: str | None, as_json: bool) -> None:
    """Show a profile: NAME, the active one, or the defaults."""
    operator = read_user_config(os.environ)
    wanted = name or _active()
    if wanted is not None and wanted not in operator.profiles:
        known = ", ".join(sorted(operator.profiles)) or "none"
        raise InvalidUsage(f"unknown profile '{wanted}'; configured profiles: {known}")
    defaults = operator.defaults
    found = (
        Profile("(defaults)", defaults.server, None, defaults.store, defaults.default_graph)
        if wanted is None
        else operator.profiles[wanted]
    )
    target = found.target
    nothing = wanted is None and target is None
    facts = {
        "name": found.name,
        "scope_kind": "none" if nothing else found.kind,
        "target": target,
        "endpoint": None if target is None else profile_address(found, None, operator).address,
        "default_graph": found.default_graph,
        "output_format": defaults.output,
    }
    if as_json:
        print_json(facts)
        return
    for key, value in facts.items():
        click.echo(f"{key}: {'' if value is None else value}".rstrip())
