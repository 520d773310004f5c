"""Parse `.pg` text into a `SchemaTree`, reporting every syntax error."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from omnigraph.lang import tokens as tk
from omnigraph.lang.base_parser import I64_MAX, I64_MIN, BaseParser
from omnigraph.lang.codes import Code
from omnigraph.lang.diagnostics import DiagnosticReport, SchemaError, quote, report_for_text
from omnigraph.lang.schema_tree import (
    AnnotationArgument,
    AnnotationDecl,
    ArgumentKind,
    CardinalityDecl,
    ConstraintArgument,
    ConstraintDecl,
    Declaration,
    EdgeDecl,
    InterfaceDecl,
    Member,
    NamedArgument,
    NodeDecl,
    PropertyDecl,
    RangeBounds,
    SchemaTree,
)
from omnigraph.lang.source import Name
from omnigraph.lang.tokens import Token

CONSTRAINT_WORDS = ("key", "unique", "index", "range", "check")

_KEYWORDS = ("node", "edge", "interface")
_GLUED_KEYWORD = re.compile(r"(node|edge|interface)([A-Z]\w*)")
_NUMBER_STARTS = ("-", tk.INT, tk.FLOAT)
_MAX_CARDINALITY = 2**32 - 1
_MemberT = TypeVar("_MemberT", bound=Member)


def parse_schema(text: str, name: str = "<schema>") -> SchemaTree:
    """Read schema text; raise SchemaError with every syntax error.

    >>> parse_schema("node Port { code: String @key }").declarations[0].name.text
    'Port'
    """
    report = report_for_text(text, name, Code.SCHEMA_UNREADABLE)
    tree = read_schema(report)
    report.raise_errors(SchemaError)
    return tree


def read_schema(report: DiagnosticReport) -> SchemaTree:
    """Parse the report's source; errors are added to the report."""
    if report.errors:
        return SchemaTree()
    return _SchemaParser(report).schema()


