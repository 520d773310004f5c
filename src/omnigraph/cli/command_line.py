"""Read and rewrite the words of a command line, for errors that show the corrected one.

A line is the words after the name of the program, in the order they were given.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

ADDRESS_OPTIONS = ("--store", "--uri")
"""The options that are alternatives to the argument GRAPH."""
EXAMPLE_ADDRESS = "./my-graph"
STORE_VARIABLE = "OMNIGRAPH_STORE"
"""The variable with the address of the graph."""


def is_address(text: str) -> bool:
    """Return whether a word is written like the address of a graph: a path or a URI."""
    return "/" in text or "\\" in text or text in (".", "..")


def given_line() -> list[str]:
    """Return the words of the running command line."""
    return sys.argv[1:]


def line_text(line: Sequence[str]) -> str:
    """Return a line as it is typed, with the name of the program."""
    return shlex.join(("omnigraph", *line))


def with_graph(line: Sequence[str], command: str, address: str = EXAMPLE_ADDRESS) -> list[str]:
    """Return a line with an address as the first argument of its command."""
    place = 0
    for word in command.split():
        if word not in line[place:]:
            return [*command.split(), address]
        place = line.index(word, place) + 1
    return [*line[:place], address, *line[place:]]


def without_option(line: Sequence[str], *names: str) -> list[str]:
    """Return a line without options that have a value."""
    kept: list[str] = []
    words = iter(line)
    for word in words:
        if word in names:
            next(words, None)
        elif word.partition("=")[0] not in names:
            kept.append(word)
    return kept


def with_server(line: Sequence[str], url: str) -> list[str]:
    """Return a line in which the address of a server is the value of `--server`."""
    for number, word in enumerate(line):
        option, equals, value = word.partition("=")
        if equals and option in ADDRESS_OPTIONS and value == url:
            return [*line[:number], f"--server={url}", *line[number + 1 :]]
        if word == url:
            before = line[:number]
            if before and before[-1] in ADDRESS_OPTIONS:
                before = before[:-1]
            return [*before, "--server", *line[number:]]
    return [*line, "--server", url]
