"""Summaries of commands: what help lists and shells complete, without importing the commands.

`command_table.py` holds the text; `tests/cli/test_help.py` compares it with the commands.
"""

from __future__ import annotations

from typing import Any

import click

from omnigraph.cli.command_table import COMMAND_TABLE
from omnigraph.cli.completion import completed_type

_PATHS = {
    "file": click.Path(),
    "dir": click.Path(file_okay=False),
}


def describe_commands(commands: dict[str, click.Command]) -> str:
    """Return a line for each command: its words, its parameters and its first sentence."""
    lines = []
    for words, command in sorted(commands.items()):
        kind = "group" if isinstance(command, click.Group) else "command"
        parameters = " ".join(_describe(one) for one in command.params if not _is_hidden(one))
        lines.append(f"{words} | {kind} | {parameters} | {command.get_short_help_str(10_000)}\n")
    return "".join(lines)


def _is_hidden(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and parameter.hidden


def _describe(parameter: click.Parameter) -> str:
    """Return `--name`, `--name=`, `--name=file` or `--name=a,b`; `+` if it is repeatable."""
    repeats = "+" if parameter.nargs == -1 or getattr(parameter, "multiple", False) else ""
    names = "/".join((",".join(parameter.opts), *parameter.secondary_opts))
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return f"{names}{repeats}"
    values = ""
    if isinstance(parameter.type, click.Choice):
        values = ",".join(map(str, parameter.type.choices))
    elif isinstance(parameter.type, click.Path):
        values = "file" if parameter.type.file_okay else "dir"
    return f"{names}={values}{repeats}"


def summary(words: str) -> click.Command | None:
    """Return a command that has the help and parameters of another one but does nothing."""
    table = {line.partition(" | ")[0]: line for line in COMMAND_TABLE.splitlines()}
    return _summary(words, table)


def _summary(words: str, table: dict[str, str]) -> click.Command | None:
    if words not in table:
        return None
    _, kind, parameters, about = table[words].split(" | ", 3)
    command = click.Group if kind == "group" else click.Command
    made = command(
        words.rpartition(" ")[2],
        help=about,
        params=[_parameter(words, one) for one in parameters.split()],
    )
    if isinstance(made, click.Group):
        prefix = f"{words} "
        for below in table:
            name = below.removeprefix(prefix)
            if name != below and " " not in name:
                subcommand = _summary(below, table)
                assert subcommand is not None
                made.add_command(subcommand)
    return made


def _parameter(words: str, text: str) -> click.Parameter:
    repeats = text.endswith("+")
    names, takes_value, values = text.removesuffix("+").partition("=")
    type_: click.ParamType[Any] | None = completed_type(words, names.split(",")[0])
    if values:
        type_ = _PATHS.get(values) or click.Choice(values.split(","))
    if not names.startswith("-"):
        return click.Argument([names], type=type_, nargs=-1 if repeats else 1, required=False)
    return click.Option(
        names.split(","), type=type_, multiple=repeats, is_flag=None if takes_value else True
    )
