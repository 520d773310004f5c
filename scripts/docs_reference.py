"""Markdown of the reference of the command line and of Python, and of the comparison."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click

import omnigraph
from omnigraph.cli.app import COMMANDS, cli
from omnigraph.cli.examples import EXAMPLES
from omnigraph.graph import proposal_protocol, protocol
from omnigraph.graph.api import Graph
from omnigraph.query.result import Result, ResultStream
from omnigraph.service.client.graph import RemoteGraph

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results.json"
OTHERS = {"ladybug": "ladybug (embedded graph database)", "lancedb": "LanceDB", "duckdb": "DuckDB"}
"""The libraries that the benchmarks compare with, by the word in the names of measurements."""

_PARTS: tuple[tuple[str, type], ...] = (
    ("graph", protocol.GraphApi),
    ("graph.branches", protocol.BranchesApi),
    ("graph.tags", protocol.TagsApi),
    ("graph.commits", protocol.CommitsApi),
    ("graph.changes", protocol.ChangesApi),
    ("graph.schema", protocol.SchemaApi),
    ("graph.proposals", proposal_protocol.ProposalsApi),
    ("graph.protection", proposal_protocol.ProtectionApi),
)
_RELATIVE = re.compile(r"^(?:the same in (?P<in>\w+)|\w+ of (?P<of>\w+))")


# ----------------------------------------------------------------------
# The command line.


def command_tree() -> dict[str, click.Command]:
    """Return every command by its words."""
    context = click.Context(cli, info_name="omnigraph")
    commands: dict[str, click.Command] = {}
    pending = [(name, cli.get_command(context, name)) for name in COMMANDS]
    for words, command in pending:
        assert command is not None, f"{words} is not a command"
        commands[words] = command
        if isinstance(command, click.Group):
            pending += [(f"{words} {name}", below) for name, below in command.commands.items()]
    return commands


def command_reference() -> str:
    """Return a section for each command: its usage, help, options and examples."""
    return "\n".join(
        _command(words, command)
        for words, command in sorted(command_tree().items())
        if not isinstance(command, click.Group) and not command.hidden
    )


def _command(words: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"omnigraph {words}")
    usage = " ".join(command.collect_usage_pieces(context))
    help_ = inspect.cleandoc(command.help or "").replace("\b\n", "")
    parts = [f"### omnigraph {words}", f"```text\nomnigraph {words} {usage}\n```", _escaped(help_)]
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    if options:
        lines = ["| option | meaning |", "|---|---|"]
        lines += [_option(option, context) for option in options]
        parts.append("\n".join(lines))
    examples = EXAMPLES.get(words, ())
    if examples:
        parts.append("```text\n" + "\n".join(examples) + "\n```")
    return "\n\n".join(parts) + "\n"


def _option(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    assert record is not None, "it is listed"
    names, about = record
    return f"| `{names.replace('|', chr(92) + '|')}` | {_escaped(about)} |"


def _escaped(text: str) -> str:
    return text.replace("|", r"\|").replace("<", r"\<").replace("*", r"\*")


# ----------------------------------------------------------------------
# Python.


def python_reference() -> str:
    """Return a section for each function and class of the package that a program uses."""
    functions = {
        name: value
        for name in sorted(omnigraph.__all__)
        if inspect.isfunction(value := getattr(omnigraph, name))
    }
    parts = ["## Functions"]
    parts += [_callable(f"og.{name}", function) for name, function in functions.items()]
    for name, part in _PARTS:
        parts += [f"## {name}", _about(part), *_members(name, part)]
    shared = {n for _, part in _PARTS[:1] for base in part.__mro__ for n in vars(base)}
    for title, only in (("Only embedded", Graph), ("Only on a server", RemoteGraph)):
        own = list(_members("graph", only, without=shared))
        if own:
            parts += [f"## {title}", *own]
    for type_ in (Result, ResultStream):
        parts += [f"## {type_.__name__}", _about(type_), *_members("result", type_)]
    parts += ["## Errors", _errors()]
    return "\n\n".join(parts) + "\n"


def _members(name: str, type_: type, without: Iterable[str] = ()) -> Iterator[str]:
    """Yield the public methods and properties of a class, with those of its bases of ours."""
    seen = set(without)
    for base in type_.__mro__:
        if not base.__module__.startswith("omnigraph"):
            continue
        for member, value in vars(base).items():
            if member.startswith("_") or member in seen:
                continue
            seen.add(member)
            if inspect.isfunction(value):
                yield _callable(f"{name}.{member}", value)
            elif inspect.isdatadescriptor(value) and inspect.getdoc(value):
                yield f"### {name}.{member}\n\n{_about(value)}"


def _callable(name: str, function: Callable[..., Any]) -> str:
    heading = f"### {name}"
    return f"{heading}\n\n```text\n{name}{_signature(function)}\n```\n\n{_about(function)}"


def _signature(function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    shown: list[str] = []
    marked = False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not marked:
            shown.append("*")
            marked = True
        text = f"{'**' if parameter.kind is parameter.VAR_KEYWORD else ''}{parameter.name}"
        if parameter.annotation is not parameter.empty:
            text += f": {_type_text(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {parameter.default!r}"
        shown.append(text)
    result = signature.return_annotation
    returns = "" if result is signature.empty else f" -> {_type_text(result)}"
    line = f"({', '.join(shown)}){returns}"
    if len(line) <= 80:
        return line
    lines = "".join(f"    {parameter},\n" for parameter in shown)
    return f"(\n{lines}){returns}"


def _type_text(annotation: object) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return str(text or annotation).replace("_StateT", "str")


def _about(value: object) -> str:
    """Return a docstring as Markdown, its examples as blocks."""
    paragraphs = (inspect.getdoc(value) or "").split("\n\n")
    return "\n\n".join(
        f"```pycon\n{text}\n```" if text.startswith(">>>") else _escaped(text)
        for text in paragraphs
    )


def _errors() -> str:
    lines = ["| error | meaning |", "|---|---|"]
    for name in sorted(omnigraph.__all__):
        value = getattr(omnigraph, name)
        if inspect.isclass(value) and issubclass(value, Exception):
            about = (inspect.getdoc(value) or "").splitlines()[0]
            lines.append(f"| `og.{name}` | {_escaped(about)} |")
    return "\n".join(lines)


# ----------------------------------------------------------------------
# The comparison.


def comparison() -> str:
    """Return a table of measurements beside another library, ours divided by its."""
    recorded = json.loads(RESULTS.read_text(encoding="utf-8"))
    lines = ["| measurement | other | OmniGraph / other | is |", "|---|---|---|---|"]
    for row in recorded["results"]:
        what, _, rest = row["name"].partition(" / ")
        match = _RELATIVE.match(rest)
        other = (match["in"] or match["of"]) if match else None
        if other not in OTHERS or not row["unit"].startswith("times"):
            continue
        _, comma, scale = rest.partition(", ")
        lines.append(
            f"| {what}{comma}{scale} | {OTHERS[other]} | {row['median']:.2f} | "
            f"{'faster' if row['median'] < 1 else 'slower'} |"
        )
    versions = ", ".join(f"{name} {version}" for name, version in recorded["versions"].items())
    machine = recorded["machine"]
    lines += [
        "",
        f"Recorded {recorded['recorded'][:10]} on {machine['cores']} cores ({machine['system']}); "
        f"{versions}. Medians; below 1, OmniGraph takes less time.",
    ]
    return "\n".join(lines) + "\n"


BLOCKS: dict[str, Callable[[], str]] = {
    "commands": command_reference,
    "python": python_reference,
    "comparison": comparison,
}
"""What a line `<!-- built:NAME -->` of a page is replaced with when the site is built."""
