"""The state of a shell, and how a statement is run: a query, a mutation or a dot command."""

from __future__ import annotations

import io
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from omnigraph.catalog import Catalog
from omnigraph.cli.errors import error_text
from omnigraph.cli.files import read_bytes
from omnigraph.cli.output import count_text
from omnigraph.cli.results import RESULT_FORMATS, TableStyle, write_result
from omnigraph.cli.shell.statements import EXPLAIN, first_word
from omnigraph.errors import InvalidInput, OmniError
from omnigraph.graph import Graph
from omnigraph.lang import (
    did_you_mean,
    nearest_name,
    parse_queries,
    parse_schema,
    print_schema,
)
from omnigraph.lang.query_tree import QueryDecl, ReadBody
from omnigraph.lang.schema_tree import SchemaTree
from omnigraph.query.result import ResultStream

SHELL_FORMATS = tuple(name for name in RESULT_FORMATS if name not in ("arrow", "parquet"))
_LOG_LENGTH = 10


class ShellExit(Exception):
    """The statement ends the shell."""


class ShellUsage(Exception):
    """A dot command is invalid."""


@dataclass(frozen=True, slots=True)
class _FirstRows:
    """The first rows of a result, for a terminal."""

    result: ResultStream
    limit: int

    @property
    def name(self) -> str:
        return self.result.name

    @property
    def columns(self) -> list[str]:
        return self.result.columns

    @property
    def graph_commit_id(self) -> str:
        return self.result.graph_commit_id

    def __len__(self) -> int:
        return len(self.result)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return islice(self.result, self.limit)


