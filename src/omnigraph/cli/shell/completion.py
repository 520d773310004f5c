"""Complete what is typed in a shell: dot commands with their arguments, and queries."""

from __future__ import annotations

import re
from typing import NamedTuple

from omnigraph.cli.shell.session import COMMANDS, SHELL_FORMATS, ShellSession
from omnigraph.cli.shell.statements import EXPLAIN
from omnigraph.errors import OmniError
from omnigraph.lang.query_parser import CHANGES
from omnigraph.plan.completion import complete_query

_ARGUMENT = re.compile(r"\s*(\.\w+)\s+(?:[^\n]*\s)?(\S*)\Z")
_WORD = re.compile(r"\S*\Z")
_FIRST_WORDS = ("match", "query", *CHANGES)


class ShellCompletion(NamedTuple):
    """A word for the text from `start` to the cursor, and what it is."""

    start: int
    word: str
    about: str


def complete(text: str, session: ShellSession) -> list[ShellCompletion]:
    """Return the words that may stand at the end of a text."""
    try:
        return _commands(text, session) if _is_command(text) else _query(text, session)
    except OmniError:
        return []  # typing goes on when storage cannot be read


def _is_command(text: str) -> bool:
    return text.lstrip().startswith(".") and not re.match(rf"\s*{re.escape(EXPLAIN)}\s", text)


def _query(text: str, session: ShellSession) -> list[ShellCompletion]:
    """Complete a query; at the beginning of a text, the words that begin a statement."""
    before = re.match(rf"\s*(?:{re.escape(EXPLAIN)}\s+(?:analyze\s)?)?", text)
    offset = before.end() if before else 0
    query = text[offset:]
    if re.fullmatch(r"\w*", query):
        return [
            ShellCompletion(offset, word, "keyword")
            for word in _FIRST_WORDS
            if word.startswith(query)
        ]
    found = complete_query(query, len(query), session.catalog)
    typed = query[found.start :]
    return [
        ShellCompletion(offset + found.start, item.label, item.detail or str(item.kind))
        for item in found.items
        if item.label.startswith(typed)
    ]


def _commands(text: str, session: ShellSession) -> list[ShellCompletion]:
    argument = _ARGUMENT.match(text)
    if argument is None:
        match = _WORD.search(text)
        words = {name: command.about for name, command in COMMANDS.items()}
        start = match.start() if match else len(text)
    else:
        words = dict.fromkeys(_arguments(argument[1], session), "")
        start = argument.start(2)
    typed = text[start:]
    return [
        ShellCompletion(start, word, about)
        for word, about in words.items()
        if word.startswith(typed)
    ]


def _arguments(command: str, session: ShellSession) -> list[str]:
    """Return the arguments that a command takes."""
    match command:
        case ".branch":
            return session.graph.branches.list()
        case ".time":
            return ["now", *(tag.name for tag in session.graph.tags.list())]
        case ".schema":
            catalog = session.catalog
            return [*catalog.interfaces, *catalog.nodes, *catalog.edges]
        case ".format":
            return list(SHELL_FORMATS)
        case ".rows":
            return ["all"]
        case ".params":
            return ["clear"]
        case ".timing":
            return ["on", "off"]
    return []
