"""This module knows what commands were once called, and says what they are called now."""

from __future__ import annotations

from collections.abc import Sequence

import click

_NAMES = {
    ("read",): "query",
    ("change",): "mutate",
    ("check",): "lint",
    ("query", "lint"): "lint",
    ("query", "check"): "lint",
}
"""Words a command line may begin with, and the command that takes their place."""


def renamed(words: Sequence[str]) -> list[str]:
    """Return a command line with the name a command has now, and warn of the older one."""
    for older, name in _NAMES.items():
        if tuple(words[: len(older)]) == older:
            warn_older(" ".join(older), name)
            return [name, *words[len(older) :]]
    return list(words)


def warn_older(older: str, newer: str) -> None:
    """Say that something has another name now; it still works."""
    click.echo(f"warning: `{older}` is deprecated; use `{newer}`", err=True)
