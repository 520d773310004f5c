"""Recursive descent shared by both parsers: a cursor over tokens, errors, recovery.

A production that cannot go on calls `fail`, which records the diagnostic and raises `Fault`;
the nearest enclosing list of declarations, members or clauses catches it and skips ahead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, TypeVar

from omnigraph.lang import tokens as tk
from omnigraph.lang.codes import Code
from omnigraph.lang.diagnostics import MAX_DIAGNOSTICS, DiagnosticReport, quote
from omnigraph.lang.source import Name, TextSpan, TypeExpr
from omnigraph.lang.tokens import Token
from omnigraph.types import BASE_NAMES, MAX_VECTOR_DIMENSION, Scalar

MAX_NESTING = 100
"""How deep blocks, groups and calls may nest."""

MAX_SKIP = 100_000
"""How many tokens are skipped in search of the next declaration, member or clause."""

I64_MIN, I64_MAX = -(2**63), 2**63 - 1

_BRACES = {"{": 1, "}": -1}
_MAX_DIGITS = 400
_ItemT = TypeVar("_ItemT")


class ParseFailure(Exception):
    """The current production cannot be read."""


class ParseAborted(Exception):
    """Raised to stop parsing: more errors would not help."""


class BaseParser(ABC):
    """Tokens with a place in them, and the productions both languages use."""

    def __init__(self, report: DiagnosticReport, syntax: Code, too_deep: Code) -> None:
        self.report = report
        self.syntax = syntax
        self.too_deep = too_deep
        self.depth = 0
        self.braces = 0
        """How many `{` were read and not closed."""
        self._rest = tk.tokenize(report, syntax)
        self._ahead: deque[Token] = deque()
        self.token = next(self._rest)
        """The token at the cursor."""
        self.previous = self.token
        """The token just read."""

    # --- looking -------------------------------------------------------------------------------

    def peek(self, ahead: int = 1) -> Token:
        """Return a later token, or the END token."""
        while len(self._ahead) < ahead:
            self._ahead.append(next(self._rest))
        return self._ahead[ahead - 1]

    def at(self, kind: str) -> bool:
        """Return whether the cursor is at a token of this kind."""
        return self.token.kind == kind

    def at_word(self, *words: str) -> bool:
        """Return whether the cursor is at one of these words."""
        return self.token.kind == tk.NAME and self.token.text in words

    def before_word(self, *words: str) -> bool:
        """Return whether one of these words follows the token at the cursor."""
        following = self.peek()
        return following.kind == tk.NAME and following.text in words

    def span_from(self, start: Token) -> TextSpan:
        """Return the range from `start` to the token just read."""
        return TextSpan(start.span.start, max(start.span.end, self.previous.span.end))

    # --- moving --------------------------------------------------------------------------------

    def advance(self) -> Token:
        """Read the token at the cursor."""
        token = self.token
        if token.kind != tk.END:
            self.previous = token
            self.braces += _BRACES.get(token.kind, 0)
            self.token = self._ahead.popleft() if self._ahead else next(self._rest)
        return token

    def accept(self, kind: str) -> Token | None:
        """Read the token if it is of this kind."""
        return self.advance() if self.at(kind) else None

    def accept_word(self, word: str) -> Token | None:
        """Read the token if it is this word."""
        return self.advance() if self.at_word(word) else None

    def expect(self, kind: str, where: str, *, hint: str | None = None) -> Token:
        """Read a token of this kind or fail."""
        if self.at(kind):
            return self.advance()
        named = kind in (tk.NAME, tk.TYPE_NAME, tk.VARIABLE, tk.INT, tk.STRING)
        article = "an" if kind[0] in "aeiou" else "a"
        self.fail_expected(f"{article} {kind}" if named else f"`{kind}`", where, hint=hint)

    def expect_word(self, word: str, where: str, *, hint: str | None = None) -> Token:
        """Read this word or fail."""
        if self.at_word(word):
            return self.advance()
        self.fail_expected(f"`{word}`", where, hint=hint)

    def name(self, where: str) -> Name:
        """Read a lower-case name."""
        token = self.token
        if token.kind == tk.TYPE_NAME:
            lower = token.text[0].lower() + token.text[1:]
            self.fail(
                f"expected a name {where}, found `{quote(token.text)}`",
                hint=f"names start with a lower-case letter: `{quote(lower)}`",
            )
        self.expect(tk.NAME, where)
        return Name(token.text, span=token.span)

    def type_name(self, where: str) -> Name:
        """Read the name of a node type, edge type or interface."""
        token = self.token
        if token.kind == tk.NAME:
            bare = token.text.lstrip("_0123456789")
            upper = f": `{quote(bare[0].upper() + bare[1:])}`" if bare else ""
            self.fail(
                f"expected a type name {where}, found `{quote(token.text)}`",
                hint=f"type names start with an upper-case letter{upper}",
            )
        self.expect(tk.TYPE_NAME, where)
        return Name(token.text, span=token.span)

    # --- failing -------------------------------------------------------------------------------

    def fail(
        self, message: str, *, span: TextSpan | None = None, hint: str | None = None
    ) -> NoReturn:
        """Record a syntax error at the cursor (or at `span`) and give up the production."""
        place = span or self.token.span
        # Where an unclosed bracket swallowed the rest, that was reported already.
        if not (self.at(tk.END) and self.token.span.start < self.token.span.end):
            self.report.add(self.syntax, message, place, hint=hint)
        if self.report.full:
            self.abort("too many errors; the rest is not shown")
        raise ParseFailure

    def fail_expected(self, expected: str, where: str, *, hint: str | None = None) -> NoReturn:
        """Fail by saying what should have come."""
        self.fail(f"expected {expected} {where}, found {self.found()}", hint=hint)

    def found(self) -> str:
        """Describe the token at the cursor."""
        token = self.token
        if token.kind == tk.END:
            return tk.END
        return f"`${token.text}`" if token.kind == tk.VARIABLE else f"`{quote(token.text)}`"

    def abort(self, message: str) -> NoReturn:
        """Record why reading stops for good."""
        del self.report.diagnostics[MAX_DIAGNOSTICS - 1 :]
        self.report.add(self.too_deep, message, self.token.span)
        raise ParseAborted

    def enter(self) -> None:
        """Go one level deeper; fail above the nesting limit."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.abort(f"nesting is deeper than {MAX_NESTING} levels")

    def leave(self) -> None:
        """Come back from `enter`."""
        self.depth -= 1

    # --- recovering ----------------------------------------------------------------------------

    @abstractmethod
    def at_declaration(self) -> bool:
        """Return whether a declaration starts here."""

    @abstractmethod
    def at_attempt(self) -> bool:
        """Return whether a declaration starts here, or a line that was meant as one."""

    def declarations(self, declaration: Callable[[], _ItemT]) -> tuple[_ItemT, ...]:
        """`{ declaration } EOF`; a declaration that cannot be read is skipped."""
        declarations: list[_ItemT] = []
        with suppress(ParseAborted):
            while not self.at(tk.END):
                try:
                    declarations.append(declaration())
                except ParseFailure:
                    self.skip_to(self.at_attempt)
            # The tokenizer alone may have filled the report.
            if self.report.full:
                self.abort("too many errors; the rest is not shown")
        return tuple(declarations)

    def block_items(
        self, item: Callable[[], _ItemT], skip: Callable[[Token], None], what: str, span: TextSpan
    ) -> tuple[tuple[_ItemT, ...], bool]:
        """Read items up to a `}`, and return whether all could be read; others are skipped."""
        level, items, failed = self.depth, list[_ItemT](), False
        while not self.at("}"):
            if self.at(tk.END) or self.at_declaration():
                self.fail(f"{what} is not closed", span=span, hint="close it with `}`")
            start = self.token
            try:
                items.append(item())
            except ParseFailure:
                failed = True
                self.depth = level
                skip(start)
        return tuple(items), not failed

    def starts_line(self) -> bool:
        """Return whether there is a line break before the token at the cursor."""
        text = self.report.source.text
        return text.find("\n", self.previous.span.end, self.token.span.start) >= 0

    def skip_to(self, stop: Callable[[], bool]) -> None:
        """Skip to the next place that `stop` likes, or to the end; not for ever."""
        for _ in range(MAX_SKIP):
            if self.at(tk.END) or stop():
                return
            self.advance()
        self.abort("this is too long to look for the next readable part; the rest is not shown")

    def skip_within_block(self, failed: Token, braces: int, at_item: Callable[[], bool]) -> None:
        """Skip to the next line of the block that starts an item, to its `}` or out of it.

        `failed` is where the item starts that cannot be read, `braces` how many braces are open
        in the block outside of its items.
        """

        def at_next_item() -> bool:
            return self.token is not failed and self.starts_line() and at_item()

        def stop() -> bool:
            if self.at_declaration():
                return True
            return self.braces <= braces and (self.at("}") or at_next_item())

        self.skip_to(stop)

    # --- shared productions --------------------------------------------------------------------

    def separated(
        self, item: Callable[[], _ItemT], joint: str = ",", *, until: str | None = None
    ) -> tuple[_ItemT, ...]:
        """Read `item { joint item }`, or nothing where the cursor is at `until`."""
        if until is not None and self.at(until):
            return ()
        items = [item()]
        while self.accept(joint) or self.accept_word(joint):
            items.append(item())
        return tuple(items)

    def string(self, where: str) -> str:
        """Read a string literal and decode it."""
        return tk.decode_string(self.report, self.syntax, self.expect(tk.STRING, where))

    def integer(self, where: str, *, high: int = I64_MAX) -> int:
        """Read an unsigned integer not above `high`."""
        token = self.expect(tk.INT, where)
        return self.to_int(token, negative=False, high=high)

    def to_int(self, token: Token, *, negative: bool, low: int = 0, high: int = I64_MAX) -> int:
        """Return the value of an INT token within bounds."""
        digits = token.text.lstrip("0") or "0"
        value = int(digits) if len(digits) <= 20 else 2**70
        value = -value if negative else value
        if not low <= value <= high:
            self.fail(
                f"number {quote(token.text)} is out of range ({low}..{high})", span=token.span
            )
        return value

    def to_float(self, token: Token, *, negative: bool) -> float:
        """Return the value of an INT or FLOAT token as a finite float."""
        value = float(token.text) if len(token.text) <= _MAX_DIGITS else float("inf")
        if value == float("inf"):
            self.fail(f"number {quote(token.text)} is out of range", span=token.span)
        return -value if negative else value

    def type_expr(self, *, enums: bool) -> TypeExpr:
        """Read `( "[" Base "]" | enum | "Vector" "(" Int ")" | Base ) [ "?" ]`."""
        start = self.token
        is_list = self.accept("[") is not None
        values: tuple[Name, ...] = ()
        dimension = None
        if enums and not is_list and self.at_word("enum"):
            base = self.advance().text
            self.expect("(", "after `enum`")
            values = self.separated(self._enum_value)
            self.expect(")", "to close the enum")
        else:
            base = self._base_name(is_list=is_list)
            if base == Scalar.VECTOR:
                self.expect("(", "after `Vector`")
                number = self.expect(tk.INT, "as the vector dimension")
                dimension = self.to_int(number, negative=False, low=1, high=MAX_VECTOR_DIMENSION)
                self.expect(")", "after the vector dimension")
        if is_list:
            self.expect("]", "to close the list type")
        nullable = self.accept("?") is not None
        return TypeExpr(base, is_list, nullable, values, dimension, span=self.span_from(start))

    def _base_name(self, *, is_list: bool) -> str:
        token = self.token
        allowed = BASE_NAMES if is_list else (*BASE_NAMES, str(Scalar.VECTOR))
        if token.kind in (tk.NAME, tk.TYPE_NAME) and token.text in allowed:
            return self.advance().text
        if is_list and (self.at_word("enum") or token.text == Scalar.VECTOR):
            self.fail(
                f"a list of {token.text} is not supported", hint="list elements are base types"
            )
        spellings = {name.lower(): name for name in allowed} | _FOREIGN_TYPES
        meant = spellings.get(token.text.lower())
        hint = f"did you mean `{meant}`?" if meant else f"types: {', '.join(allowed)}"
        self.fail_expected("a type", "here", hint=hint)

    def _enum_value(self) -> Name:
        """Read `[A-Za-z0-9_-]+`, which the tokenizer may have cut into several tokens."""
        start = self.token
        text = ""
        while self.token.kind in _ENUM_PARTS:
            if text and self.previous.span.end != self.token.span.start:
                break
            text += self.advance().text
        if not text:
            hint = "enum values are written without quotes" if self.at(tk.STRING) else None
            self.fail_expected("an enum value", "here", hint=hint)
        return Name(text, span=self.span_from(start))


_ENUM_PARTS = frozenset({tk.NAME, tk.TYPE_NAME, tk.INT, "-"})
_FOREIGN_TYPES = {
    "int": "I64",
    "integer": "I64",
    "long": "I64",
    "float": "F64",
    "double": "F64",
    "number": "F64",
    "text": "String",
    "str": "String",
    "boolean": "Bool",
    "timestamp": "DateTime",
    "bytes": "Blob",
}
