"""This module shows changes to people: a header for each entity, its properties with - and +."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click

from omnigraph.changes import Block, Change, Image, Op
from omnigraph.changes.summary import Tally
from omnigraph.cli.output import count_text

MAX_VALUE = 72
"""Characters of a value that are shown."""
_COLOURS = {Op.INSERT: "green", Op.UPDATE: "yellow", Op.DELETE: "red"}
_CommandT = TypeVar("_CommandT", bound=Callable[..., Any])


def scope_options(command: _CommandT) -> _CommandT:
    """Let a command take which changes are asked for."""
    for name, metavar, what in (
        ("op", "OP", "Only `insert`, `update` or `delete`"),
        ("type", "T", "Only this type"),
        ("kind", "KIND", "Only `node` or `edge`"),
    ):
        option = click.option(
            f"--{name}", f"{name}s", multiple=True, metavar=metavar, help=f"{what}; repeatable."
        )
        command = option(command)
    return command


def print_change(change: Change) -> None:
    """Print one change."""
    click.echo("\n".join(_lines(change)))


def print_block(block: Block) -> None:
    """Print what one commit changed."""
    facts = block.to_json()["cause"]
    click.echo(click.style(f"commit {facts.pop('graph_commit_id')}", bold=True))
    for name, value in facts.items():
        click.echo(f"{name}: {value}")
    for change in block.changes:
        print_change(change)


def summary_text(tally: Tally) -> str:
    """Return `1 insert, 2 updates, 0 deletes in 2 types`."""
    if not tally.types:
        return "no changes"
    parts = (count_text(tally.total(op), str(op)) for op in Op)
    return f"{', '.join(parts)} in {count_text(len(tally.types), 'type')}"


def stat_lines(tally: Tally) -> list[str]:
    """Return a line for each type."""
    found = []
    for (kind, name), counts in tally.types.items():
        marks = zip("+~-", Op, strict=True)
        shown = (click.style(f"{mark}{counts[op]:,}", fg=_COLOURS[op]) for mark, op in marks)
        found.append(f"{kind} {name}: {' '.join(shown)}")
    return found


def _lines(change: Change) -> Iterator[str]:
    image = change.after or change.before
    assert image is not None, "a change has at least one image"
    ends = "" if image.endpoints is None else f": {' -> '.join(map(_plain, image.endpoints))}"
    head = f"{change.op} {change.kind} {change.type} {_plain(change.id)}{ends}"
    yield click.style(head, fg=_COLOURS[change.op], bold=True)
    names = _told(change, image)
    for name in names:
        for sign, colour, side in (("-", "red", change.before), ("+", "green", change.after)):
            if side is not None:
                yield click.style(f"  {sign} {name}: {_value(_values(side)[name])}", fg=colour)


def _told(change: Change, image: Image) -> Sequence[str]:
    """Return what is shown: what an update changed, else what is not null."""
    if change.op is Op.UPDATE:
        return change.changed
    return [name for name, value in image.properties.items() if value is not None]


def _values(image: Image) -> Mapping[str, Any]:
    ends = zip(("from", "to"), image.endpoints or (), strict=False)
    return {**dict(ends), **image.properties}


def _value(value: Any) -> str:  # noqa: ANN401 - any JSON value
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 1]}…"


def _plain(text: str) -> str:
    """Return text as it is, unless it would not stand on one line."""
    return text if text.isprintable() and text else json.dumps(text)
