"""Completion of queries: the words that may follow at a position of an unfinished text.

The text need not parse. The tokens before the position decide what is expected, and the types of
variables are read off the patterns that are written so far.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import Any

from omnigraph.catalog.model import Catalog, EdgeType, InterfaceType, NodeType
from omnigraph.lang import Code, DiagnosticReport, SourceText
from omnigraph.lang.tokens import END, NAME, TYPE_NAME, VARIABLE, Token, tokenize
from omnigraph.plan.functions import FUNCTIONS, FunctionKind

_WORD_AT_END = re.compile(r"\$?[A-Za-z0-9_]*\Z")
_CLAUSES = ("match", "return", "order", "limit", "offset")
_IN_MATCH = ("not", "exists", "optional")
_STATEMENTS = ("query", "insert", "update", "delete")
_OPERATORS = ("contains", "starts_with", "in", "is")


class CompletionKind(StrEnum):
    """What a completion is."""

    KEYWORD = "keyword"
    VARIABLE = "variable"
    TYPE = "type"
    EDGE = "edge"
    PROPERTY = "property"
    FUNCTION = "function"


@dataclass(frozen=True, slots=True)
class CompletionItem:
    """A word that may stand at the position, with its type or signature, and what it is for."""

    label: str
    kind: CompletionKind
    detail: str | None = None
    about: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "label": self.label,
            "kind": str(self.kind),
            "detail": self.detail,
            "about": self.about,
        }


@dataclass(frozen=True, slots=True)
class Completion:
    """The words for the text from `start` up to the position."""

    start: int
    items: tuple[CompletionItem, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {"start": self.start, "items": [item.to_json() for item in self.items]}


Typed = NodeType | EdgeType | InterfaceType


def complete_query(text: str, position: int, catalog: Catalog) -> Completion:
    """Return what may stand at a position of a query text, best by name."""
    before = text[:position]
    match = _WORD_AT_END.search(before)
    start = match.start() if match else len(before)
    tokens = _tokens(before[:start])
    types = _variable_types([*tokens, *_tokens(text[position:])], catalog)
    return Completion(start, tuple(_expected(tokens, types, catalog)))


def _tokens(text: str) -> list[Token]:
    report = DiagnosticReport(SourceText(text, "<query>"))
    return list(takewhile(lambda t: t.kind != END, tokenize(report, Code.QUERY_UNREADABLE)))


def _variable_types(tokens: list[Token], catalog: Catalog) -> dict[str, Typed | None]:
    """Return the variables of a text, each with its type where a pattern shows it."""
    types: dict[str, Typed | None] = {}
    for index, token in enumerate(tokens):
        if token.kind != VARIABLE:
            continue
        types.setdefault(token.text, None)
        following = tokens[index + 1 : index + 3]
        kinds = [t.kind for t in following]
        if kinds == [":", TYPE_NAME]:
            types[token.text] = _node(following[1].text, catalog) or types[token.text]
        elif kinds == [":", NAME] and (edge := catalog.edge(following[1].text)) is not None:
            types[token.text] = edge
            _set_ends(tokens, (index - 1, index + 3), edge, types, catalog)
        elif kinds == [NAME, VARIABLE] and (edge := catalog.edge(following[0].text)) is not None:
            _set_ends(tokens, (index, index + 2), edge, types, catalog)
    return types


def _set_ends(
    tokens: list[Token],
    places: tuple[int, int],
    edge: EdgeType,
    types: dict[str, Typed | None],
    catalog: Catalog,
) -> None:
    """Assign the ends of an edge to the variables around it that have no type yet."""
    names = [tokens[p].text if 0 <= p < len(tokens) else "" for p in places]
    ends = [edge.src, edge.dst]
    known = types.get(names[0])
    if known is not None and known.name == edge.dst != edge.src:
        ends.reverse()
    for name, end in zip(names, ends, strict=True):
        if name and types.get(name) is None:
            types[name] = _node(end, catalog)


def _node(name: str, catalog: Catalog) -> Typed | None:
    return catalog.nodes.get(name) or catalog.interfaces.get(name)


def _expected(
    tokens: list[Token], types: dict[str, Typed | None], catalog: Catalog
) -> Iterator[CompletionItem]:
    kinds = [token.kind for token in tokens[-3:]]
    last = tokens[-1] if tokens else None
    if kinds[-2:] == [VARIABLE, "."]:
        yield from _properties([types.get(tokens[-2].text)])
    elif kinds[-2:] == [VARIABLE, ":"]:
        if kinds == [VARIABLE, VARIABLE, ":"]:
            yield from _edges(types.get(tokens[-3].text), catalog)
        else:
            yield from _types([*catalog.nodes.values(), *catalog.interfaces.values()])
    elif last is not None and last.kind == NAME and last.text in ("insert", "update", "delete"):
        yield from _types([*catalog.nodes.values(), *catalog.edges.values()])
    elif (braced := _braced_type(tokens, catalog)) is not None:
        yield from _properties([braced])
    elif last is not None and last.kind == VARIABLE and _in_match(tokens):
        yield from _edges(types.get(last.text), catalog)
    else:
        yield from _words(tokens, types)


def _braced_type(tokens: list[Token], catalog: Catalog) -> Typed | None:
    """Return the type whose properties are listed in the braces around the end of a text."""
    depth = 0
    for index in range(len(tokens) - 1, -1, -1):
        kind = tokens[index].kind
        depth += (kind == "}") - (kind == "{")
        if depth < 0:
            at = index - 2 if tokens[index - 1].text == "set" else index - 1
            named = at >= 0 and tokens[at].kind == TYPE_NAME
            expects_name = tokens[-1].kind in ("{", ",") or _ends_value(tokens[index:])
            name = tokens[at].text
            found = (_node(name, catalog) or catalog.edges.get(name)) if named else None
            return found if expects_name else None
    return None


def _ends_value(tokens: list[Token]) -> bool:
    """Return whether a value has just ended, so that a name may follow."""
    return len(tokens) > 2 and tokens[-2].kind == ":"


def _in_match(tokens: list[Token]) -> bool:
    words = [t.text for t in tokens if t.kind == NAME and t.text in ("match", "return")]
    return words[-1:] == ["match"]


def _properties(types: Iterable[Typed | None]) -> Iterator[CompletionItem]:
    for type_ in types:
        if type_ is None:
            continue
        for name, property_ in type_.properties.items():
            about = next((a.value for a in property_.annotations if a.name == "description"), None)
            yield CompletionItem(name, CompletionKind.PROPERTY, str(property_.type), about)
        yield CompletionItem("id", CompletionKind.PROPERTY, "String", "the ID of the entity")


def _types(types: Iterable[Typed]) -> Iterator[CompletionItem]:
    for type_ in sorted(types, key=lambda t: t.name):
        annotations = () if isinstance(type_, InterfaceType) else type_.annotations
        about = next((a.value for a in annotations if a.name == "description"), None)
        kind = type(type_).__name__.removesuffix("Type").lower()
        yield CompletionItem(type_.name, CompletionKind.TYPE, kind, about)


def _edges(start: Typed | None, catalog: Catalog) -> Iterator[CompletionItem]:
    for edge in sorted(catalog.edges.values(), key=lambda e: e.name):
        if isinstance(start, NodeType) and start.name not in (edge.src, edge.dst):
            continue
        word = edge.name[:1].lower() + edge.name[1:]
        yield CompletionItem(word, CompletionKind.EDGE, f"{edge.src} → {edge.dst}")


def _words(tokens: list[Token], types: dict[str, Typed | None]) -> Iterator[CompletionItem]:
    opened = any(token.kind == "{" for token in tokens)
    for name in sorted(types):
        detail = None if (type_ := types[name]) is None else type_.name
        yield CompletionItem(f"${name}", CompletionKind.VARIABLE, detail)
    words = (*_CLAUSES, *(_IN_MATCH if opened else _STATEMENTS), *(_OPERATORS if opened else ()))
    for word in words:
        yield CompletionItem(word, CompletionKind.KEYWORD)
    if opened:
        for function in FUNCTIONS.values():
            if function.name.isidentifier() and function.kind is not FunctionKind.PATH:
                yield CompletionItem(
                    function.name, CompletionKind.FUNCTION, function.signature, function.about
                )
