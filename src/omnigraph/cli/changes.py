"""Print changes, merge results and conflicts as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from omnigraph.changes import Change, ChangeBlock, ChangeOp, EntityImage
from omnigraph.changes.diff import ChangeTotals
from omnigraph.cli.open_graph import graph_command
from omnigraph.cli.options import collect_options
from omnigraph.cli.output import count_text, json_requested, print_json
from omnigraph.errors import InvalidInput
from omnigraph.merge.conflicts import Conflict
from omnigraph.merge.model import MergeResult

MAX_VALUE = 72
"""Characters of a value that are shown."""
_COLOURS = {ChangeOp.INSERT: "green", ChangeOp.UPDATE: "yellow", ChangeOp.DELETE: "red"}
_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])


def change_filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that filter changes; the command gets them as `scope`."""
    command = collect_options("scope", ("kinds", "types", "ops"))(command)
    for name, metavar, what in (
        ("op", "OP", "Include only `insert`, `update` or `delete`"),
        ("type", "T", "Include only this type"),
        ("kind", "KIND", "Include only `node` or `edge`"),
    ):
        option = click.option(
            f"--{name}", f"{name}s", multiple=True, metavar=metavar, help=f"{what}; repeatable."
        )
        command = option(command)
    return command


def print_change(change: Change) -> None:
    """Print one change."""
    click.echo("\n".join(_change_lines(change)))


def print_block(block: ChangeBlock) -> None:
    """Print the changes of one commit."""
    facts = block.to_json()["cause"]
    click.echo(click.style(f"commit {facts.pop('graph_commit_id')}", bold=True))
    for name, value in facts.items():
        click.echo(f"{name}: {value}")
    for change in block.changes:
        print_change(change)


def summary_text(tally: ChangeTotals) -> str:
    """Return `1 insert, 2 updates, 0 deletes in 2 types`."""
    if not tally.types:
        return "no changes"
    parts = (count_text(tally.total(op), str(op)) for op in ChangeOp)
    return f"{', '.join(parts)} in {count_text(len(tally.types), 'type')}"


def stat_lines(tally: ChangeTotals) -> list[str]:
    """Return a line for each type."""
    lines = []
    for (kind, name), counts in tally.types.items():
        marks = zip("+~-", ChangeOp, strict=True)
        shown = (click.style(f"{mark}{counts[op]:,}", fg=_COLOURS[op]) for mark, op in marks)
        lines.append(f"{kind} {name}: {' '.join(shown)}")
    return lines


def _change_lines(change: Change) -> Iterator[str]:
    image = change.after or change.before
    assert image is not None, "a change has at least one image"
    ends = "" if image.endpoints is None else f": {' -> '.join(map(_plain, image.endpoints))}"
    head = f"{change.op} {change.kind} {change.type} {_plain(change.id)}{ends}"
    yield click.style(head, fg=_COLOURS[change.op], bold=True)
    names = _shown_properties(change, image)
    for name in names:
        for sign, colour, side in (("-", "red", change.before), ("+", "green", change.after)):
            if side is not None:
                yield click.style(f"  {sign} {name}: {_value(_values(side)[name])}", fg=colour)


def change_text(change: Change) -> str:
    """Return a change on one line: what happened, and the values."""
    old, new = (None if side is None else _values(side) for side in (change.before, change.after))
    image = change.after or change.before
    assert image is not None, "a change has at least one image"
    parts = []
    for name in _shown_properties(change, image):
        sides = [_value(values[name]) for values in (old, new) if values is not None]
        parts.append(f"{name}: {' -> '.join(sides)}")
    return f"{change.op} {', '.join(parts)}".rstrip()


def _shown_properties(change: Change, image: EntityImage) -> Sequence[str]:
    """Return the properties to print: those an update changed, else those that are not null."""
    if change.op is ChangeOp.UPDATE:
        return change.changed
    return [name for name, value in image.properties.items() if value is not None]


def _values(image: EntityImage) -> Mapping[str, Any]:
    ends = zip(("from", "to"), image.endpoints or (), strict=False)
    return {**dict(ends), **image.properties}


