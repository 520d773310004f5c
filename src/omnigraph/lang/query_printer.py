"""Print a `QueryTree` as canonical `.gq` text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from omnigraph.lang import query_tree as qt
from omnigraph.lang.schema_printer import print_type
from omnigraph.lang.source import Name, SourceText, TextSpan
from omnigraph.lang.source_writer import LINE_WIDTH, SourceWriter, plain_number
from omnigraph.lang.tokens import CommentToken
from omnigraph.types import Scalar

_OPERATOR_WORDS = ("contains", "starts_with", "is", "in")
_INFIX_WORDS = (*_OPERATOR_WORDS, "and", "or")


def print_queries(
    tree: qt.QueryTree, source: SourceText | None = None, comments: Sequence[CommentToken] = ()
) -> str:
    """Return the text of a query file; with its source, comments and spelling are kept."""
    printer = _QueryPrinter(SourceWriter(source, comments))
    for index, query in enumerate(tree.queries):
        if index:
            printer.writer.blank()
        printer.query(query)
    return printer.writer.text()


def _needs_no_parentheses(condition: qt.Condition) -> bool:
    """Return whether a clause needs no parentheses to be read as this condition.

    `$a in $b` alone is a traversal, a bare word before the `(` of the next clause is a call,
    and a clause that starts with a joining word would continue the clause before it.
    """
    first, last = _outer_expressions(condition)
    opening, closing = _outer_operand(first, place=0), _outer_operand(last, place=-1)
    if isinstance(first, qt.Variable) and isinstance(last, qt.Variable):
        return (
            isinstance(condition, qt.ComparisonCondition)
            and condition.operator not in _OPERATOR_WORDS
        )
    match opening:
        case qt.AliasRef(name=word) | qt.CallExpression(function=Name(text=word)) if (
            word in _INFIX_WORDS
        ):
            return False
    return not isinstance(closing, qt.AliasRef)


def _outer_operand(expr: qt.Expr | None, *, place: int) -> qt.Expr | None:
    """Return the operand an expression is written with first or last; None in parentheses."""
    while isinstance(expr, qt.ArithmeticExpression):
        side = (expr.left, expr.right)[place]
        if _is_parenthesised(side, expr, is_right=place == -1):
            return None
        expr = side
    return expr


def _is_parenthesised(operand: qt.Expr, expr: qt.ArithmeticExpression, *, is_right: bool) -> bool:
    """Return whether an operand has to be written in parentheses."""
    if not isinstance(operand, qt.ArithmeticExpression):
        return False
    inner, outer = operand.operator.precedence, expr.operator.precedence
    return inner <= outer if is_right else inner < outer


def _outer_expressions(condition: qt.Condition) -> tuple[qt.Expr | None, qt.Expr | None]:
    """Return the expressions a condition starts and ends with, where it does."""
    match condition:
        case (
            qt.ComparisonCondition(left=first, right=last)
            | qt.MembershipCondition(operand=first, choices=last)
        ):
            return first, last
        case qt.NullCondition(operand=first) | qt.CallCondition(call=first):
            return first, None
        case qt.AndCondition() | qt.OrCondition():
            return None, None


def _edge_path(path: qt.EdgePathExpression | qt.TraversalClause) -> str:
    edge = f"<{path.edge}>" if path.undirected else str(path.edge)
    if path.hops is None:
        return edge
    high = "" if path.hops.maximum is None else path.hops.maximum
    return f"{edge}{{{path.hops.minimum},{high}}}"


class _QueryPrinter:
    def __init__(self, writer: SourceWriter) -> None:
        self.writer = writer

    def query(self, query: qt.QueryDecl) -> None:
        if query.is_anonymous:
            self._body(query.body)
            return
        parameters = ", ".join(
            f"${p.variable.name}: {print_type(p.type)}" for p in query.parameters
        )
        header = f"query {query.name}({parameters})"
        annotations = [
            f"@{a.name}({self.writer.string(a.text, a.span)})" for a in query.annotations
        ]
        one_line = " ".join([header, *annotations]) + " {"
        if self.writer.width(one_line) <= LINE_WIDTH or not annotations:
            self.writer.open(one_line, query.span.start)
        else:
            lines = [header, *(f"  {a}" for a in annotations), "{"]
            self.writer.open("\n".join(lines), query.span.start)
        self._body(query.body)
        self.writer.close("}", query.span.end)

    def _body(self, body: qt.ReadBody | qt.MutationBody) -> None:
        match body:
            case qt.ReadBody():
                self._read(body)
            case qt.MutationBody(statements=statements):
                for statement in statements:
                    self._statement(statement)
            case _ as unreachable:
                assert_never(unreachable)

    # --- reads ---------------------------------------------------------------------------------

    def _read(self, body: qt.ReadBody) -> None:
        match_span, return_span, order_span = body.block_spans
        self._clauses("match", body.clauses, match_span)
        word = "return distinct" if body.distinct else "return"
        columns = [(self._with_suffix(p.expr, "as ", p.alias), p.span) for p in body.projections]
        self._items(word, columns, return_span)
        if body.orderings:
            keys = [(self._with_suffix(o.expr, "", o.direction), o.span) for o in body.orderings]
            self._items("order", keys, order_span)
        for keyword, count in (("limit", body.limit), ("offset", body.offset)):
            if count is not None:
                self.writer.line(f"{keyword} {self.expr(count)}", count.span)

    def _clauses(self, word: str, clauses: Sequence[qt.MatchClause], span: TextSpan) -> None:
        self.writer.open(f"{word} {{", span.start)
        for clause in clauses:
            self._clause(clause)
        self.writer.close("}", span.end)

    def _items(
        self, head: str, items: list[tuple[str, TextSpan]], span: TextSpan, tail: str = "}"
    ) -> None:
        """Write `head { a, b }`, one item a line when that is too wide or holds comments."""
        line = f"{head} {{ {', '.join(text for text, _ in items)} {tail}"
        if self.writer.width(line) <= LINE_WIDTH and not self.writer.has_comments("{", span):
            self.writer.line(line, span)
            return
        self.writer.open(f"{head} {{", span.start)
        for text, place in items[:-1]:
            self.writer.line(f"{text},", place)
        self.writer.line(*items[-1])
        self.writer.close(tail, span.end)

    def _clause(self, clause: qt.MatchClause) -> None:
        match clause:
            case qt.NegationClause(clauses=clauses, span=span):
                self._clauses("not", clauses, span)
            case qt.ExistsClause(clauses=clauses, span=span):
                self._clauses("exists", clauses, span)
            case qt.OptionalClause(clauses=clauses, span=span):
                self._clauses("optional", clauses, span)
            case qt.BindingClause():
                self.writer.line(self._binding(clause), clause.span)
            case qt.TraversalClause():
                self.writer.line(self._traversal(clause), clause.span)
            case qt.FilterClause(condition=condition, span=span):
                text = self.condition(condition)
                self.writer.line(text if _needs_no_parentheses(condition) else f"({text})", span)
            case _ as unreachable:
                assert_never(unreachable)

    def _binding(self, binding: qt.BindingClause) -> str:
        text = f"${binding.variable.name}: {binding.type_name}"
        if binding.matches:
            matches = ", ".join(f"{m.property}: {self.expr(m.value)}" for m in binding.matches)
            text += f" {{ {matches} }}"
        return text

    def _traversal(self, traversal: qt.TraversalClause) -> str:
        edge = _edge_path(traversal)
        if traversal.edge_variable is not None:
            edge = f"${traversal.edge_variable.name}:{edge}"
        return f"${traversal.src.name} {edge} ${traversal.dst.name}"

    def condition(self, condition: qt.Condition) -> str:
        match condition:
            case qt.ComparisonCondition(left=left, operator=operator, right=right):
                return f"{self.expr(left)} {operator} {self.expr(right)}"
            case qt.NullCondition(operand=operand, negated=negated):
                return f"{self.expr(operand)} is {'not ' if negated else ''}null"
            case qt.MembershipCondition(operand=operand, choices=choices):
                return f"{self.expr(operand)} in {self.expr(choices)}"
            case qt.CallCondition(call=call):
                return self.expr(call)
            case qt.AndCondition():
                return f"({self._choice(condition)})"
            case qt.OrCondition(conditions=parts):
                return f"({' or '.join(self._choice(part) for part in parts)})"

    def _choice(self, condition: qt.Condition) -> str:
        """Write one side of an `or`, where `and` binds tighter and needs no parentheses.

        More parentheses than were read could nest deeper than can be read.
        """
        if isinstance(condition, qt.AndCondition):
            return " and ".join(self.condition(part) for part in condition.conditions)
        return self.condition(condition)

    def _with_suffix(self, expr: qt.Expr, word: str, suffix: object) -> str:
        return self.expr(expr) + (f" {word}{suffix}" if suffix is not None else "")

    def expr(self, expr: qt.Expr) -> str:
        match expr:
            case qt.Literal():
                return self._literal(expr)
            case qt.ListLiteral(items=items):
                return f"[{', '.join(self.expr(item) for item in items)}]"
            case qt.Variable(name=name):
                return f"${name}"
            case qt.PropertyAccess(variable=variable, property=name):
                return f"${variable.name}.{name}"
            case qt.CallExpression(function=function, arguments=arguments, distinct=distinct):
                inner = ", ".join(self.expr(argument) for argument in arguments)
                return f"{function}({'distinct ' if distinct else ''}{inner})"
            case qt.ArithmeticExpression(left=left, operator=operator, right=right):
                sides = (self._side(left, expr), self._side(right, expr, is_right=True))
                return f"{sides[0]} {operator} {sides[1]}"
            case qt.CaseExpression(branches=branches, otherwise=otherwise):
                parts = [
                    f"when {self.condition(b.condition)} then {self.expr(b.value)}"
                    for b in branches
                ]
                parts += [f"else {self.expr(otherwise)}"] if otherwise is not None else []
                return f"case {' '.join(parts)} end"
            case qt.AliasRef(name=name):
                return name
            case qt.EdgePathExpression():
                return _edge_path(expr)

    def _side(self, side: qt.Expr, expr: qt.ArithmeticExpression, *, is_right: bool = False) -> str:
        text = self.expr(side)
        return f"({text})" if _is_parenthesised(side, expr, is_right=is_right) else text

    def _literal(self, literal: qt.Literal) -> str:
        match literal.value:
            case bool(value):
                return "true" if value else "false"
            case str(value) if literal.scalar is Scalar.STRING:
                return self.writer.string(value, literal.span)
            case str(value):
                word = "date" if literal.scalar is Scalar.DATE else "datetime"
                return f"{word}({self.writer.string(value, TextSpan(0, 0))})"
            case int(value) | float(value):
                return self.writer.number(plain_number(value), literal.span)

    # --- mutations -----------------------------------------------------------------------------

    def _statement(self, statement: qt.MutationStatement) -> None:
        match statement:
            case qt.InsertStatement(type_name=name, assignments=assignments, span=span):
                self._items(f"insert {name}", self._assignments(assignments), span)
            case qt.UpdateStatement(
                type_name=name, assignments=assignments, tests=tests, span=span
            ):
                tail = f"}} where {self._tests(tests)}"
                self._items(f"update {name} set", self._assignments(assignments), span, tail)
            case qt.DeleteStatement(type_name=name, tests=tests, span=span):
                self.writer.line(f"delete {name} where {self._tests(tests)}", span)
            case _ as unreachable:
                assert_never(unreachable)

    def _assignments(self, assignments: Sequence[qt.Assignment]) -> list[tuple[str, TextSpan]]:
        return [
            (f"{a.property}: {self.expr(a.value)}", a.property.span.to(a.value.span))
            for a in assignments
        ]

    def _tests(self, tests: Sequence[qt.MutationCondition]) -> str:
        return " and ".join(f"{t.property} {t.operator} {self.expr(t.value)}" for t in tests)
