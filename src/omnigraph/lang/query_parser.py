"""Parse `.gq` text into a `QueryTree`, reporting every syntax error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NoReturn, TypeVar

from omnigraph.lang import query_tree as qt
from omnigraph.lang import tokens as tk
from omnigraph.lang.base_parser import I64_MIN, BaseParser, ParseAborted, ParseFailure
from omnigraph.lang.codes import Code
from omnigraph.lang.diagnostics import DiagnosticReport, QueryError, quote, report_for_text
from omnigraph.lang.query_tree import ArithmeticOperator, ComparisonOperator
from omnigraph.lang.source import Name
from omnigraph.lang.tokens import Token
from omnigraph.types import Scalar

_WORDS = {op.value: op for op in (ComparisonOperator.CONTAINS, ComparisonOperator.STARTS_WITH)}
_SYMBOLS = {op.value: op for op in ComparisonOperator if op.value not in _WORDS}
_OPERATOR_WORDS = (*_WORDS, "is", "in")
_ARITHMETIC = {op.value: op for op in ArithmeticOperator}
_SPACED_MINUS = "to subtract, write a space after the `-`"
_QUERY_ANNOTATIONS = ("description", "instruction", "check")
_BLOCKS: Mapping[str, Callable[..., qt.BlockClause]] = {
    "not": qt.NegationClause,
    "exists": qt.ExistsClause,
    "optional": qt.OptionalClause,
}
_TEMPORAL = {"date": Scalar.DATE, "datetime": Scalar.DATE_TIME}
_JOINING_HINTS = {
    "and": "clauses are joined by writing one after the other",
    "or": "write `or` inside parentheses: `( … or … )`",
}
_STARTS_OF_OTHER_LANGUAGES = frozenset({"select", "match", "with", "unwind"})
"""The words that people who know SQL or Cypher begin with."""
_READ_HINT = "a read is written `match { $p: Person  $p knows $q } return { $q.name }`"
CHANGES = ("insert", "update", "delete")
"""The words that a statement of a mutation begins with."""
ANONYMOUS_NAME = "query"
"""What a query without a name is called."""
_U64_MAX = 2**64 - 1
_MAX_HOPS = 2**32 - 1
_ItemT = TypeVar("_ItemT")


def parse_queries(text: str, name: str = "<query>") -> qt.QueryTree:
    """Read query text; raise QueryError with every syntax error.

    >>> tree = parse_queries("query all() { match { $p: Port } return { $p.code } }")
    >>> tree.queries[0].name.text
    'all'
    """
    report = report_for_text(text, name, Code.QUERY_UNREADABLE)
    tree = read_queries(report)
    report.raise_errors(QueryError)
    return tree


def read_queries(report: DiagnosticReport) -> qt.QueryTree:
    """Parse the report's source; errors are added to the report."""
    if report.errors:
        return qt.QueryTree()
    return _QueryParser(report).file()


def read_named_queries(report: DiagnosticReport) -> qt.QueryTree:
    """Parse a source of queries that are stored under their names."""
    tree = read_queries(report)
    for query in tree.queries:
        if query.is_anonymous:
            message = "a stored query needs a name"
            hint = "write `query name() { … }`"
            report.add(Code.QUERY_SYNTAX, message, query.name.span, hint=hint)
    return tree


