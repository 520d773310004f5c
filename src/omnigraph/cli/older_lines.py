"""Translate command lines of earlier versions and of the original program.

A line that has a meaning here is rewritten, with a warning; another raises InvalidUsage, which
names what to use instead. `docs/migrating.md` lists both.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence

import click

from omnigraph.cli.command_line import line_text, without_option
from omnigraph.cli.options import InvalidUsage

_RENAMED = {
    ("read",): ("query",),
    ("change",): ("mutate",),
    ("check",): ("lint",),
    ("query", "lint"): ("lint",),
    ("query", "check"): ("lint",),
    ("cluster", "observe"): ("cluster", "refresh"),
}
"""Former command words and the command that replaces them."""
_MANAGED = "there is no managed control service: clusters are files and storage; use"
_RUNS = "there are no runs: a load or mutation is one commit; use"
_REMOVED = {
    ("run", "list"): f"{_RUNS} `omnigraph commit list`",
    ("run", "show"): f"{_RUNS} `omnigraph commit show`",
    ("run", "publish"): f"{_RUNS} `omnigraph branch merge` for changes on a branch",
    ("run", "abort"): f"{_RUNS} `omnigraph branch delete` for changes on a branch",
    ("run",): f"{_RUNS} `omnigraph commit list`",
    ("use",): f"{_MANAGED} `omnigraph cluster plan --config DIR`",
    ("cluster", "token"): f"{_MANAGED} `omnigraph login SERVER`",
    ("cluster", "history"): f"{_MANAGED} `omnigraph cluster status`",
    ("cluster", "cancel"): f"{_MANAGED} `omnigraph cluster plan`, which changes nothing",
    ("rebuild-full-text-indexes",): "use `omnigraph optimize`, which brings all indexes up to "
    "date, or `omnigraph index build` for missing ones",
}
"""Former command words, and what to use instead."""
_QUERIES = ("query", "mutate", "explain")
_SETTINGS = (
    "omnigraph.yaml is not read: servers, profiles and aliases are declared in "
    "~/.omnigraph/config.yaml"
)


def translate_line(words: Sequence[str]) -> list[str]:
    """Return a command line in its current form; print a warning if it had another one."""
    line = _rename(list(words))
    for former, instead in _REMOVED.items():
        if tuple(line[: len(former)]) == former:
            raise InvalidUsage(f"`{' '.join(former)}` is not a command: {instead}")
    command = line[0] if line else ""
    for option, commands, translate in _OPTIONS:
        if command in commands and (value := _value(line, option)) is not None:
            line = translate(line, option, value)
    if command in ("query", "mutate"):
        _refuse_statement(line)
    return line


def _rename(line: list[str]) -> list[str]:
    for former, words in _RENAMED.items():
        if tuple(line[: len(former)]) == former and _is_former(former, line):
            warn_deprecated(" ".join(former), " ".join(words))
            return [*words, *line[len(former) :]]
    return line


def _is_former(former: tuple[str, ...], line: Sequence[str]) -> bool:
    """Return whether a former name is meant: `check` of queries with a schema is `lint`."""
    if former != ("check",):
        return True
    return any(word.partition("=")[0] in ("--schema", "--query") for word in line)


def warn_deprecated(older: str, newer: str) -> None:
    """Print that a name is deprecated and which name replaces it."""
    click.echo(f"warning: `{older}` is deprecated; use `{newer}`", err=True)


def _value(line: Sequence[str], option: str) -> str | None:
    """Return the value of an option; empty if it has none, None without the option."""
    for number, word in enumerate(line):
        name, equals, value = word.partition("=")
        if name == option:
            return value if equals else (*line[number + 1 : number + 2], "")[0]
    return None


# ----------------------------------------------------------------------
# Options: each function returns the line without the option, or raises InvalidUsage.


_Translation = Callable[[list[str], str, str], list[str]]


def _name_of_query(line: list[str], option: str, value: str) -> list[str]:
    warn_deprecated(f"{option} {value}", value)
    return [*without_option(line, option), value]


def _alias(line: list[str], option: str, value: str) -> list[str]:
    warn_deprecated(f"{line[0]} {option} {value}", f"alias {value}")
    return ["alias", value, *without_option(line[1:], option)]


def _target(line: list[str], option: str, value: str) -> list[str]:
    newer = "--server" if value.startswith(("http://", "https://")) else "--profile"
    warn_deprecated(f"{option} {value}", f"{newer} {value}")
    return [*without_option(line, option), newer, value]


def _renamed_option(newer: str, read: Callable[[str], str] = str) -> _Translation:
    def translate(line: list[str], option: str, value: str) -> list[str]:
        warn_deprecated(f"{option} {value}", f"{newer} {read(value)}")
        return [*without_option(line, option), newer, read(value)]

    return translate


def _renamed_flag(newer: str) -> _Translation:
    def translate(line: list[str], option: str, _: str) -> list[str]:
        warn_deprecated(option, newer)
        return [newer if word == option else word for word in line]

    return translate


def _unneeded_flag(line: list[str], option: str, _: str) -> list[str]:
    warn_deprecated(option, f"omnigraph {' '.join(line[:2])}")
    return [word for word in line if word != option]


def _refusal(instead: str) -> _Translation:
    def refuse(line: list[str], option: str, _: str) -> list[str]:
        raise InvalidUsage(f"`{line[0]}` has no option {option}: {instead}")

    return refuse


def _settings_of_command(line: list[str], option: str, _: str) -> list[str]:
    rest = without_option(line, option)
    raise InvalidUsage(f"{_SETTINGS}; name the graph or a profile: use `{line_text(rest)}`")


_GRAPH_COMMANDS = (
    *("init", "load", "ingest", *_QUERIES, "export", "branch", "commit", "snapshot", "schema"),
    *("changes", "blob", "lint", "optimize", "cleanup", "repair", "embed", "alias"),
)
_OPTIONS: tuple[tuple[str, Sequence[str], _Translation], ...] = (
    ("--config", _GRAPH_COMMANDS, _settings_of_command),
    ("--config", ("graphs",), _refusal(f"{_SETTINGS}; use `omnigraph graphs list --server NAME`")),
    ("--config", ("policy",), _refusal("use --policy FILE, or --cluster DIR for applied policies")),
    ("--config", ("queries",), _refusal("use --cluster DIR")),
    (
        "--config",
        ("serve",),
        _refusal("use --cluster DIR, or --graph NAME=URI with --queries and --policy"),
    ),
    ("--target", ("serve",), _refusal("use --graph NAME=URI, or the address of the graph")),
    ("--target", (*_GRAPH_COMMANDS, "graphs"), _target),
    ("--target", ("queries", "policy"), _refusal("use --cluster DIR --graph ID")),
    ("--alias", ("query", "mutate"), _alias),
    ("--name", _QUERIES, _name_of_query),
    ("--table", ("export",), _renamed_option("--type", lambda key: key.rpartition(":")[2])),
    (
        "--filter",
        ("commit",),
        _renamed_option("--actor", lambda text: text.removeprefix("actor=")),
    ),
    ("--reembed_all", ("embed",), _renamed_flag("--reembed-all")),
    ("--direct", ("cluster",), _unneeded_flag),
    ("--api", ("login", "logout"), _refusal(f"{_MANAGED} `omnigraph login SERVER`")),
    ("--rev", ("cluster",), _refusal(f"{_MANAGED} `omnigraph cluster plan --config DIR`")),
    ("--plan", ("cluster",), _refusal(f"{_MANAGED} `omnigraph cluster apply --config DIR`")),
)
"""Options that commands do not have, in the order in which a line is translated."""


# ----------------------------------------------------------------------
# Branch statements in the text of a query.


_STATEMENT = re.compile(r"\s*branch\s+(create|list|merge|delete)\b(.*)", re.DOTALL)


def _refuse_statement(line: Sequence[str]) -> None:
    text = _value(line, "-e") or _value(line, "--query-string") or ""
    match = _STATEMENT.fullmatch(text)
    if match is None:
        return
    options: Mapping[str, str] = {"from": "--from", "into": "--into"}
    words = [options.get(word, word) for word in shlex.split(match[2].rstrip(" \n;"))]
    rest = without_option(line[1:], "-e", "--query-string", "--format")
    command = line_text(["branch", match[1], *words, *rest])
    raise InvalidUsage(f"branches are changed by commands, not by query texts: use `{command}`")
