"""This module shows what a merge came to, and what stands in its way."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from omnigraph.changes.model import Image
from omnigraph.cli.addresses import actor_option, graph_options
from omnigraph.cli.output import count_text, print_json
from omnigraph.errors import InvalidInput
from omnigraph.merge.conflicts import Conflict
from omnigraph.merge.model import MergeResult

_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])
_SIDES = (("base", None), ("source", "green"), ("target", "yellow"))


def commit_options(command: _CommandT) -> _CommandT:
    """Let a command take a commit and say where and how its changes are brought."""
    options = (
        graph_options(positional=False),
        actor_option,
        click.argument("commit_id", metavar="ID"),
        click.option("--branch", default="main", help="Branch that is changed."),
        click.option("--dry-run", is_flag=True, help="Tell what would happen, conflicts included."),
        resolve_option,
        click.option("--message", "-m", help="What the commit is about."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def resolve_option(command: _CommandT) -> _CommandT:
    """Let a command say who wins a conflict."""
    text = "Who wins a conflict: source, target, or decisions in a JSON file."
    return click.option("--resolve", metavar="SIDE|FILE", help=text)(command)


def read_resolution(given: str | None) -> str | None:
    """Return decisions: a word or JSON as it stands, or what a file says."""
    if given is None or given in ("source", "target") or given.lstrip().startswith("{"):
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read the decisions in {given}; write `source`, `target` or a file"
        raise InvalidInput(message, code="decisions_invalid") from error


def show_result(result: MergeResult, verb: str, *, dry_run: bool, as_json: bool) -> None:
    """Print what happened, or would happen; conflicts found by a dry run end with exit code 1."""
    if as_json:
        print_json(result.to_json() | ({"dry_run": True} if dry_run else {}))
    else:
        _print(result, verb, dry_run=dry_run)
    if result.branch_delete_error is not None:
        click.echo(f"warning: {result.source} was kept: {result.branch_delete_error}", err=True)
    if result.conflicts:
        raise SystemExit(1)


def _print(result: MergeResult, verb: str, *, dry_run: bool) -> None:
    for conflict in result.conflicts:
        click.echo("\n".join(conflict_lines(conflict)))
    if result.conflicts:
        click.echo(f"{count_text(len(result.conflicts), 'conflict')}; nothing would be changed")
        return
    would = "would have " if dry_run else ""
    click.echo(f"{would}{verb} {result.source} into {result.target}: {result.outcome}")
    for key, counts in result.counts.items():
        click.echo(f"  {key}: +{counts.inserted} ~{counts.updated} -{counts.deleted}")
    if result.branch_deleted:
        click.echo(f"deleted branch {result.source}")


def conflict_lines(conflict: Conflict) -> list[str]:
    """Return a conflict for people: what it is about, then what each side says."""
    kind = click.style(str(conflict.kind), fg="red", bold=True)
    about = " ".join(filter(None, (str(conflict.entity_kind or ""), conflict.type, conflict.id)))
    lines = [f"{kind} {click.style(about, bold=True)}", f"  {conflict.message}"]
    images = {"base": conflict.base, "source": conflict.source, "target": conflict.target}
    if not any(images.values()):
        return lines
    names = _names(conflict, [image for image in images.values() if image is not None])
    for side, colour in _SIDES:
        lines.append(click.style(f"  {side + ':':8}{_shown(images[side], names)}", fg=colour))
    return lines


def _names(conflict: Conflict, images: Sequence[Image]) -> list[str]:
    """Return the properties worth showing: those that clash, else those that are not all null."""
    if conflict.properties:
        return list(conflict.properties)
    known = dict.fromkeys(name for image in images for name in image.properties)
    return [name for name in known if any(i.properties.get(name) is not None for i in images)]


def _shown(image: Image | None, names: Sequence[str]) -> str:
    if image is None:
        return "(absent)"
    ends = dict(zip(("src", "dst"), image.endpoints or (), strict=False))
    values: dict[str, Any] = {**ends, **image.properties}
    return ", ".join(
        f"{name} = {json.dumps(values.get(name), ensure_ascii=False)}" for name in names
    )
