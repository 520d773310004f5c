"""`omnigraph quickstart`: a small project to edit."""

from __future__ import annotations

import shlex
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from omnigraph.cli.options import InvalidUsage, json_option
from omnigraph.cli.output import print_result
from omnigraph.errors import translate_disk_errors

_FOLDER = "omnigraph-demo"
_PROJECT = "quickstart_project"
_LEFT_OUT = ("__pycache__", "__init__.py")


@click.command()
@click.argument(
    "folder", metavar="[DIR]", type=click.Path(path_type=Path), default="omnigraph-demo"
)
@json_option
def quickstart(folder: Path) -> None:
    """Write a small project into DIR, ./omnigraph-demo by default, and print what to run next.

    It has data as CSV, a schema, queries, and a script in Python.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidUsage(f"{folder} is not empty: pass another folder")
    written: list[str] = []
    with translate_disk_errors(folder):
        _copy(files("omnigraph.cli") / _PROJECT, folder, Path(), written)
    commands = [f"cd {shlex.quote(str(folder))}", *_commands(folder / "README.md")]
    facts = {"folder": str(folder), "files": written, "next": commands}
    print_result(
        facts,
        f"wrote {len(written)} files to {folder}: {', '.join(written)}",
        "",
        "next:",
        *(f"  {command}" for command in commands),
    )


def _copy(source: Traversable, folder: Path, below: Path, written: list[str]) -> None:
    (folder / below).mkdir(parents=True, exist_ok=True)
    for entry in sorted(source.iterdir(), key=lambda entry: entry.name):
        path = below / entry.name
        if entry.name in _LEFT_OUT:
            continue
        if entry.is_dir():
            _copy(entry, folder, path, written)
        else:
            (folder / path).write_bytes(entry.read_bytes())
            written.append(path.as_posix())


def _commands(readme: Path) -> list[str]:
    """Return the commands that the page of the project shows."""
    lines = readme.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
