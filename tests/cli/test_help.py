"""The help of every command: groups, plain sentences, examples that the parser accepts."""

import shlex

import click
import pytest

from omnigraph.cli.app import COMMAND_GROUPS, COMMANDS, DEPRECATED_COMMANDS, cli
from omnigraph.cli.examples import EXAMPLES
from tests.support.program import omnigraph

REDIRECTIONS = ("<", ">", "|")


def _tree() -> dict[str, click.Command]:
    """Return every command by its words, without running any."""
    context = click.Context(cli, info_name="omnigraph")
    commands: dict[str, click.Command] = {"": cli}
    pending = [(name, cli.get_command(context, name)) for name in (*COMMANDS, *DEPRECATED_COMMANDS)]
    for words, command in pending:
        commands[words] = command
        if isinstance(command, click.Group):
            pending += [(f"{words} {name}", below) for name, below in command.commands.items()]
    return commands


TREE = _tree()


def test_commands_are_listed_under_the_eight_groups():
    out = omnigraph("--help").out
    titles = "Data", "Branches & history", "Review", "Schema", "Search & indexes", "Serving"
    assert (*titles, "Pipelines", "Maintenance") == tuple(COMMAND_GROUPS)
    places = [out.index(f"\n{title}:\n") for title in COMMAND_GROUPS]
    assert places == sorted(places)
    assert len(COMMANDS) == len(set(COMMANDS))


def test_every_example_belongs_to_a_command():
    assert set(EXAMPLES) == set(TREE)


@pytest.mark.parametrize("words", TREE, ids=lambda words: words or "omnigraph")
def test_help_has_examples_that_the_parser_accepts(words):
    command = TREE[words]
    context = click.Context(command, info_name=f"omnigraph {words}".strip())
    text = command.get_help(context)
    _, _, epilog = text.partition("Examples:\n")
    lines = [line.strip() for line in epilog.splitlines() if line.strip()]
    assert lines, f"`omnigraph {words} --help` has no example"
    assert text.count("Example") == 1
    for line in EXAMPLES[words]:
        _parse(line)
    for line in lines:
        _parse(line)


def _parse(line: str) -> None:
    """Parse a command line without running it; click raises if it is not valid."""
    program, *arguments = shlex.split(line)
    assert program == "omnigraph"
    ends = [place for place, word in enumerate(arguments) if word in REDIRECTIONS]
    arguments = arguments[: min(ends, default=len(arguments))]
    context, command = click.Context(cli, info_name="omnigraph"), cli
    while isinstance(command, click.Group):
        name, below, arguments = command.resolve_command(context, arguments)
        assert below is not None
        context = click.Context(below, info_name=name, parent=context)
        command = below
    command.make_context(context.info_name, arguments, parent=context.parent)


@pytest.mark.parametrize("words", TREE, ids=lambda words: words or "omnigraph")
def test_help_is_complete_sentences(words):
    command = TREE[words]
    assert (command.help or "").split("\n")[0].endswith("."), words
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.help, f"{words} {parameter.opts[0]} has no help"
            text = parameter.help.partition("  [default:")[0]
            assert text.endswith("."), f"{words} {parameter.opts[0]}: {parameter.help}"
