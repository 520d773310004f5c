"""`omnigraph changes`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from omnigraph.changes import ChangeBlock, Limits
from omnigraph.changes.commit_changes import MAX_CHANGES, CommitChangesPage
from omnigraph.changes.feed import FeedPage
from omnigraph.cli.changes import change_filter_options, print_block
from omnigraph.cli.files import replaced_file
from omnigraph.cli.open_graph import graph_command
from omnigraph.cli.output import (
    count_text,
    json_requested,
    print_json,
    print_result,
    stream_json,
)
from omnigraph.cli.progress import report_line_counts, show_progress
from omnigraph.graph import Graph


@click.group()
def changes() -> None:
    """Read the change feed of a graph, commit by commit."""


@changes.command()
@graph_command()
@click.option("--branch", default="main", help="Branch to follow.")
@click.option("--cursor", help="Cursor returned by an earlier poll.")
@click.option("--start", help="Where to start: `now`, `beginning` or `after:ID`.  [default: now]")
@click.option("--limit", type=int, default=MAX_CHANGES, help="Changes to fetch per page.")
@change_filter_options
def poll(
    graph: Graph,
    branch: str,
    cursor: str | None,
    start: str | None,
    limit: int,
    scope: dict[str, Any],
) -> None:
    """Print the changes since a cursor, and the next cursor."""
    options = {"branch": branch, "limits": Limits(changes=limit), **scope}
    first = graph.changes.poll(**options, cursor=cursor, start=start)
    pages = _ChangePages(graph, options, first)
    if json_requested():
        blocks = (block.to_json() for block in pages)
        stream_json({}, "blocks", blocks, lambda: _end(pages.last))
        return
    for block in pages:
        print_block(block)
    click.echo(f"cursor: {pages.last.cursor}")
    click.echo(f"caught_up: {'yes' if pages.last.caught_up else 'no'}")


def _end(page: FeedPage) -> dict[str, Any]:
    return {"cursor": page.cursor, "caught_up": page.caught_up}


class _ChangePages:
    """The complete blocks of consecutive pages; `last` is the last page."""

    def __init__(self, graph: Graph, options: dict[str, Any], first: FeedPage) -> None:
        self._graph = graph
        self._options = options
        self.last = first

    def __iter__(self) -> Iterator[ChangeBlock]:
        open_: ChangeBlock | None = None
        while True:
            for block in self.last.blocks:
                if open_ is not None and open_.commit.id == block.commit.id:
                    open_ = replace(open_, changes=open_.changes + block.changes)
                    continue
                if open_ is not None:
                    yield open_
                open_ = block
            token = self.last.next_page_token
            if token is None:
                break
            self.last = self._graph.changes.poll(**self._options, page_token=token)
        if open_ is not None:
            yield open_


@changes.command("commit")
@graph_command()
@click.argument("commit_id", metavar="ID")
@click.option("--limit", type=int, default=MAX_CHANGES, help="Changes to fetch per page.")
@click.option("--page-token", help="Print only the page of this token.")
@change_filter_options
def commit_changes(
    graph: Graph, commit_id: str, limit: int, page_token: str | None, scope: dict[str, Any]
) -> None:
    """Print the changes of a commit compared with its first parent."""
    options = {"limits": Limits(changes=limit), **scope}
    page = graph.commits.changes(commit_id, **options, page_token=page_token)
    if page_token is not None and json_requested():
        print_json(page.to_json())
    elif page_token is not None:
        print_block(ChangeBlock(page.commit, page.changes))
        if page.next_page_token is not None:
            click.echo(f"next_page_token: {page.next_page_token}")
    elif json_requested():
        head = {"cause": ChangeBlock(page.commit, ()).to_json()["cause"]}
        pages = _all_pages(graph, page, options)
        stream_json(head, "changes", (c.to_json() for p in pages for c in p.changes), dict)
    else:
        changed = tuple(c for p in _all_pages(graph, page, options) for c in p.changes)
        print_block(ChangeBlock(page.commit, changed))


def _all_pages(
    graph: Graph, page: CommitChangesPage, options: dict[str, Any]
) -> Iterator[CommitChangesPage]:
    yield page
    while page.next_page_token is not None:
        page = graph.commits.changes(page.commit.id, **options, page_token=page.next_page_token)
        yield page


@changes.command()
@graph_command()
@click.option("--branch", default="main", help="Branch to follow.")
@change_filter_options
@click.option("--out", required=True, type=click.Path(path_type=Path), help="File to write.")
def baseline(graph: Graph, branch: str, scope: dict[str, Any], out: Path) -> None:
    """Write all entities to a file and print the cursor of exactly that state.

    The file is written atomically; `load` reads it.
    """
    source, count = graph.changes.baseline(branch=branch, **scope), 0
    with replaced_file(out) as file, show_progress("writing the baseline") as progress:
        for line in report_line_counts(source.lines, progress):
            file.write(f"{line}\n".encode())
            count += 1
    facts = source.to_json()
    text = f"wrote {count_text(count, 'entity', 'entities')} to {out}"
    print_result(facts, text, *(f"{name}: {value}" for name, value in facts.items()))
