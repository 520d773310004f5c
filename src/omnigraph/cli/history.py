"""This module draws history: commits newest first, with lines to their parents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.commit.model import Commit


def draw(commits: Sequence[Commit]) -> Iterator[tuple[str, Commit | None]]:
    """Yield lines of a drawing, each with the commit whose line it is, or None between commits.

    Children must come before their parents. What is not listed is drawn as going on.
    """
    lanes: list[str] = []
    for commit in commits:
        if commit.id not in lanes:
            lanes.append(commit.id)
        place = lanes.index(commit.id)
        for other in reversed(range(place + 1, len(lanes))):
            if lanes[other] == commit.id:
                yield _joining(len(lanes), place, other), None
                del lanes[other]
        marks = ("*" if number == place else "|" for number in range(len(lanes)))
        yield " ".join(marks), commit
        first, *others = commit.parents or ("",)
        lanes[place] = first
        for extra in others:
            if lanes[place + 1 : place + 2] == [extra]:
                yield _meeting(len(lanes), place), None
            else:
                yield _leaving(len(lanes), place), None
                lanes.insert(place + 1, extra)
        if not first:
            del lanes[place]


def _joining(lanes: int, place: int, other: int) -> str:
    """Draw a lane that ends in one further left."""
    text = ""
    for number in range(other):
        text += "|" + ("_" if place <= number < other - 1 else " ")
    rest = " ".join("|" for _ in range(other + 1, lanes))
    return f"{text[:-1]}/ {rest}".rstrip()


def _leaving(lanes: int, place: int) -> str:
    """Draw a lane that begins to the right of another."""
    left = " ".join("|" for _ in range(place + 1))
    rest = " ".join("\\" for _ in range(place + 1, lanes))
    return f"{left}\\ {rest}".rstrip()


def _meeting(lanes: int, place: int) -> str:
    """Draw a line to the lane on the right."""
    left = " ".join("|" for _ in range(place + 1))
    right = " ".join("|" for _ in range(place + 1, lanes))
    return f"{left}\\{right}"
