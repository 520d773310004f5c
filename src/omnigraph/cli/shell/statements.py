"""Find where statements end, in a script and while one is being typed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from omnigraph.lang.query_parser import CHANGES

EXPLAIN = ".explain"
"""The one dot command whose argument may have several lines."""

_TOKENS = re.compile(
    r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|(?P<open>"|/\*)|(?P<sign>[{}()\[\];])', re.DOTALL
)
_FIRST_WORD = re.compile(r"\s*(\.?\w*)")
_EXPLAIN = re.compile(rf"\s*{re.escape(EXPLAIN)}(?:\s+analyze)?\b")


class _Scan(NamedTuple):
    """Where the `;` between statements are, and whether the text after the last one is open."""

    ends: list[int]
    is_open: bool


def _scan(text: str) -> _Scan:
    ends: list[int] = []
    depth = 0
    for match in _TOKENS.finditer(text):
        if match["open"]:
            return _Scan(ends, True)
        match match["sign"]:
            case "{" | "(" | "[":
                depth += 1
            case "}" | ")" | "]":
                depth -= 1
            case ";" if depth <= 0:
                ends.append(match.start())
                depth = 0
    return _Scan(ends, depth > 0)


def first_word(text: str) -> str:
    """Return the word a statement begins with.

    >>> first_word("  match { $p: Port }")
    'match'
    """
    found = _FIRST_WORD.match(text)
    return found[1] if found else ""


def split_statements(text: str) -> list[str]:
    """Return the statements of a text: they end at `;`, dot commands at the end of their line.

    >>> split_statements('.time now\\n insert Port { code: ";" }; .types')
    ['.time now', 'insert Port { code: ";" }', '.types']
    """
    statements = []
    rest = text.strip()
    while rest:
        if _is_line_command(rest):
            statement, _, rest = rest.partition("\n")
        else:
            end = next(iter(_scan(rest).ends), len(rest))
            statement, rest = rest[:end], rest[end + 1 :]
        statements.append(statement.strip().rstrip(";").rstrip())
        rest = rest.strip()
    return [statement for statement in statements if statement]


def is_finished(text: str) -> bool:
    """Return whether Enter runs a text that is being typed, or begins its next line.

    A statement on one line runs when its brackets are closed, a declared query when its body is;
    what has several lines runs at `;` or after an empty line.

    >>> is_finished("match { $p: Port } return { $p.code }")
    True
    >>> is_finished("match { $p: Port }")
    False
    """
    statement = text.strip()
    if not statement or _is_line_command(statement):
        return True
    if _scan(statement).is_open:
        return False
    lines = text.rstrip(" \t").split("\n")
    if statement.endswith(";") or not lines[-1]:
        return True
    statement = _EXPLAIN.sub("", statement).strip()
    if first_word(statement) == "query":
        return "{" in statement
    return len(lines) == 1 and not (first_word(statement) == "match" and "return" not in statement)


def script_statements(lines: Iterable[str]) -> Iterator[str]:
    """Yield the statements of a script.

    They end at `;`, at an empty line, and before a line that begins another statement.
    """
    held = ""
    for line in lines:
        if held and not _scan(held).is_open and (not line.strip() or _begins(held, line)):
            yield from split_statements(held)
            held = ""
        if held or line.strip():
            held += line.rstrip("\n") + "\n"
    yield from split_statements(held)


def _begins(held: str, line: str) -> bool:
    """Return whether a line begins another statement than the one before it."""
    word = first_word(line)
    if _is_line_command(held) or word.startswith("."):
        return True
    return word in ("match", "query", *CHANGES) and bool(_EXPLAIN.sub("", held).strip())


def _is_line_command(text: str) -> bool:
    return text.lstrip().startswith(".") and not _EXPLAIN.match(text)
