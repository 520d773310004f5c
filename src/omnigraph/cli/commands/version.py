"""`omnigraph version` and `omnigraph completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from omnigraph.cli.options import json_option
from omnigraph.cli.output import print_result
from omnigraph.version import INTERNAL_SCHEMA_VERSION, __version__


@click.command()
@json_option
def version() -> None:
    """Print the versions of the program and of the storage format it writes."""
    print_result(
        {"omnigraph": __version__, "internal_schema": INTERNAL_SCHEMA_VERSION},
        f"omnigraph {__version__}",
        f"internal-schema {INTERNAL_SCHEMA_VERSION}",
    )


# ----------------------------------------------------------------------
# Shell completion.


_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    kind = get_completion_class(shell)
    assert kind is not None, "click supports all three shells"
    root = click.get_current_context().find_root().command
    click.echo(kind(root, {}, "omnigraph", "_OMNIGRAPH_COMPLETE").source())
