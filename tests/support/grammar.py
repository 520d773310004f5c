"""Reads the EBNF of the language pages; asks it for sentences, and whether it derives a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from omnigraph.lang import Code, report_for_text
from omnigraph.lang import tokens as tk
from omnigraph.lang.tokens import Token, tokenize

_SYMBOL = re.compile(r'\(\*.*?\*\)|"(?P<quoted>[^"]+)"|(?P<word>\w+)|(?P<sign>[=;|{}()\[\]])', re.S)
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_CLASSES = {
    "Variable": (tk.VARIABLE, ("$a", "$b", "$_", "$c")),
    "Name": (tk.NAME, ("one", "two", "match", "query")),
    "EdgeWord": (tk.NAME, ("knows", "worksAt")),
    "TypeName": (tk.TYPE_NAME, ("Port", "Ship")),
    "Int": (tk.INT, ("1", "2", "70")),
    "Float": (tk.FLOAT, ("0.5", "12.25")),
    "String": (tk.STRING, ('"a b"', '""', r'"\n\""')),
    "EnumValue": ("", ("a", "phase-1", "2b")),
    "NegativeNumber": ("", ("-1", "-0.5")),
}
_ENUM_PARTS = (tk.NAME, tk.TYPE_NAME, tk.INT, "-")
_MAX_REPEATS = 3
_UNKNOWN_HEIGHT = 99


@dataclass(frozen=True, slots=True)
class Quoted:
    """Text that stands for itself."""

    text: str


@dataclass(frozen=True, slots=True)
class Named:
    """A token class, or a production."""

    name: str


@dataclass(frozen=True, slots=True)
class Many:
    """Any number of the part, or one at most."""

    part: Part
    once: bool


@dataclass(frozen=True, slots=True)
class Row:
    """Every part, one after the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the parts."""

    parts: tuple[Part, ...]


Part: TypeAlias = Quoted | Named | Many | Row | Choice


@dataclass(frozen=True, slots=True)
class Grammar:
    """Productions by name; the first one is where a text starts."""

    rules: dict[str, Part]
    start: str
    heights: dict[str, int] = field(default_factory=dict, compare=False, repr=False)

    @property
    def terminals(self) -> set[str]:
        """Return all quoted texts."""
        return {part.text for part in self._leaves() if isinstance(part, Quoted)}

    def undefined(self) -> set[str]:
        """Return names that are neither a production nor a token class."""
        return self._used() - {*self.rules, *_CLASSES}

    def unused(self) -> set[str]:
        """Return productions nothing refers to."""
        return set(self.rules) - self._used() - {self.start}

    def _used(self) -> set[str]:
        return {part.name for part in self._leaves() if isinstance(part, Named)}

    def _leaves(self) -> Iterator[Quoted | Named]:
        for rule in self.rules.values():
            yield from _leaves(rule)

    def sentence(self, random: Random, depth: int = 12) -> str:
        """Return a random text the grammar derives."""
        return " ".join(self._words(self.rules[self.start], random, depth))

    def _words(self, part: Part, random: Random, depth: int) -> Iterator[str]:
        match part:
            case Quoted(text):
                yield text
            case Named(name) if name in self.rules:
                yield from self._words(self.rules[name], random, depth - 1)
            case Named(name):
                yield random.choice(_CLASSES[name][1])
            case Row(parts):
                for inner in parts:
                    yield from self._words(inner, random, depth)
            case Choice(parts):
                least = max(depth, min(map(self._height, parts)))
                open_ = [inner for inner in parts if self._height(inner) <= least]
                yield from self._words(random.choice(open_), random, depth)
            case Many(inner, once):
                most = 0 if depth <= 0 else 1 if once else _MAX_REPEATS
                repeats = min(random.randint(0, most), random.randint(0, most))
                for _ in range(repeats):
                    yield from self._words(inner, random, depth)

    def _height(self, part: Part) -> int:
        """Return how deep a part must nest at least."""
        match part:
            case Quoted() | Many():
                return 0
            case Named(name):
                return self._rule_heights().get(name, 0)
            case Row(parts):
                return max(map(self._height, parts))
            case Choice(parts):
                return min(map(self._height, parts))

    def _rule_heights(self) -> dict[str, int]:
        """Return how deep each production must nest, found by going over all until none changes."""
        if not self.heights:
            self.heights.update(dict.fromkeys(self.rules, _UNKNOWN_HEIGHT))
            changed = True
            while changed:
                found = {name: 1 + self._height(rule) for name, rule in self.rules.items()}
                changed = found != self.heights
                self.heights.update(found)
        return self.heights

    def derives(self, text: str) -> bool:
        """Return whether the grammar derives a text."""
        reader = _Reader(self, tuple(_tokens(text)))
        return len(reader.tokens) in reader.ends(Named(self.start), 0)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Finds where a part may end, for every place; remembers what it found."""

    grammar: Grammar
    tokens: tuple[Token, ...]
    known: dict[tuple[int, int], frozenset[int]] = field(default_factory=dict)

    def ends(self, part: Part, start: int) -> frozenset[int]:
        key = (id(part), start)
        if not isinstance(part, Named):
            if key not in self.known:
                self.known[key] = self._ends(part, start)
            return self.known[key]
        if part.name in self.grammar.rules:
            return self.ends(self.grammar.rules[part.name], start)
        return self._class_ends(part.name, start)

    def _ends(self, part: Part, start: int) -> frozenset[int]:
        match part:
            case Quoted(text):
                here = start < len(self.tokens) and self.tokens[start].text == text
                return frozenset({start + 1}) if here else frozenset()
            case Row(parts):
                reached = frozenset({start})
                for inner in parts:
                    reached = frozenset(e for place in reached for e in self.ends(inner, place))
                return reached
            case Choice(parts):
                return frozenset(e for inner in parts for e in self.ends(inner, start))
            case Many(inner, once):
                found = fresh = frozenset({start})
                while fresh:
                    fresh = frozenset(e for p in fresh for e in self.ends(inner, p)) - found
                    found |= fresh
                    fresh = frozenset() if once else fresh
                return found
        raise AssertionError(part)

    def _class_ends(self, name: str, start: int) -> frozenset[int]:
        end = start
        if name == "EnumValue":
            while end < len(self.tokens) and self.tokens[end].kind in _ENUM_PARTS:
                if end > start and self.tokens[end - 1].span.end != self.tokens[end].span.start:
                    break
                end += 1
        elif name == "NegativeNumber":
            end += 2 * self._is_negative_number(start)
        elif start < len(self.tokens) and self.tokens[start].kind == _CLASSES[name][0]:
            end += 1
        return frozenset({end}) if end > start else frozenset()

    def _is_negative_number(self, start: int) -> bool:
        """Return whether a sign and, with nothing between them, a number start here."""
        pair = self.tokens[start : start + 2]
        if [token.kind for token in pair] not in (["-", tk.INT], ["-", tk.FLOAT]):
            return False
        return pair[0].span.end == pair[1].span.start