def _value(value: Any) -> str:  # noqa: ANN401 - any JSON value
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 1]}…"


def _plain(text: str) -> str:
    """Return text unchanged, or quoted as JSON if it does not fit one line."""
    return text if text.isprintable() and text else json.dumps(text)


# ----------------------------------------------------------------------
# Merge results and conflicts.


_SIDES = (("base", None), ("source", "green"), ("target", "yellow"))


def apply_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of commands that apply or undo a commit; the command gets `options`."""
    command = collect_options("options", ("branch", "dry_run", "resolve", "message"))(command)
    for option in (
        click.option("--message", "-m", help="Message of the commit."),
        resolve_option,
        dry_run_option,
        click.option("--branch", default="main", help="Branch to change."),
        click.argument("commit_id", metavar="ID"),
        graph_command(actor=True, mode="rw"),
    ):
        command = option(command)
    return command


def dry_run_option(command: _CommandT) -> _CommandT:
    """Add the option that prints the result of a merge without changing anything."""
    text = "Print the result, including conflicts, without changing anything."
    return click.option("--dry-run", is_flag=True, help=text)(command)


def resolve_option(command: _CommandT) -> _CommandT:
    """Add the option that resolves conflicts."""
    text = "How to resolve conflicts: source, target, or a JSON file of decisions."
    return click.option("--resolve", metavar="SIDE|FILE", callback=_read_resolution, help=text)(
        command
    )


def _read_resolution(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    """Return decisions: `source`, `target`, JSON text, or the content of a file."""
    if text is None or text in ("source", "target") or text.lstrip().startswith("{"):
        return text
    try:
        return Path(text).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read the decisions in {text}; pass `source`, `target` or a JSON file"
        raise InvalidInput(message, code="decisions_invalid") from error


def print_merge_result(
    result: MergeResult,
    verb: str,
    *,
    dry_run: bool,
    lines: Sequence[str] = (),
    **facts: object,
) -> None:
    """Print the result of a merge or dry run; exit with code 1 if a dry run has conflicts.

    `lines` follow as text, `facts` are further members as JSON.
    """
    if json_requested():
        print_json(result.to_json() | ({"dry_run": True} if dry_run else {}) | facts)
    else:
        _print_summary(result, verb, dry_run=dry_run)
        for line in lines:
            click.echo(line)
    if result.branch_delete_error is not None:
        click.echo(f"warning: {result.source} was kept: {result.branch_delete_error}", err=True)
    if result.conflicts:
        raise SystemExit(1)


def _print_summary(result: MergeResult, verb: str, *, dry_run: bool) -> None:
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
    """Return a conflict as lines: kind and entity, message, then the values of each side."""
    kind = click.style(str(conflict.kind), fg="red", bold=True)
    about = " ".join(filter(None, (str(conflict.entity_kind or ""), conflict.type, conflict.id)))
    lines = [f"{kind} {click.style(about, bold=True)}", f"  {conflict.message}"]
    images = {"base": conflict.base, "source": conflict.source, "target": conflict.target}
    if not any(images.values()):
        return lines
    names = _conflict_properties(
        conflict, [image for image in images.values() if image is not None]
    )
    for side, colour in _SIDES:
        lines.append(click.style(f"  {side + ':':8}{_side_text(images[side], names)}", fg=colour))
    return lines


def _conflict_properties(conflict: Conflict, images: Sequence[EntityImage]) -> list[str]:
    """Return the properties to print: the conflicting ones, else those that are not all null."""
    if conflict.properties:
        return list(conflict.properties)
    names = dict.fromkeys(name for image in images for name in image.properties)
    return [name for name in names if any(i.properties.get(name) is not None for i in images)]


def _side_text(image: EntityImage | None, names: Sequence[str]) -> str:
    if image is None:
        return "(absent)"
    ends = dict(zip(("src", "dst"), image.endpoints or (), strict=False))
    values: dict[str, Any] = {**ends, **image.properties}
    return ", ".join(
        f"{name} = {json.dumps(values.get(name), ensure_ascii=False)}" for name in names
    )
