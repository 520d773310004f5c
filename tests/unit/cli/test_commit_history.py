"""Drawings of histories: what a person would draw."""

from dataclasses import dataclass

import pytest

from omnigraph.cli.commands.commit import draw_history


@dataclass(frozen=True)
class Named:
    id: str
    parents: tuple[str, ...] = ()


CASES = {
    "a line": (["c b", "b a", "a"], ["* c", "* b", "* a"]),
    "a merge": (["m b s", "b a", "s a", "a"], ["* m", "|\\", "* | b", "| * s", "|/", "* a"]),
    "merged twice": (
        ["n m t", "m b s", "t s", "s a", "b a", "a"],
        ["* n", "|\\", "* | m", "|\\ \\", "| | * t", "| |/", "| * s", "* | b", "|/", "* a"],
    ),
    "a lane in between": (
        ["m b x", "b a y", "x z", "y a", "a z", "z"],
        ["* m", "|\\", "* | b", "|\\ \\", "| | * x", "| * | y", "|/ |", "* | a", "|/", "* z"],
    ),
    "cut off": (["c b", "b a"], ["* c", "* b"]),
    "a parent next door": (
        ["n m s", "m b s", "s a", "b a", "a"],
        ["* n", "|\\", "* | m", "|\\|", "| * s", "* | b", "|/", "* a"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_drawing(name):
    written, wanted = CASES[name]
    commits = [Named(first, tuple(rest)) for first, *rest in (line.split() for line in written)]
    drawn = [f"{line} {commit.id}" if commit else line for line, commit in draw_history(commits)]
    assert drawn == wanted
