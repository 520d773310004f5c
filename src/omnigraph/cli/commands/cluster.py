"""`omnigraph cluster`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from omnigraph.cli.migrations import step_text
from omnigraph.cli.open_graph import load_user_config
from omnigraph.cli.options import InvalidUsage, actor_and_policy, actor_option, json_option
from omnigraph.cli.output import json_requested, print_result
from omnigraph.cli.progress import show_progress
from omnigraph.service import cluster as control
from omnigraph.service.client.migration_steps import read_steps
from omnigraph.service.cluster import ClusterCommandResult

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])


@click.group()
def cluster() -> None:
    """Manage graphs, policies and stored queries declared in cluster.yaml."""


def _actor(actor: str | None) -> str | None:
    """Return the actor of the command line or of the configuration."""
    return actor_and_policy(actor).actor or load_user_config().actor


def _options(command: _CommandT) -> _CommandT:
    where = click.Path(path_type=Path)
    help_ = "Folder of cluster.yaml.  [default: current folder]"
    command = json_option(command)
    return click.option("--config", type=where, default=Path(), metavar="DIR", help=help_)(command)


@cluster.command()
@_options
def validate(config: Path) -> None:
    """Check cluster.yaml and every file it references."""
    done = control.validate(config)
    facts = done.facts
    edges = len(facts["dependencies"])
    head = (
        f"cluster config valid: {len(facts['resources'])} resource(s), {edges} dependency edge(s)"
    )
    _print_result(done, [head])


@cluster.command()
@_options
def plan(config: Path) -> None:
    """Show the changes that `apply` would make."""
    done = control.plan(config)
    changes, gates = done.facts["changes"], done.facts["approvals_required"]
    lines = [f"cluster plan: {len(changes)} change(s), {len(gates)} approval gate(s)"]
    for change in changes:
        lines += _plan_lines(change)
    _print_result(done, lines)


def _plan_lines(change: dict[str, Any]) -> Iterator[str]:
    bindings = " [bindings]" if change.get("binding_change") else ""
    yield f"  {change['operation'].capitalize()} {change['resource']}{bindings}"
    migration = change.get("migration")
    if migration is not None:
        yield f"    supported: {'yes' if migration['supported'] else 'no'}"
        for step in read_steps(migration["steps"]):
            yield f"    - {step_text(step)}"


@cluster.command()
@actor_option
@_options
def apply(actor: str | None, config: Path) -> None:
    """Apply cluster.yaml to storage."""
    who = _actor(actor)
    with show_progress("applying"):
        done = control.apply(config, actor=who)
    facts = done.facts
    lines = [
        f"cluster apply: {facts['applied_count']} applied,"
        f" {facts['deferred_count']} deferred/blocked"
    ]
    for change in facts["changes"]:
        reason = f": {change['reason']}" if "reason" in change else ""
        became = f"[{change['disposition'].capitalize()}{reason}]"
        lines.append(f"  {change['operation'].capitalize()} {change['resource']} {became}")
    revision = facts["state_observations"].get("state_revision", 0)
    words = [str(facts[name]).lower() for name in ("converged", "state_written")]
    lines.append(f"  state: revision {revision}, converged: {words[0]}, written: {words[1]}")
    _print_result(done, lines)


@cluster.command()
@click.argument("resource")
@actor_option
@_options
def approve(resource: str, actor: str | None, config: Path) -> None:
    """Approve the planned deletion of a graph."""
    who = _actor(actor)
    if who is None:
        raise InvalidUsage("an approval needs an actor: pass --as ACTOR")
    done = control.approve(config, resource, who)
    facts = done.facts
    lines = []
    if "approval_id" in facts:
        what = f"{facts['operation']} {facts['resource']}"
        by = f"approved by {facts['approved_by']} (approval {facts['approval_id']})"
        lines.append(f"cluster approve: {what} {by}")
    _print_result(done, lines)


@cluster.command()
@_options
def status(config: Path) -> None:
    """Show the applied state, without taking the lock."""
    done = control.status(config)
    _print_result(done, _state_lines("cluster state", done))


@cluster.command()
@_options
def refresh(config: Path) -> None:
    """Record the current state of the graphs in the ledger."""
    with show_progress("refreshing"):
        done = control.refresh(config)
    _print_result(done, _state_lines("cluster refresh", done))


@cluster.command("import")
@_options
def import_(config: Path) -> None:
    """Create the first ledger, including graphs that already exist."""
    done = control.import_state(config)
    _print_result(done, _state_lines("cluster import", done))


@cluster.command("force-unlock")
@click.argument("lock_id")
@_options
def force_unlock(lock_id: str, config: Path) -> None:
    """Remove the lock of a command that no longer runs."""
    done = control.force_unlock(config, lock_id)
    lines = [f"cluster force-unlock: removed lock (id={lock_id})"]
    _print_result(done, lines if done.facts["lock_removed"] else [])


def _state_lines(title: str, done: ClusterCommandResult) -> list[str]:
    state = done.facts["state_observations"]
    if not state:
        return []
    lines = [f"{title}: revision {state['state_revision']}, {state['resource_count']} resource(s)"]
    if state["locked"]:
        since = f"{state['lock_operation']} since {state['lock_created_at']}"
        lines.append(f"  locked by {since} (id={state['lock_id']})")
    for address, resource in done.facts["resource_statuses"].items():
        conditions = f": {', '.join(resource['conditions'])}" if resource.get("conditions") else ""
        lines.append(f"  {address} [{resource['status']}{conditions}]")
    return lines


def _print_result(done: ClusterCommandResult, lines: list[str]) -> None:
    """Print a result; exit with code 1 if it has an error."""
    print_result(done.to_json(), *(lines if done.ok or "changes" in done.facts else []))
    if not json_requested():
        for finding in done.findings:
            click.echo(str(finding), err=True)
    if not done.ok:
        sys.exit(1)
