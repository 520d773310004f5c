"""Print JSON, counts and tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import indent

import click

JSON_KEY = "omnigraph.json"
"""Where the context of a command holds whether it prints JSON."""


def wants_json() -> bool:
    """Return whether `--json` was given, also before the command line is parsed."""
    return "--json" in sys.argv[1:]


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def json_requested() -> bool:
    """Return whether the running command prints JSON."""
    return bool(click.get_current_context().meta.get(JSON_KEY))


def print_result(value: object, *lines: str) -> None:
    """Print a value as JSON if that was requested, else the lines of text."""
    if json_requested():
        print_json(value)
    else:
        for line in lines:
            click.echo(line)


def print_notes(notes: Iterable[str]) -> None:
    """Print notes about a result on standard error, where they do not mix with the result."""
    for note in notes:
        click.echo(f"note: {note}", err=True)


def stream_json(
    head: Mapping[str, object],
    name: str,
    items: Iterable[object],
    tail: Callable[[], Mapping[str, object]],
) -> None:
    """Print an object with a long list item by item; `tail` is called after the last item."""
    click.echo("{")
    for key, value in head.items():
        click.echo(f"{_member(key, value)},")
    click.echo(f"  {json.dumps(name)}: [", nl=False)
    between = "\n"
    for item in items:
        text = json.dumps(item, indent=2, ensure_ascii=False)
        click.echo(between + indent(text, "    "), nl=False)
        between = ",\n"
    click.echo("]" if between == "\n" else "\n  ]", nl=False)
    for key, value in tail().items():
        click.echo(f",\n{_member(key, value)}", nl=False)
    click.echo("\n}")


def _member(key: str, value: object) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return indent(f"{json.dumps(key)}: {text}", "  ")


def count_text(count: int, noun: str, plural: str | None = None) -> str:
    """Return `1 error`, `2 errors`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def print_table(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a titled table: drawn on a terminal, plain aligned columns elsewhere."""
    if not sys.stdout.isatty():
        click.echo(title)
        widths = [max((len(row[i]) for row in rows), default=0) for i in range(len(headers))]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            click.echo(f"  {'  '.join(cells)}".rstrip())
        return
    # Rich is for terminals only; plain output must not pay for it.
    from rich.console import Console  # noqa: PLC0415
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    console = Console()
    console.print(f"[bold]{escape(title)}[/bold]", highlight=False)
    if rows:
        table = Table(*headers, box=None, padding=(0, 2), header_style="dim")
        for row in rows:
            table.add_row(*(escape(cell) for cell in row))
        console.print(table)
    console.print()


def printable_lines(text: str) -> list[str]:
    """Return lines without control characters, which a terminal would obey."""
    return [
        "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in line)
        for line in text.splitlines()
    ]
