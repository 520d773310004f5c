"""This module puts the commands together into the program `omnigraph`."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib import import_module
from keyword import iskeyword

import click

from omnigraph.cli.options import (
    accept_global_options,
    global_options,
    policy_option,
    refuse_unused_options,
    replace_deprecated_name,
)
from omnigraph.errors import OmniError
from omnigraph.version import __version__

COMMANDS = (
    "init",
    "load",
    "pipeline",
    "query",
    "explain",
    "mutate",
    "embed",
    "export",
    "import",
    "blob",
    "snapshot",
    "branch",
    "tag",
    "commit",
    "diff",
    "changes",
    "merge",
    "revert",
    "cherry-pick",
    "schema",
    "lint",
    "fmt",
    "policy",
    "index",
    "optimize",
    "analyze",
    "verify",
    "repair",
    "recover",
    "cleanup",
    "serve",
    "mcp",
    "cluster",
    "graphs",
    "queries",
    "alias",
    "login",
    "logout",
    "profile",
    "completion",
    "version",
)
"""Each name is a command, in the module of `cli.commands` of that name unless listed below."""
_MODULES = {
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
"""Commands that still work, and that nobody is told of."""


class _LazyCommandGroup(click.Group):
    """Loads a command's module when the command is used, so that starting costs nothing."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that words begin with, also under a name it once had."""
        return super().resolve_command(ctx, replace_deprecated_name(args))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by name."""
        if cmd_name not in (*COMMANDS, *DEPRECATED_COMMANDS):
            near = get_close_matches(cmd_name, COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            ctx.fail(f"No such command '{cmd_name}'.{hint}")
        name = cmd_name.replace("-", "_")
        name += "_" if iskeyword(name) else ""
        module = import_module(f"omnigraph.cli.commands.{_MODULES.get(name, name)}")
        return accept_global_options(getattr(module, name))


@click.group(cls=_LazyCommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-v", "--version", message="omnigraph %(version)s")
@global_options
@policy_option
@click.pass_context
def cli(context: click.Context) -> None:
    """OmniGraph: a typed property-graph database on open storage."""
    refuse_unused_options(context.invoked_subcommand or "")


def server() -> None:
    """Run `omnigraph serve` under the name of a program of its own."""
    sys.argv.insert(1, "serve")
    main()


def main() -> None:
    """Run the program; a failure becomes a message on standard error and exit code 1."""
    try:
        cli(prog_name="omnigraph")
    except OmniError as error:
        import_module("omnigraph.cli.errors").report_error(error)
        sys.exit(1)
    except BrokenPipeError:
        # The reader of our output went away; there is nobody left to tell.
        sys.stderr.close()
        sys.exit(1)