class _SchemaParser(BaseParser):
    def __init__(self, report: DiagnosticReport) -> None:
        super().__init__(report, Code.SCHEMA_SYNTAX, Code.SCHEMA_TOO_DEEP)

    def schema(self) -> SchemaTree:
        """`{ interface | node | edge } EOF`."""
        return SchemaTree(self.declarations(self._declaration))

    def _declaration(self) -> Declaration:
        if self.at_word("interface"):
            return self._interface()
        if self.at_word("node"):
            return self._node()
        if self.at_word("edge"):
            return self._edge()
        glued = _GLUED_KEYWORD.fullmatch(self.token.text) if self.at(tk.NAME) else None
        hint = f"write `{glued[1]} {quote(glued[2])}`" if glued else None
        self.fail_expected("`node`, `edge` or `interface`", "here", hint=hint)

    def _interface(self) -> InterfaceDecl:
        """`"interface" TypeName "{" { property } "}"`."""
        start = self.advance()
        name = self.type_name("after `interface`")
        if self.at("@"):
            self.fail("an interface takes no annotations")
        members = self._body(name, self._interface_member)
        return InterfaceDecl(name, members, span=self.span_from(start))

    def _node(self) -> NodeDecl:
        """`"node" TypeName { annotation } [ implements { annotation } ] body`.

        `implements = "implements" TypeName { "," TypeName }`.
        """
        start = self.advance()
        name = self.type_name("after `node`")
        annotations = self._header_annotations()
        implements: list[Name] = []
        if self.accept_word("implements"):
            implements.append(self.type_name("after `implements`"))
            while self.accept(","):
                implements.append(self.type_name("after `,`"))
            annotations += self._header_annotations()
        if not self.at("{"):
            self.fail_expected(
                "`{`",
                f"to open the body of `{name}`",
                hint="a node has a body, even if empty: `{ }`",
            )
        members = self._body(name, self._member)
        return NodeDecl(name, annotations, tuple(implements), members, span=self.span_from(start))

    def _edge(self) -> EdgeDecl:
        """`"edge" TypeName ":" TypeName "->" TypeName [ card ] { annotation | key } [ body ]`."""
        start = self.advance()
        name = self.type_name("after `edge`")
        self.expect(":", f"after `edge {name}`")
        src = self.type_name("as the type the edge starts at")
        self.expect("->", "between the two endpoint types")
        dst = self.type_name("as the type the edge ends at")
        cardinality = self._cardinality()
        keys: list[ConstraintDecl] = []
        annotations = self._header_annotations(keys)
        members = self._body(name, self._member) if self.at("{") else ()
        return EdgeDecl(
            name,
            src,
            dst,
            cardinality,
            annotations,
            members,
            tuple(keys),
            span=self.span_from(start),
        )

    def _cardinality(self) -> CardinalityDecl | None:
        """`"@card" "(" Int ".." [ Int ] ")"`."""
        if not (self.at("@") and self.before_word("card")):
            return None
        start = self.advance()
        self.advance()
        self.expect("(", "after `@card`")
        minimum = self.integer("as the minimum", high=_MAX_CARDINALITY)
        self.expect("..", "between minimum and maximum")
        maximum = self.integer("as the maximum", high=_MAX_CARDINALITY) if self.at(tk.INT) else None
        self.expect(")", "to close `@card`")
        return CardinalityDecl(minimum, maximum, span=self.span_from(start))

    def _header_annotations(
        self, keys: list[ConstraintDecl] | None = None
    ) -> tuple[AnnotationDecl, ...]:
        """`{ annotation }`; in the header of an edge also its key, which is added to `keys`."""
        annotations: list[AnnotationDecl] = []
        while self.at("@"):
            if self._at_constraint():
                if keys is not None and self.before_word("key"):
                    keys.append(self._constraint())
                    continue
                self.fail(
                    f"`@{self.peek().text}(…)` is not allowed in a header",
                    hint="write it inside the body",
                )
            if self.before_word("card"):
                self.fail("write `@card` right after the target type of the edge")
            annotations.append(self._annotation())
        return tuple(annotations)

    # --- bodies --------------------------------------------------------------------------------

    def _body(self, owner: Name, member: Callable[[], _MemberT]) -> tuple[_MemberT, ...]:
        """`"{" { member } "}"`; a member that cannot be read is skipped."""
        self.expect("{", f"to open the body of `{owner}`")
        braces = self.braces

        def skip(failed: Token) -> None:
            self.skip_within_block(failed, braces, self._at_member)

        members, _ = self.block_items(member, skip, f"the body of `{owner}`", owner.span)
        self.advance()
        return members

    def _interface_member(self) -> PropertyDecl:
        if self._at_constraint():
            self.fail(
                "an interface can have only properties",
                hint="put the constraint into the nodes that implement it",
            )
        return self._property()

    def _member(self) -> Member:
        return self._constraint() if self._at_constraint() else self._property()

    def _property(self) -> PropertyDecl:
        """`PropName ":" type { annotation }`."""
        start = self.token
        if self.at(","):
            self.fail("unexpected `,`", hint="properties are not separated by commas")
        if self.at("@"):
            self.fail("write an annotation after its property")
        name = self.name("of a property")
        self.expect(":", f"after the property name `{name}`")
        type_ = self.type_expr(enums=True)
        annotations: list[AnnotationDecl] = []
        while self.at("@") and not self._at_constraint():
            annotations.append(self._annotation())
        return PropertyDecl(name, type_, tuple(annotations), span=self.span_from(start))

    def _annotation(self) -> AnnotationDecl:
        """`"@" AnnName [ "(" aarg { "," kwarg } ")" ]`; of `@index` all arguments have names."""
        start = self.advance()
        name = self.name("after `@`")
        value: AnnotationArgument | None = None
        named: list[NamedArgument] = []
        if self.accept("("):
            if name.text in CONSTRAINT_WORDS:
                named.append(self._named_argument())
            else:
                value = self._argument()
            while self.accept(","):
                named.append(self._named_argument())
            self.expect(")", f"to close `@{name}`")
        return AnnotationDecl(name, value, tuple(named), span=self.span_from(start))

    def _named_argument(self) -> NamedArgument:
        """`PropName "=" literal`."""
        key = self.name("of a named argument")
        self.expect("=", f"after `{key}`")
        return NamedArgument(key, self._argument(names=False))

    def _argument(self, *, names: bool = True) -> AnnotationArgument:
        """`String | Float | Int | Bool | PropName`; numbers may be negative."""
        start = self.token
        if self.at(tk.STRING):
            return AnnotationArgument(ArgumentKind.STRING, self.string("here"), span=start.span)
        if self.token.kind in _NUMBER_STARTS:
            return self._number_argument(start, *self._signed())
        if self.at_word("true", "false"):
            return AnnotationArgument(ArgumentKind.BOOL, self.advance().text, span=start.span)
        if names and self.at(tk.NAME):
            if self.peek().kind == "=":
                self.fail("the first argument has no name")
            return AnnotationArgument(ArgumentKind.NAME, self.advance().text, span=start.span)
        hint = f'write `"{quote(self.token.text)}"`' if self.at(tk.TYPE_NAME) else None
        self.fail_expected("a value", "here", hint=hint)

    def _constraint(self) -> ConstraintDecl:
        """`"@" word "(" carg { "," carg } ")"`."""
        start = self.advance()
        word = self.advance()
        self.advance()
        arguments = self.separated(self._constraint_argument)
        self.expect(")", f"to close `@{word.text}`")
        return ConstraintDecl(
            Name(word.text, span=word.span), arguments, span=self.span_from(start)
        )

    def _constraint_argument(self) -> ConstraintArgument:
        """`rangeBound | literal | PropName | kwarg`."""
        if self.at(tk.NAME) and self.peek().kind == "=":
            return self._named_argument()
        if self.at(tk.NAME) and not self.at_word("true", "false"):
            token = self.advance()
            return Name(token.text, span=token.span)
        if self.at(tk.STRING) or self.at(tk.NAME):
            return self._argument()
        start = self.token
        low: float | None = None
        if self.token.kind in _NUMBER_STARTS:
            token, negative = self._signed()
            if not self.at(".."):
                return self._number_argument(start, token, negative)
            low = self._bound(token, negative)
        if not self.accept(".."):
            self.fail_expected("a property or a value", "here")
        has_high = low is None or self.token.kind in _NUMBER_STARTS
        high = self._bound(*self._signed()) if has_high else None
        return RangeBounds(low, high, span=self.span_from(start))

    def _signed(self) -> tuple[Token, bool]:
        """`[ "-" ] ( Int | Float )`; return the number and whether it is negative."""
        negative = self.accept("-") is not None
        if not (self.at(tk.INT) or self.at(tk.FLOAT)):
            self.fail_expected("a number", "here")
        return self.advance(), negative

    def _number_argument(self, start: Token, token: Token, negative: bool) -> AnnotationArgument:
        kind = ArgumentKind.INT if token.kind == tk.INT else ArgumentKind.FLOAT
        return AnnotationArgument(
            kind, ("-" if negative else "") + token.text, span=self.span_from(start)
        )

    def _bound(self, token: Token, negative: bool) -> float:
        """Return the value of a range bound; what does not fit 64 bits becomes a float."""
        if token.kind == tk.INT and _fits_i64(token, negative=negative):
            return self.to_int(token, negative=negative, low=I64_MIN)
        return self.to_float(token, negative=negative)

    # --- looking -------------------------------------------------------------------------------

    def _at_constraint(self) -> bool:
        """Return whether a constraint of the type starts here; `@index(metric="l2")` is none."""
        if not (self.at("@") and self.before_word(*CONSTRAINT_WORDS) and self.peek(2).kind == "("):
            return False
        return self.peek().text != "index" or self.peek(4).kind != "="

    def _at_member(self) -> bool:
        return self._at_constraint() or (self.at(tk.NAME) and self.peek().kind == ":")

    def at_declaration(self) -> bool:
        """Return whether a declaration starts here."""
        return self.at_word(*_KEYWORDS) and self.peek().kind == tk.TYPE_NAME

    def at_attempt(self) -> bool:
        """Return whether a declaration starts here, or a line that was meant as one."""
        if self.at_declaration():
            return True
        return self.at_word(*_KEYWORDS) and self.starts_line() and self.peek().kind == tk.NAME


def _fits_i64(token: Token, *, negative: bool) -> bool:
    digits = token.text.lstrip("0") or "0"
    return len(digits) <= 20 and int(digits) <= I64_MAX + (1 if negative else 0)