class _QueryParser(BaseParser):
    def __init__(self, report: DiagnosticReport) -> None:
        super().__init__(report, Code.QUERY_SYNTAX, Code.QUERY_TOO_DEEP)

    def file(self) -> qt.QueryTree:
        """`( read | mutation | { query } ) EOF`."""
        if self.at_word("match", *CHANGES):
            return qt.QueryTree(self._anonymous_query())
        return qt.QueryTree(self.declarations(self._query))

    def _anonymous_query(self) -> tuple[qt.QueryDecl, ...]:
        """Read a text that is one read or one mutation without name and parameters."""
        start = self.token
        with suppress(ParseAborted):
            try:
                body = self._read_body() if self.at_word("match") else self._statements()
                if not self.at(tk.END):
                    hint = f"queries of one text have names: `query name() {{ {start.text} … }}`"
                    if not (self.at_declaration() or self.at_word(start.text)):
                        hint = self._body_hint()
                    self.fail_expected("the end of the text", "after the query", hint=hint)
                name = Name(ANONYMOUS_NAME, span=start.span)
                span = self.span_from(start)
                return (qt.QueryDecl(name, (), (), body, is_anonymous=True, span=span),)
            except ParseFailure:
                self.skip_to(lambda: False)
        return ()

    def _query(self) -> qt.QueryDecl:
        """`"query" ident "(" [ param { "," param } ] ")" { qannot } "{" body "}"`."""
        start = self.token
        self.depth = 0
        is_other_language = start.text.lower() in _STARTS_OF_OTHER_LANGUAGES
        self.expect_word("query", "here", hint=_READ_HINT if is_other_language else None)
        name = self.name("after `query`")
        self.expect("(", "to open the parameter list")
        parameters = self.separated(self._parameter, until=")")
        self.expect(")", "to close the parameter list")
        annotations = self._annotations()
        self.expect("{", f"to open the body of `{name}`")
        body = self._read_body() if self.at_word("match") else self._mutation_body(name)
        if not self.accept("}"):
            self.fail_expected("`}`", f"to close the body of `{name}`", hint=self._body_hint())
        return qt.QueryDecl(name, parameters, annotations, body, span=self.span_from(start))

    def _parameter(self) -> qt.ParameterDeclaration:
        """`Var ":" ptype`."""
        variable = self._variable("as a parameter")
        self.expect(":", f"after `${variable.name}`")
        if self.at_word("enum"):
            self.fail("a parameter cannot be an enum", hint="declare it as `String`")
        return qt.ParameterDeclaration(variable, self.type_expr(enums=False))

    def _annotations(self) -> tuple[qt.QueryAnnotation, ...]:
        """`("@description" | "@instruction" | "@check") "(" String ")"`, each at most once."""
        annotations: list[qt.QueryAnnotation] = []
        while self.accept("@"):
            name = self.name("after `@`")
            if name.text not in _QUERY_ANNOTATIONS:
                self.fail(
                    f"unknown query annotation `@{quote(name.text)}`",
                    span=name.span,
                    hint="a query allows `@description`, `@instruction` and `@check`",
                )
            if any(name == other.name for other in annotations):
                self.fail(f"`@{name}` is given twice", span=name.span)
            self.expect("(", f"after `@{name}`")
            string = self.token.span
            annotations.append(qt.QueryAnnotation(name, self.string(f"in `@{name}`"), span=string))
            self.expect(")", f"to close `@{name}`")
        return tuple(annotations)

    # --- reads ---------------------------------------------------------------------------------

    def _read_body(self) -> qt.ReadBody:
        """`match { … } return [distinct] { … } [order { … }] [limit n] [offset n]`."""
        match = self.advance()
        if self.at("("):
            self.fail_expected("`{`", "after `match`", hint=_READ_HINT)
        clauses = self._block("match", self._clause)
        match_span = self.span_from(match)
        returns = self.expect_word("return", "after the match block")
        distinct = self.accept_word("distinct") is not None
        projections, marked = self._projections()
        return_span = self.span_from(returns)
        order = self.accept_word("order")
        orderings = self._orderings() if order else ()
        order_span = self.span_from(order) if order else return_span
        limit = self._count("limit") if self.accept_word("limit") else None
        offset = self._count("offset") if self.accept_word("offset") else None
        return qt.ReadBody(
            clauses,
            projections,
            distinct or marked,
            orderings,
            limit,
            offset,
            (match_span, return_span, order_span),
        )

    def _block(self, owner: str, item: Callable[[], _ItemT]) -> tuple[_ItemT, ...]:
        """`"{" { item }+ "}"`; an item that cannot be read is skipped."""
        opening = self.expect("{", f"after `{owner}`")
        self.enter()
        braces = self.braces

        def skip(failed: Token) -> None:
            self.skip_within_block(failed, braces, self._at_item)

        items, complete = self.block_items(item, skip, f"the `{owner}` block", opening.span)
        if complete and not items:
            self.fail(f"the `{owner}` block is empty", span=opening.span.to(self.token.span))
        self.advance()
        self.leave()
        return items

    def _clause(self) -> qt.MatchClause:
        """`( not | exists | optional ) { … } | binding | traversal | condition`."""
        start = self.token
        if self.at_word(*_BLOCKS) and self.peek().kind == "{":
            word = self.advance().text
            clauses = self._block(word, self._clause)
            return _BLOCKS[word](clauses, span=self.span_from(start))
        if self.at_word("not") and self.peek().kind == tk.VARIABLE:
            self.advance()
            self.fail_expected("`{`", "after `not`", hint="negate a pattern with `not { … }`")
        if self.at(tk.VARIABLE):
            if self.peek().kind == ":":
                return self._binding()
            if self._at_traversal():
                return self._traversal()
        if self.at(","):
            self.fail("unexpected `,`", hint="clauses of a match are not separated by commas")
        if self.at_word("and", "or"):
            self.fail(f"unexpected `{start.text}`", hint=_JOINING_HINTS[start.text])
        condition = self._condition()
        return qt.FilterClause(condition, span=self.span_from(start))

    def _binding(self) -> qt.BindingClause:
        """`Var ":" TypeName [ "{" propMatch { "," propMatch } [ "," ] "}" ]`."""
        start = self.token
        variable = self._variable("to bind")
        self.advance()
        type_name = self.type_name("after `:`")
        matches: list[qt.PropertyMatch] = []
        if self.accept("{"):
            matches.append(self._property_match())
            while self.accept(",") and not self.at("}"):
                matches.append(self._property_match())
            self.expect("}", "to close the inline match")
        return qt.BindingClause(variable, type_name, tuple(matches), span=self.span_from(start))

    def _property_match(self) -> qt.PropertyMatch:
        name = self.name("of a property to match")
        self.expect(":", f"after `{name}`")
        return qt.PropertyMatch(name, self._value())

    def _at_traversal(self) -> bool:
        """Return whether `$a edge $b`, `$a <edge> $b` or `$a $w:edge $b` starts here."""
        second, third, fourth = self.peek(1), self.peek(2), self.peek(3)
        if second.kind in (tk.VARIABLE, tk.TYPE_NAME):
            return True
        if second.kind == "<":
            return third.kind in (tk.NAME, tk.TYPE_NAME) and fourth.kind == ">"
        if second.kind != tk.NAME:
            return False
        if second.text in _OPERATOR_WORDS:
            # `$a contains $b` is a traversal by an edge of that name; `$a contains $b.p` is not.
            if fourth.kind in _ARITHMETIC and not _is_sign(third, fourth, self.peek(4)):
                return False
            return third.kind in (tk.VARIABLE, "{") and fourth.kind != "."
        return True

    def _traversal(self) -> qt.TraversalClause:
        """`Var [ Var ":" ] edgePath Var`."""
        start = self.token
        src = self._variable("where the traversal starts")
        edge_variable = None
        if self.at(tk.VARIABLE):
            edge_variable = self._variable("for the edge")
            self.expect(":", f"after the edge variable `${edge_variable.name}`")
        path = self._edge_path()
        dst = self._variable("where the traversal ends")
        span = self.span_from(start)
        return qt.TraversalClause(
            src, path.edge, dst, edge_variable, path.undirected, path.hops, span=span
        )

    def _edge_path(self) -> qt.EdgePathExpression:
        """`( edgeWord | "<" edgeWord ">" ) [ "{" Int "," [ Int ] "}" ]`."""
        start = self.token
        undirected = self.accept("<") is not None
        if self.at_word("not"):
            self.fail("`not` cannot be an edge name", hint="negate a pattern with `not { … }`")
        edge = self._edge_word()
        if undirected:
            self.expect(">", f"to close `<{edge}`")
        hops = self._hops() if self.at("{") else None
        return qt.EdgePathExpression(edge, undirected, hops, span=self.span_from(start))

    def _edge_word(self) -> Name:
        if self.at(tk.TYPE_NAME):
            word = self.token.text
            hint = f"in a traversal an edge is written `{word[0].lower() + word[1:]}`"
            if self.peek().kind not in (tk.VARIABLE, ">"):
                hint = f"a binding is written `${self.previous.text}: {word}`"
            self.fail_expected("an edge name", "here", hint=hint)
        return self.name("of an edge")

    def _hops(self) -> qt.HopRange:
        """`"{" Int "," [ Int ] "}"`."""
        start = self.advance()
        minimum = self.integer("as the least number of hops", high=_MAX_HOPS)
        self.expect(",", "between the two bounds")
        high = "as the greatest number of hops"
        maximum = self.integer(high, high=_MAX_HOPS) if self.at(tk.INT) else None
        self.expect("}", "to close the bounds")
        return qt.HopRange(minimum, maximum, span=self.span_from(start))

    # --- conditions ----------------------------------------------------------------------------

    def _condition(self) -> qt.Condition:
        """`group | expr op expr | expr is [not] null | expr in expr | predicate(…)`."""
        start = self.token
        part = self._part()
        if isinstance(part, qt.CallExpression):
            return qt.CallCondition(part, span=self.span_from(start))
        if not isinstance(part, qt.Condition):
            self._fail_comparison(start)
        return part

    def _part(self) -> qt.Condition | qt.Expr:
        """Read a condition, or an expression that nothing is compared with."""
        start = self.token
        if not self.at("("):
            return self._compared(self._expr(), start)
        grouped = self._group()
        if isinstance(grouped, qt.Condition):
            return grouped
        return self._compared(self._rest_of_expr(grouped), start)

    def _compared(self, left: qt.Expr, start: Token) -> qt.Condition | qt.Expr:
        """Read what follows the left side of a condition; without an operator, return that side."""
        operator = self._operator()
        if operator is not None:
            if self.at("="):
                self.fail("unexpected `=`", hint="equality is written `=`")
            return qt.ComparisonCondition(left, operator, self._expr(), span=self.span_from(start))
        if self.accept_word("is"):
            negated = self.accept_word("not") is not None
            self.expect_word("null", "after `is`")
            return qt.NullCondition(left, negated, span=self.span_from(start))
        if self.accept_word("in"):
            return qt.MembershipCondition(left, self._expr(), span=self.span_from(start))
        return left

    def _fail_comparison(self, start: Token) -> NoReturn:
        hint = "operators: = != < <= > >= contains starts_with in, is null, is not null"
        if start.kind == "-":
            hint = _SPACED_MINUS
        self.fail_expected("a comparison", "here", hint=hint)

    def _operator(self) -> ComparisonOperator | None:
        if self.token.kind in _SYMBOLS:
            return _SYMBOLS[self.advance().kind]
        if self.at_word(*_WORDS):
            return _WORDS[self.advance().text]
        return None

    def _group(self) -> qt.Condition | qt.Expr:
        """`"(" all { "or" all } ")"` where `all = condition { "and" condition }`.

        An expression in parentheses starts like a group: it is one that holds no condition.
        """
        start = self.advance()
        self.enter()
        choices = self.separated(self._all, "or")
        if len(choices) == 1 and not isinstance(choices[0], qt.Condition) and not self.at(")"):
            self._fail_comparison(start)
        self.expect(")", "to close the group")
        self.leave()
        if len(choices) > 1:
            conditions = tuple(map(self._as_condition, choices))
            return qt.OrCondition(conditions, span=self.span_from(start))
        if isinstance(choices[0], qt.CallExpression) and not self._at_infix():
            return qt.CallCondition(choices[0], span=choices[0].span)
        return choices[0]

    def _all(self) -> qt.Condition | qt.Expr:
        start = self.token
        parts = self.separated(self._part, "and")
        if len(parts) == 1:
            return parts[0]
        return qt.AndCondition(tuple(map(self._as_condition, parts)), span=self.span_from(start))

    def _as_condition(self, part: qt.Condition | qt.Expr) -> qt.Condition:
        """Return one of several parts of a group, each of which is a condition."""
        if isinstance(part, qt.CallExpression):
            return qt.CallCondition(part, span=part.span)
        if not isinstance(part, qt.Condition):
            self.fail("expected a comparison here, found a value", span=part.span)
        return part

    def _at_infix(self) -> bool:
        """Return whether what was read is an operand of what comes next."""
        if self.token.kind in _SYMBOLS or self.at_word(*_OPERATOR_WORDS):
            return True
        return self._at_arithmetic()

    # --- expressions ---------------------------------------------------------------------------

    def _expr(self) -> qt.Expr:
        """`term { ( "+" | "-" ) term }` where `term = factor { ( "*" | "/" | "%" ) factor }`."""
        return self._rest_of_expr(self._factor())

    def _rest_of_expr(self, first: qt.Expr) -> qt.Expr:
        """Read what follows the first operand; each operator counts as a level of nesting."""
        level = self.depth
        expr = self._arithmetic(first, 1)
        self.depth = level
        return expr

    def _arithmetic(self, left: qt.Expr, least: int) -> qt.Expr:
        """Read operators that bind at least that close, from left to right."""
        while self._at_arithmetic():
            operator = _ARITHMETIC[self.token.kind]
            if operator.precedence < least:
                return left
            self.advance()
            self.enter()
            right = self._arithmetic(self._factor(), operator.precedence + 1)
            span = left.span.to(right.span)
            left = qt.ArithmeticExpression(left, operator, right, span=span)
        return left

    def _at_arithmetic(self) -> bool:
        if self.token.kind not in _ARITHMETIC:
            return False
        return not _is_sign(self.previous, self.token, self.peek())

    def _factor(self) -> qt.Expr:
        """`"(" expr ")" | case | call | Var "." ident | Var | literal | ident`."""
        start = self.token
        if self.accept("("):
            self.enter()
            expr = self._expr()
            self.expect(")", "to close the parentheses", hint=self._minus_hint())
            self.leave()
            return expr
        if self.at_word("case") and (self.before_word("when") or self.peek().kind == tk.VARIABLE):
            return self._case()
        if self.at(tk.VARIABLE):
            variable = self._variable("here")
            if self.accept("."):
                name = self.name(f"of a property of `${variable.name}`")
                return qt.PropertyAccess(variable, name, span=self.span_from(start))
            return variable
        if self.at(tk.NAME) and not self.at_word("true", "false"):
            if self.peek().kind != "(":
                self.advance()
                return qt.AliasRef(start.text, span=start.span)
            if start.text not in _TEMPORAL:
                return self._call()
        return self._literal()

    def _case(self) -> qt.CaseExpression:
        """`"case" { "when" condition "then" expr }+ [ "else" expr ] "end"`."""
        start = self.advance()
        self.enter()
        if not self.at_word("when"):
            hint = "write what is compared behind `when`: `case when $x.p = 1 then …`"
            self.fail_expected("`when`", "after `case`", hint=hint)
        branches: list[qt.CaseBranch] = []
        while self.at_word("when"):
            opening = self.advance()
            condition = self._condition()
            self.expect_word("then", "after the condition of `when`")
            value = self._expr()
            branches.append(qt.CaseBranch(condition, value, span=self.span_from(opening)))
        otherwise = self._expr() if self.accept_word("else") else None
        self.expect_word("end", "to close `case`")
        self.leave()
        return qt.CaseExpression(tuple(branches), otherwise, span=self.span_from(start))

    def _minus_hint(self) -> str | None:
        return _SPACED_MINUS if self.at("-") else None

    def _call(self) -> qt.CallExpression:
        """`ident "(" [ [ "distinct" ] argument { "," argument } ] ")"`."""
        start = self.advance()
        self.advance()
        self.enter()
        distinct = self.at_word("distinct") and _starts_expr(self.peek())
        if distinct:
            self.advance()
        arguments = self.separated(self._argument, until=")")
        self.expect(")", f"to close `{quote(start.text)}(`", hint=self._minus_hint())
        self.leave()
        name = Name(start.text, span=start.span)
        return qt.CallExpression(name, arguments, distinct, span=self.span_from(start))

    def _argument(self) -> qt.Expr:
        """`expr | edgePath`; a bare word may be either and is left to the checker."""
        bounded = self.at(tk.NAME) and self.peek().kind == "{"
        return self._edge_path() if bounded or self.at("<") else self._expr()

    def _literal(self) -> qt.Literal | qt.ListLiteral:
        """`String | Int | Float | Bool | date("…") | datetime("…") | "[" literals "]"`."""
        start = self.token
        if self.at(tk.STRING):
            return qt.Literal(Scalar.STRING, self.string("here"), span=start.span)
        if self.at_word("true", "false"):
            return qt.Literal(Scalar.BOOL, self.advance().text == "true", span=start.span)
        if self.at_word(*_TEMPORAL) and self.peek().kind == "(":
            scalar = _TEMPORAL[self.advance().text]
            self.advance()
            text = self.string(f"in `{start.text}(…)`")
            self.expect(")", f"to close `{start.text}(`")
            return qt.Literal(scalar, text, span=self.span_from(start))
        if self.at("["):
            return self._list()
        return self._number()

    def _number(self) -> qt.Literal:
        """`[ "-" ] ( Int | Float )`."""
        start = self.token
        negative = self.accept("-") is not None
        if self.at(tk.INT):
            whole = self.to_int(self.advance(), negative=negative, low=I64_MIN)
            return qt.Literal(Scalar.I64, whole, span=self.span_from(start))
        if self.at(tk.FLOAT):
            value = self.to_float(self.advance(), negative=negative)
            return qt.Literal(Scalar.F64, value, span=self.span_from(start))
        is_word = self.token.kind in (tk.NAME, tk.TYPE_NAME) and not self.starts_line()
        hint = f'text is written in quotes: `"{quote(self.token.text)}"`' if is_word else None
        if negative and self.token.kind in (tk.VARIABLE, tk.NAME, "("):
            hint = "negate a value with `0 - …`"
        if self.at("*"):
            hint = "`count($x)` counts the rows that have `$x`"
        self.fail_expected("a number" if negative else "a value", "here", hint=hint)

    def _list(self) -> qt.ListLiteral:
        start = self.advance()
        self.enter()
        items = self.separated(self._literal, until="]")
        self.expect("]", "to close the list")
        self.leave()
        return qt.ListLiteral(items, span=self.span_from(start))

    def _value(self) -> qt.ValueExpression:
        """`literal | Var | now()`."""
        if self.at(tk.VARIABLE):
            variable = self._variable("here")
            if self.at("."):
                self.fail(
                    "a property of a variable cannot be a value here",
                    hint="compare it in a clause of its own, or pass a parameter",
                )
            return variable
        if self.at_word("now") and self.peek().kind == "(":
            return self._call()
        if self.at_word("null"):
            self.fail(
                "there is no null literal",
                hint="leave the property out, or pass a nullable parameter",
            )
        return self._literal()

    def _variable(self, where: str) -> qt.Variable:
        token = self.expect(tk.VARIABLE, where)
        return qt.Variable(token.text, span=token.span)

    # --- return, order, limit ------------------------------------------------------------------

    def _projections(self) -> tuple[tuple[qt.Projection, ...], bool]:
        """`"{" [ "distinct" ] { expr [ "as" ident ] [ "," ] }+ "}"`."""
        marked = self.at("{") and self.before_word("distinct") and _starts_expr(self.peek(2))
        return self._block("return", self._projection), marked

    def _projection(self) -> qt.Projection:
        if self.at_word("distinct") and self.previous.kind == "{" and _starts_expr(self.peek()):
            self.advance()
        start = self.token
        expr = self._expr()
        alias = self.name("after `as`") if self.accept_word("as") else None
        span = self.span_from(start)
        self.accept(",")
        return qt.Projection(expr, alias, span=span)

    def _orderings(self) -> tuple[qt.OrderingTerm, ...]:
        """`"{" ordering { "," ordering } "}"`."""
        opening = self.expect("{", "after `order`")
        level, braces = self.depth, self.braces
        try:
            orderings = self.separated(self._ordering)
            self.expect("}", "to close the `order` block")
        except ParseFailure:
            self.depth = level
            self.skip_within_block(opening, braces, lambda: False)
            self.accept("}")
            return ()
        return orderings

    def _ordering(self) -> qt.OrderingTerm:
        start = self.token
        expr = self._expr()
        direction = None
        if self.at_word(*qt.SortDirection):
            direction = qt.SortDirection(self.advance().text)
        return qt.OrderingTerm(expr, direction, span=self.span_from(start))

    def _count(self, word: str) -> qt.CountExpression:
        """`Int | Var`."""
        if self.at(tk.VARIABLE):
            return self._variable(f"after `{word}`")
        start = self.token
        value = self.integer(f"after `{word}`", high=_U64_MAX)
        return qt.Literal(Scalar.U64, value, span=start.span)

    # --- mutations -----------------------------------------------------------------------------

    def _mutation_body(self, owner: Name) -> qt.MutationBody:
        """`{ insert | update | delete }+`."""
        what = f"the body of `{owner}`"
        statements, complete = self.block_items(
            self._statement, self._skip_to_statement, what, owner.span
        )
        if complete and not statements:
            self.fail(f"{what} is empty", hint=self._body_hint())
        return qt.MutationBody(statements)

    def _statements(self) -> qt.MutationBody:
        """`{ insert | update | delete }+`, without braces around them."""
        statements, failed = list[qt.MutationStatement](), False
        while self.at_word(*CHANGES):
            start = self.token
            try:
                statements.append(self._statement())
            except ParseFailure:
                failed = True
                self.depth = 0
                self._skip_to_statement(start)
        if failed:
            raise ParseFailure
        return qt.MutationBody(tuple(statements))

    def _statement(self) -> qt.MutationStatement:
        start = self.token
        if self.accept_word("insert"):
            name = self.type_name("after `insert`")
            return qt.InsertStatement(
                name, self._assignments(f"insert {name}"), span=self.span_from(start)
            )
        if self.accept_word("update"):
            name = self.type_name("after `update`")
            self.expect_word("set", f"after `update {name}`")
            assignments = self._assignments("set")
            return qt.UpdateStatement(name, assignments, self._where(), span=self.span_from(start))
        if self.accept_word("delete"):
            name = self.type_name("after `delete`")
            return qt.DeleteStatement(name, self._where(), span=self.span_from(start))
        joined = self.at_word("or") or self.at(",")
        hint = "the tests of a statement are joined by `and`" if joined else self._body_hint()
        self.fail_expected("a statement", "here", hint=hint)

    def _body_hint(self) -> str:
        if self.at(tk.END):
            return "close it with `}`"
        if self.at_word(*CHANGES) or self.at_word("match"):
            return "a query either reads or changes, never both"
        if self.at_word("return", "order", "limit", "offset"):
            return "a read is written in this order: match, return, order, limit, offset"
        return "a query reads (`match … return …`) or changes (`insert`, `update`, `delete`)"

    def _assignments(self, owner: str) -> tuple[qt.Assignment, ...]:
        """`"{" { ident ":" value [ "," ] }+ "}"`."""
        return self._block(owner, self._assignment)

    def _assignment(self) -> qt.Assignment:
        name = self.name("of a property to assign")
        self.expect(":", f"after `{name}`")
        value = self._value()
        self.accept(",")
        return qt.Assignment(name, value)

    def _where(self) -> tuple[qt.MutationCondition, ...]:
        """`"where" pred { "and" pred }`."""
        if not self.accept_word("where"):
            self.fail_expected("`where`", "here", hint="say which entities: `where id = …`")
        return self.separated(self._test, "and")

    def _test(self) -> qt.MutationCondition:
        """`ident cmpOp value`."""
        name = self.name("of a property to test")
        if self.token.kind not in _SYMBOLS:
            self.fail_expected("a comparison", "here", hint="operators: = != < <= > >=")
        operator = _SYMBOLS[self.advance().kind]
        return qt.MutationCondition(name, operator, self._value())

    def _at_item(self) -> bool:
        return self.token.kind in (tk.VARIABLE, tk.NAME, "(")

    # --- looking -------------------------------------------------------------------------------

    def at_declaration(self) -> bool:
        """Return whether a query starts here."""
        if not (self.at_word("query") and self.peek().kind == tk.NAME):
            return False
        return self.peek(2).kind == "("

    def at_attempt(self) -> bool:
        """Return whether a query starts here, or a line that was meant as one."""
        if self.at_declaration():
            return True
        named = self.peek().kind in (tk.NAME, tk.TYPE_NAME)
        return self.at_word("query") and self.starts_line() and named

    def _at_query_end(self) -> bool:
        return self.at("}") and (self.peek().kind == tk.END or self.before_word("query"))

    def _skip_to_statement(self, failed: Token) -> None:
        def stop() -> bool:
            if self.at_declaration() or self._at_query_end():
                return True
            statement = self.at_word(*CHANGES)
            return statement and self.token is not failed and self.peek().kind == tk.TYPE_NAME

        self.skip_to(stop)


def _is_sign(previous: Token, token: Token, following: Token) -> bool:
    """Return whether a `-` after an expression is the sign of a number that starts something new.

    Clauses and columns may follow each other without a comma. A sign has white space before it and
    none after it, so that `$x.a - 1` and `$x.a-1` subtract, and `$x.a -1` are two columns.
    """
    if token.kind != "-" or following.kind not in (tk.INT, tk.FLOAT):
        return False
    return previous.span.end < token.span.start and token.span.end == following.span.start


def _starts_expr(token: Token) -> bool:
    return token.kind in (tk.VARIABLE, tk.NAME, tk.STRING, tk.INT, tk.FLOAT, "-", "[", "<", "(")