@dataclass(slots=True)
class ShellSession:
    """An open graph, the state that is read, and settings of the output."""

    graph: Graph
    style: TableStyle = field(default_factory=TableStyle)
    format_: str = "table"
    branch: str = "main"
    time: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    shows_timing: bool = False
    last_query: str | None = None
    max_rows: int | None = None
    _catalog: Catalog | None = None

    @property
    def at(self) -> str:
        """The state that queries read."""
        return self.time or self.branch

    @property
    def catalog(self) -> Catalog:
        """The types of the state that queries read, for completion."""
        if self._catalog is None:
            self._catalog = self.graph.snapshot(self.at).catalog
        return self._catalog

    @property
    def prompt(self) -> str:
        """The prompt: the graph and the state that queries read."""
        name = self.graph.uri.rstrip("/").rpartition("/")[2]
        return f"{name}:{self.branch}> " if self.time is None else f"{name}@{self.time}> "

    def run(self, statement: str) -> bool:
        """Run a statement and print its answer or error; return whether it succeeded."""
        started = perf_counter()
        try:
            if statement.startswith("."):
                self._run_command(statement)
            else:
                self.run_query(statement)
        except OmniError as error:
            click.echo(error_text(error), err=True)
            return False
        except ShellUsage as error:
            click.echo(f"error: {error}", err=True)
            return False
        except KeyboardInterrupt:
            click.echo("cancelled", err=True)
            return False
        if self.shows_timing and not statement.startswith("."):
            click.echo(f"({(perf_counter() - started) * 1000:,.1f} ms)")
        return True

    # ------------------------------------------------------------------
    # Queries and mutations.

    def run_query(self, text: str, name: str | None = None) -> None:
        """Run a read, a mutation, or the declared query with a name."""
        query = _select_query(text, name)
        params = self._params_of(query)
        if query is not None and not isinstance(query.body, ReadBody):
            self._mutate(text, params, query.name.text)
            return
        self.last_query = text
        self._print_rows(self.graph.stream(text, params, name=name, at=self.at))

    def _mutate(self, source: str, params: Mapping[str, Any] | None, name: str) -> None:
        if self.time is not None:
            message = f"the shell reads {self.time}, which cannot change: `.time now` returns"
            raise ShellUsage(message)
        result = self.graph.mutate(source, params, name=name, branch=self.branch)
        nodes = count_text(result.affected_nodes, "node")
        edges = count_text(result.affected_edges, "edge")
        commit = "no commit" if result.commit is None else f"commit {result.commit.id}"
        click.echo(f"changed {self.branch}: {nodes}, {edges} ({commit})")

    def _params_of(self, query: QueryDecl | None) -> dict[str, Any] | None:
        """Return the values of the parameters of a query."""
        parameters = query.parameters if query is not None else ()
        names = [parameter.variable.name for parameter in parameters]
        for name, parameter in zip(names, parameters, strict=True):
            if name not in self.params and not parameter.type.nullable:
                raise ShellUsage(f"parameter ${name} has no value: set it with `.params {name}=…`")
        return {name: self.params[name] for name in names if name in self.params} or None

    def _print_rows(self, result: ResultStream) -> None:
        limit = self.max_rows
        is_cut = self.format_ == "table" and limit is not None and len(result) > limit
        rows: Any = _FirstRows(result, limit or 0) if is_cut else result
        target = {"branch": None if self.time else self.branch, "snapshot": self.time}
        buffer = io.BytesIO()
        write_result(rows, target, self.format_, buffer, self.style)
        sys.stdout.flush()
        click.echo(buffer.getvalue(), nl=False)
        if is_cut:
            more = count_text(len(result) - (limit or 0), "more row")
            click.echo(f"… {more} (`.rows all` shows them)")

    # ------------------------------------------------------------------
    # Dot commands.

    def _run_command(self, statement: str) -> None:
        word, _, argument = statement.partition(" ")
        if "\n" in word:
            word, _, argument = statement.partition("\n")
        command = COMMANDS.get(word)
        if command is None:
            near = nearest_name(word, COMMANDS)
            hint = f"did you mean `{near}`?" if near else "`.help` lists the commands"
            raise ShellUsage(f"unknown command '{word}': {hint}")
        command.run(self, argument.strip())

    def print_help(self, _: str) -> None:
        """Print the commands."""
        width = max(len(f"{name} {command.usage}") for name, command in COMMANDS.items())
        for name, command in COMMANDS.items():
            click.echo(f"{f'{name} {command.usage}':{width}}  {command.about}")
        click.echo(_HELP)

    def print_schema(self, name: str) -> None:
        """Print the schema, or the declaration of one type."""
        self._catalog = None
        source = self.graph.snapshot(self.at).schema_source
        if not name:
            click.echo(source.rstrip("\n"))
            return
        tree = parse_schema(source)
        chosen = tuple(d for d in tree.declarations if d.name.text == name)
        if not chosen:
            names = [d.name.text for d in tree.declarations]
            message = f"unknown type '{name}': {did_you_mean(name, names)}"
            raise InvalidInput(message, code="unknown_type")
        click.echo(print_schema(SchemaTree(chosen)).rstrip("\n"))

    def choose_branch(self, argument: str) -> None:
        """List the branches, or read and change another one."""
        name, *rest = argument.split() or [""]
        if not name:
            for branch in self.graph.branches.list():
                click.echo(f"{'*' if branch == self.branch else ' '} {branch}")
            return
        if rest and rest[0] != "from":
            raise _usage(".branch")
        start = " ".join(rest[1:]) or None
        if start is None and name not in self.graph.branches.list():
            creates = f"`.branch {name} from {self.at}` creates it"
            raise ShellUsage(f"branch '{name}' does not exist; {creates}")
        self.graph.branch(name, from_=start)
        self.branch, self.time, self._catalog = name, None, None
        click.echo(f"on branch {name}")

    def choose_time(self, argument: str) -> None:
        """Read a state of the past, or the newest one again."""
        if not argument or argument == "now":
            self.time, self._catalog = None, None
            click.echo(f"reading the newest state of {self.branch}")
            return
        snapshot = self.graph.snapshot(argument)
        self.time, self._catalog = argument, None
        click.echo(f"reading commit {snapshot.commit_id} of {snapshot.branch}; no changes")

    def explain(self, argument: str) -> None:
        """Print the plan of a query, or of the last one."""
        analyze = first_word(argument) == "analyze"
        text = argument.removeprefix("analyze").strip() if analyze else argument
        text = text or self.last_query or ""
        if not text:
            raise _usage(EXPLAIN)
        params = self._params_of(_select_query(text, None))
        click.echo(str(self.graph.explain(text, params, at=self.at, analyze=analyze)))

    def set_params(self, argument: str) -> None:
        """Print the values of parameters, or set some."""
        if argument == "clear":
            self.params.clear()
        for assignment in shlex.split(argument) if argument != "clear" else []:
            name, sign, text = assignment.partition("=")
            if not sign:
                raise _usage(".params")
            self.params[name.removeprefix("$")] = _param_value(text)
        for name, value in self.params.items():
            click.echo(f"${name} = {json.dumps(value, ensure_ascii=False)}")

    def run_file(self, argument: str) -> None:
        """Run the query of a file, or one of several by name."""
        words = shlex.split(argument)
        if not 1 <= len(words) <= 2:
            raise _usage(".run")
        self.run_query(read_bytes(Path(words[0])).decode(), *words[1:])

    def print_log(self, argument: str) -> None:
        """Print the newest commits of the branch."""
        if argument and not argument.isdigit():
            raise _usage(".log")
        for commit in self.graph.commits.list(self.branch, limit=int(argument or _LOG_LENGTH)):
            facts = [commit.id, commit.operation, commit.actor, commit.message]
            click.echo("  ".join(fact for fact in facts if fact))

    def choose_format(self, argument: str) -> None:
        """Choose the format of rows."""
        if argument not in SHELL_FORMATS:
            raise _usage(".format")
        self.format_ = argument

    def choose_rows(self, argument: str) -> None:
        """Limit the rows of a table."""
        if argument != "all" and not argument.isdigit():
            raise _usage(".rows")
        self.max_rows = None if argument == "all" else int(argument)

    def choose_timing(self, argument: str) -> None:
        """Show how long statements take."""
        if argument not in ("on", "off"):
            raise _usage(".timing")
        self.shows_timing = argument == "on"

    def quit(self, _: str) -> None:
        """End the shell."""
        raise ShellExit


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A dot command: its arguments, what it does, and the method that does it."""

    usage: str
    about: str
    run: Callable[[ShellSession, str], None]


COMMANDS = {
    ".help": ShellCommand("", "Print this list.", ShellSession.print_help),
    ".schema": ShellCommand(
        "[TYPE]", "Print the schema, or one type of it.", ShellSession.print_schema
    ),
    ".branch": ShellCommand(
        "[NAME [from STATE]]",
        "List the branches, change to one, or create it from a state.",
        ShellSession.choose_branch,
    ),
    ".time": ShellCommand(
        "[STATE|now]",
        "Read the state of a timestamp, tag or commit ID, or the newest one again.",
        ShellSession.choose_time,
    ),
    ".log": ShellCommand(
        "[N]", f"Print the newest {_LOG_LENGTH} (or N) commits.", ShellSession.print_log
    ),
    EXPLAIN: ShellCommand(
        "[analyze] [QUERY]",
        "Print the plan of a query or of the last one; with analyze, run it.",
        ShellSession.explain,
    ),
    ".params": ShellCommand(
        "[NAME=VALUE …|clear]", "Set the parameters of declared queries.", ShellSession.set_params
    ),
    ".run": ShellCommand("FILE [NAME]", "Run a query of a .gq file.", ShellSession.run_file),
    ".format": ShellCommand(
        "|".join(SHELL_FORMATS), "Choose the format of rows.", ShellSession.choose_format
    ),
    ".rows": ShellCommand("N|all", "Limit the rows of a table.", ShellSession.choose_rows),
    ".timing": ShellCommand(
        "on|off", "Print how long statements take.", ShellSession.choose_timing
    ),
    ".quit": ShellCommand("", "End the shell, as Ctrl-D does.", ShellSession.quit),
}
"""The dot commands by name."""
_HELP = """
A statement is a read (match { … } return { … }), a mutation (insert, update, delete)
or a declared query (query name($parameter: Type) { … }). On one line, Enter runs it;
on several lines, `;` or an empty line does. Ctrl-C discards what is typed and cancels
what runs."""


def _usage(word: str) -> ShellUsage:
    return ShellUsage(f"usage: {word} {COMMANDS[word].usage}")


def _param_value(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value; what is not JSON is a string."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _select_query(text: str, name: str | None) -> QueryDecl | None:
    """Return the query of a text with a name, or its only one; None if there is none."""
    queries = parse_queries(text).queries
    chosen = [query for query in queries if name in (None, query.name.text)]
    return chosen[0] if len(chosen) == 1 else None
