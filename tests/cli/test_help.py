"""The help of every command: groups, plain sentences, examples that the parser accepts."""

import os
import shlex
import subprocess
import sys

import click
import pytest

from omnigraph.cli.app import COMMAND_GROUPS, COMMANDS, cli
from omnigraph.cli.completion import completed_type
from omnigraph.cli.examples import EXAMPLES
from omnigraph.cli.summaries import summary
from scripts.docs_gen import command_tree
from tests.support.program import omnigraph

REDIRECTIONS = ("<", ">", "|")


TREE = {"": cli, **command_tree()}


def test_commands_are_listed_by_subject():
    out = omnigraph("--help").out
    titles = (
        "Data",
        "Branches & history",
        "Review",
        "Schema",
        "Search & indexes",
        "Serving",
        "Pipelines",
    )
    assert (*titles, "Maintenance") == tuple(COMMAND_GROUPS)
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


@pytest.mark.parametrize("words", [words for words in TREE if words])
def test_summaries_are_those_of_the_commands(words):
    command, short = TREE[words], summary(words)
    for width in (20, 45, 65, 10_000):
        assert short.get_short_help_str(width) == command.get_short_help_str(width)
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    assert [(one.opts, one.secondary_opts) for one in short.params] == [
        (one.opts, one.secondary_opts) for one in shown
    ]
    for summarised, one in zip(short.params, shown, strict=True):
        assert isinstance(summarised, type(one))
        if isinstance(one, click.Option):
            assert (summarised.is_flag, summarised.multiple) == (one.is_flag, one.multiple)
        if completed_type(words, one.opts[0]) is not None:
            continue  # names of the graph, which tests/cli/test_completion.py completes
        given = [
            [(item.value, item.type) for item in x.shell_complete(click.Context(command), "")]
            for x in (summarised, one)
        ]
        assert given[0] == given[1], one.opts
    assert isinstance(short, click.Group) == isinstance(command, click.Group)


def _complete(line: str, program: str) -> tuple[list[str], set[str]]:
    """Return what bash would offer for a line, and the modules that were imported for it."""
    report = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", f"{report}\n{program}"],
        env={**os.environ, "_OMNIGRAPH_COMPLETE": "bash_complete", **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.split(), set(done.stderr.split())


MOST_MODULES = 160
"""Of all packages; the interpreter alone imports 34, and click another 62."""
PROGRAM = "from omnigraph.cli.app import main; main()"


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("omnigraph que", ["plain,query", "plain,queries"]),
        ("omnigraph branch cr", ["plain,create"]),
        ("omnigraph query --form", ["plain,--format"]),
        ("omnigraph query --format js", ["plain,json", "plain,jsonl"]),
        ("omnigraph branch merge --into", ["plain,--into"]),
        ("omnigraph load --data s", ["file,s"]),
        ("omnigraph nonsense x", []),
    ],
)
def test_completion_imports_no_command(line, offered):
    answer, modules = _complete(line, PROGRAM)
    assert answer == offered
    assert not [name for name in modules if name.startswith("omnigraph.cli.commands")]
    assert not modules & {"pyarrow", "lance", "numpy", "msgspec", "yaml", "omnigraph.graph"}


def test_help_imports_no_command():
    report = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    done = subprocess.run(
        [sys.executable, "-c", f"{report}\nimport sys; sys.argv = ['o', '--help']\n{PROGRAM}"],
        capture_output=True,
        text=True,
        check=True,
    )
    modules = set(done.stderr.split())
    ours = {name for name in modules if name.partition(".")[0] == "omnigraph"}
    below = {name for name in ours if not name.startswith("omnigraph.cli.")}
    assert below == {"omnigraph", "omnigraph.cli", "omnigraph.errors", "omnigraph.version"}
    assert not [name for name in ours if name.startswith("omnigraph.cli.commands")]
    assert len(modules) < MOST_MODULES
    assert not modules & {"pyarrow", "lance", "numpy", "msgspec", "yaml", "json"}
    assert "  query" in done.stdout