def _tokens(text: str) -> Iterator[Token]:
    for token in tokenize(report_for_text(text, "<text>", Code.QUERY_SYNTAX), Code.QUERY_SYNTAX):
        if token.kind == tk.END:
            return
        yield token


def _leaves(part: Part) -> Iterator[Quoted | Named]:
    match part:
        case Quoted() | Named():
            yield part
        case Many(inner, _):
            yield from _leaves(inner)
        case Row(parts) | Choice(parts):
            for inner in parts:
                yield from _leaves(inner)


def read_grammar(text: str) -> Grammar:
    """Read EBNF: `name = parts ;` with quoted texts, `{ }`, `[ ]`, `( )` and `|`."""
    symbols = [m for m in _SYMBOL.finditer(text) if m.lastgroup is not None]
    rules: dict[str, Part] = {}
    place = 0
    while place < len(symbols):
        name = symbols[place]["word"]
        assert name, symbols[place]
        assert name not in rules, name
        assert symbols[place + 1]["sign"] == "=", name
        rules[name], place = _choice(symbols, place + 2, ";")
    return Grammar(rules, next(iter(rules)))


def _choice(symbols: list[re.Match[str]], place: int, closing: str) -> tuple[Part, int]:
    """Read up to a closing sign; return what was read, and the place after the sign."""
    choices: list[list[Part]] = [[]]
    while True:
        symbol = symbols[place]
        place += 1
        sign = symbol["sign"]
        if sign == closing:
            rows = [Row(tuple(row)) if len(row) != 1 else row[0] for row in choices]
            return (rows[0] if len(rows) == 1 else Choice(tuple(rows))), place
        if sign == "|":
            choices.append([])
        elif sign in _CLOSING:
            inner, place = _choice(symbols, place, _CLOSING[sign])
            choices[-1].append(inner if sign == "(" else Many(inner, once=sign == "["))
        elif symbol["quoted"]:
            choices[-1].append(Quoted(symbol["quoted"]))
        else:
            choices[-1].append(Named(symbol["word"]))
