"""`omnigraph history` and `omnigraph blame`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import click

from omnigraph.changes import HistoryEntry, ValueOrigin
from omnigraph.cli.changes import change_text
from omnigraph.cli.open_graph import open_addressed_graph
from omnigraph.cli.options import graph_options, json_option
from omnigraph.cli.output import count_text, json_requested, print_json, print_table

_CommandT = TypeVar("_CommandT", bound=Callable[..., None])
_HEADERS = ("commit", "time", "actor", "message")


def _entity_options(command: _CommandT) -> _CommandT:
    """Add the arguments that name a graph and an entity, and the state."""
    for option in (
        json_option,
        click.option("--at", help="Branch, tag, commit ID or timestamp.  [default: main]"),
        click.argument("id_", metavar="ID"),
        click.argument("type_name", metavar="TYPE"),
        graph_options(),
    ):
        command = option(command)
    return command


@click.command()
@_entity_options
@click.option("--limit", type=click.IntRange(min=0), help="Maximum number of changes.")
def history(
    uri: str | None,
    store: str | None,
    type_name: str,
    id_: str,
    at: str | None,
    limit: int | None,
) -> None:
    """List the commits that changed an entity, newest first.

    Merges are followed to the commits of their sources, and renamed types and properties to their
    former names.
    """
    found = open_addressed_graph(uri, store).history(type_name, id_, at, limit=limit)
    if json_requested():
        print_json(found.to_json())
        return
    rows = [_entry_row(entry) for entry in found]
    rows += [(f"unknown before {commit_id}",) + ("",) * 5 for commit_id in found.unknown_before]
    headers = (*_HEADERS[:3], "operation", *_HEADERS[3:], "change")
    print_table(f"{count_text(len(found), 'change')} of {type_name} {id_}", headers, rows)


def _entry_row(entry: HistoryEntry) -> Sequence[str]:
    commit = entry.commit
    when, change = f"{commit.created_at:%Y-%m-%d %H:%M:%S}", change_text(entry)
    facts = (commit.id, when, commit.actor, commit.operation, commit.message, change)
    return [_one_line(fact) for fact in facts]


@click.command()
@_entity_options
def blame(uri: str | None, store: str | None, type_name: str, id_: str, at: str | None) -> None:
    """Show the commit that last set each property of an entity."""
    origins = open_addressed_graph(uri, store).blame(type_name, id_, at)
    if json_requested():
        print_json({"values": {name: origin.to_json() for name, origin in origins.items()}})
        return
    rows = [(name, *_origin_row(origin)) for name, origin in origins.items()]
    print_table(f"{type_name} {id_}", ("property", *_HEADERS), rows)


def _origin_row(origin: ValueOrigin) -> Sequence[str]:
    if origin.created_at is None:
        return f"unknown before {origin.unknown_before}", "", "", ""
    when = f"{origin.created_at:%Y-%m-%d %H:%M:%S}"
    return [_one_line(fact) for fact in (origin.commit_id, when, origin.actor, origin.message)]


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())
