"""The program `omnigraph`: its command groups, lazy loading of commands and exit codes."""

from __future__ import annotations

import sys
from importlib import import_module
from keyword import iskeyword

import click

from omnigraph.cli.examples import add_examples
from omnigraph.cli.light_start import start_light
from omnigraph.cli.older_lines import translate_line
from omnigraph.cli.options import (
    accept_global_options,
    global_options,
    policy_option,
    refuse_unused_options,
)
from omnigraph.cli.summaries import summary
from omnigraph.errors import OmniError
from omnigraph.version import __version__

COMMAND_GROUPS = {
    "Data": (
        "quickstart",
        "init",
        "load",
        "query",
        "mutate",
        "shell",
        "explain",
        "export",
        "import",
        "blob",
    ),
    "Branches & history": (
        "branch",
        "merge",
        "revert",
        "cherry-pick",
        "tag",
        "commit",
        "diff",
        "history",
        "blame",
        "changes",
        "snapshot",
    ),
    "Review": ("proposal", "check", "protection"),
    "Schema": ("schema", "lint", "fmt"),
    "Search & indexes": ("index", "embed"),
    "Serving": (
        "serve",
        "studio",
        "mcp",
        "cluster",
        "graphs",
        "queries",
        "running",
        "alias",
        "policy",
        "login",
        "logout",
        "profile",
    ),
    "Pipelines": ("pipeline", "analyze"),
    "Maintenance": (
        "status",
        "maintain",
        "retention",
        "optimize",
        "cleanup",
        "verify",
        "repair",
        "recover",
        "completion",
        "version",
    ),
}
"""The commands by subject, in the order of `omnigraph --help`."""
COMMANDS = tuple(name for names in COMMAND_GROUPS.values() for name in names)
"""Each command is in the module of `cli.commands` of the same name unless listed in `_MODULES`."""
_MODULES = {
    "blame": "history",
    "cherry_pick": "merge",
    "cleanup": "maintenance",
    "completion": "version",
    "explain": "query",
    "import_": "export",
    "ingest": "load",
    "logout": "login",
    "optimize": "maintenance",
    "recover": "maintenance",
    "repair": "maintenance",
    "revert": "merge",
    "verify": "maintenance",
}
DEPRECATED_COMMANDS = ("ingest",)
"""Commands that still work and are not listed by `--help`."""


class _LazyCommandGroup(click.Group):
    """A click group that imports the module of a command when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all listed commands."""
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of a command line, translating former ones."""
        return super().resolve_command(ctx, translate_line(args))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by name; for a shell that completes a line, only a summary of it."""
        if ctx.resilient_parsing:
            return summary(cmd_name)
        if cmd_name not in (*COMMANDS, *DEPRECATED_COMMANDS):
            near = import_module("difflib").get_close_matches(cmd_name, COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            ctx.fail(f"No such command '{cmd_name}'.{hint}")
        name = cmd_name.replace("-", "_")
        name += "_" if iskeyword(name) else ""
        module = import_module(f"omnigraph.cli.commands.{_MODULES.get(name, name)}")
        command = accept_global_options(getattr(module, name))
        return add_examples(command, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, one section for each group."""
        width = formatter.width - 6 - max(len(name) for name in COMMANDS)
        for title, names in COMMAND_GROUPS.items():
            with formatter.section(title):
                commands = ((name, summary(name)) for name in names)
                formatter.write_dl(
                    [
                        (name, command.get_short_help_str(width))
                        for name, command in commands
                        if command
                    ]
                )


@click.group(cls=_LazyCommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-v", "--version", message="omnigraph %(version)s")
@global_options
@policy_option
@click.pass_context
def cli(context: click.Context) -> None:
    """OmniGraph: a typed property-graph database on Lance storage."""
    refuse_unused_options(context.invoked_subcommand or "")


add_examples(cli, "")


def server() -> None:
    """Run `omnigraph serve` as the program `omnigraph-server`."""
    sys.argv.insert(1, "serve")
    main()


def main() -> None:
    """Run the program; on failure print the error on standard error.

    The exit code is 1, or by cause where the command documents that.
    """
    start_light(sys.argv[1:])
    try:
        cli(prog_name="omnigraph")
    except OmniError as error:
        import_module("omnigraph.cli.errors").report_error(error)
        sys.exit(import_module("omnigraph.cli.exit_codes").exit_code_of(error))
    except BrokenPipeError:
        # The reader of standard output closed the pipe; there is no output left to write to.
        sys.stderr.close()
        sys.exit(1)
