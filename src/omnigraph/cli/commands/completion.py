"""This module is `omnigraph completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print a script that makes SHELL complete commands: source it when the shell starts."""
    kind = get_completion_class(shell)
    assert kind is not None, "the library knows all three"
    root = click.get_current_context().find_root().command
    click.echo(kind(root, {}, "omnigraph", "_OMNIGRAPH_COMPLETE").source())
