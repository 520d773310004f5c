"""`omnigraph shell`: queries, mutations and commands, typed one after the other."""

from __future__ import annotations

import sys
from contextlib import suppress

import click

from omnigraph.cli.open_graph import GraphOpener, graph_command
from omnigraph.cli.queries import output_style
from omnigraph.cli.shell.session import SHELL_FORMATS, ShellExit, ShellSession
from omnigraph.cli.shell.statements import script_statements, split_statements
from omnigraph.cli.shell.terminal import open_terminal
from omnigraph.version import __version__

_MAX_ROWS = 1000
"""How many rows of a table a terminal shows unless `.rows` sets another number."""


@click.command()
@graph_command(positional=True, actor=True, lazy=True, mode="rw")
@click.option("--branch", default="main", help="Branch to read and change.")
@click.option("--read-only", is_flag=True, help="Refuse changes.")
@click.option(
    "--format", "format_", type=click.Choice(SHELL_FORMATS), help="Output format of the rows."
)
def shell(open_graph: GraphOpener, branch: str, read_only: bool, format_: str | None) -> None:
    """Type queries, mutations and commands; `.help` lists the commands.

    Without a terminal, statements are read from standard input; the first error ends the shell.
    """
    graph = open_graph(mode="ro" if read_only else "rw")
    chosen, style = output_style(format_)
    if chosen not in SHELL_FORMATS:
        chosen = "table"
    session = ShellSession(graph, style, chosen)
    session.branch = graph.branch(branch).branch_name
    try:
        _run_typed(session) if sys.stdin.isatty() else _run_script(session)
    except ShellExit:
        return


def _run_typed(session: ShellSession) -> None:
    session.max_rows = _MAX_ROWS
    click.echo(f"omnigraph {__version__}, {session.graph.uri}; .help lists the commands")
    read = open_terminal(session)
    while True:
        with suppress(KeyboardInterrupt):  # a second Ctrl-C comes while the first is handled
            try:
                text = read()
            except KeyboardInterrupt:
                click.echo()
                continue
            except EOFError:
                click.echo()
                return
            for statement in split_statements(text):
                if not session.run(statement):
                    break


def _run_script(session: ShellSession) -> None:
    for statement in script_statements(sys.stdin):
        if not session.run(statement):
            sys.exit(1)
