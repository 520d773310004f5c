"""This module writes a `QueryTree` as canonical `.gq` text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from omnigraph.lang import query_tree as qt
from omnigraph.lang.schema_printer import print_type
from omnigraph.lang.source import Source, Span
from omnigraph.lang.tokens import Comment
from omnigraph.lang.tree import Name
from omnigraph.lang.writer import LINE_WIDTH, Writer, plain_number
from omnigraph.types import Scalar

_OPERATOR_WORDS = ("contains", "starts_with", "is", "in")
_JOINING_WORDS = (*_OPERATOR_WORDS, "and", "or")


def print_queries(
    tree: qt.QueryTree, source: Source | None = None, comments: Sequence[Comment] = ()
) -> str:
    """Return the text of a query file; with its source, comments and spelling are kept."""
    printer = _QueryPrinter(Writer(source, comments))
    for index, query in enumerate(tree.queries):
        if index:
            printer.writer.blank()
        printer.query(query)
    return printer.writer.text()


def print_expr(expr: qt.Expr) -> str:
    """Return the text of one expression."""
    return _QueryPrinter(Writer()).expr(expr)


def print_condition(condition: qt.Condition) -> str:
    """Return the text of one condition."""
    return _QueryPrinter(Writer()).condition(condition)


def _stands_alone(condition: qt.Condition) -> bool:
    """Tell whether a clause needs no parentheses to be read as this condition.

    `$a in $b` alone is a traversal, a bare word before the `(` of the next clause is a call,
    and a clause that starts with a joining word would continue the clause before it.
    """
    first, last = _ends(condition)
    if isinstance(first, qt.Variable) and isinstance(last, qt.Variable):
        return isinstance(condition, qt.Comparison) and condition.operator not in _OPERATOR_WORDS
    match first:
        case qt.AliasRef(name=word) | qt.Call(function=Name(text=word)) if word in _JOINING_WORDS:
            return False
    return not isinstance(last, qt.AliasRef)


def _ends(condition: qt.Condition) -> tuple[qt.Expr | None, qt.Expr | None]:
    """Return the expressions a condition starts and ends with, where it does."""
    match condition:
        case qt.Comparison(left=first, right=last) | qt.Membership(operand=first, choices=last):
            return first, last
        case qt.NullTest(operand=first) | qt.CallCondition(call=first):
            return first, None
        case qt.AllOf() | qt.AnyOf():
            return None, None


def _edge_path(path: qt.EdgePath | qt.Traversal) -> str:
    edge = f"<{path.edge}>" if path.undirected else str(path.edge)
    if path.hops is None:
        return edge
    high = "" if path.hops.maximum is None else path.hops.maximum
    return f"{edge}{{{path.hops.minimum},{high}}}"


class _QueryPrinter:
    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def query(self, query: qt.QueryDecl) -> None:
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
        match query.body:
            case qt.ReadBody() as body:
                self._read(body)
            case qt.MutationBody(statements=statements):
                for statement in statements:
                    self._statement(statement)
            case _ as unreachable:
                assert_never(unreachable)
        self.writer.close("}", query.span.end)

    # --- reads ---------------------------------------------------------------------------------

    def _read(self, body: qt.ReadBody) -> None:
        match_span, return_span, order_span = body.block_spans
        self._clauses("match", body.clauses, match_span)
        word = "return distinct" if body.distinct else "return"
        self._items(word, [(self._projection(p), p.span) for p in body.projections], return_span)
        if body.orderings:
            orderings = [(self._ordering(o), o.span) for o in body.orderings]
            self._items("order", orderings, order_span)
        for keyword, count in (("limit", body.limit), ("offset", body.offset)):
            if count is not None:
                self.writer.line(f"{keyword} {self.expr(count)}", count.span)

    def _clauses(self, word: str, clauses: Sequence[qt.Clause], span: Span) -> None:
        self.writer.open(f"{word} {{", span.start)
        for clause in clauses:
            self._clause(clause)
        self.writer.close("}", span.end)

    def _items(self, word: str, items: list[tuple[str, Span]], span: Span) -> None:
        """Write `word { a, b }`, one item a line when that is too wide or holds comments."""
        line = f"{word} {{ {', '.join(text for text, _ in items)} }}"
        if self.writer.width(line) <= LINE_WIDTH and not self.writer.has_comments("{", span):
            self.writer.line(line, span)
            return
        self.writer.open(f"{word} {{", span.start)
        for text, place in items[:-1]:
            self.writer.line(f"{text},", place)
        self.writer.line(*items[-1])
        self.writer.close("}", span.end)

    def _clause(self, clause: qt.Clause) -> None:
        match clause:
            case qt.Negation(clauses=clauses, span=span):
                self._clauses("not", clauses, span)
            case qt.Binding():
                self.writer.line(self._binding(clause), clause.span)
            case qt.Traversal():
                self.writer.line(self._traversal(clause), clause.span)
            case qt.Filter(condition=condition, span=span):
                text = self.condition(condition)
                self.writer.line(text if _stands_alone(condition) else f"({text})", span)
            case _ as unreachable:
                assert_never(unreachable)

    def _binding(self, binding: qt.Binding) -> str:
        text = f"${binding.variable.name}: {binding.type_name}"
        if binding.matches:
            matches = ", ".join(f"{m.property}: {self.expr(m.value)}" for m in binding.matches)
            text += f" {{ {matches} }}"
        return text

    def _traversal(self, traversal: qt.Traversal) -> str:
        edge = _edge_path(traversal)
        if traversal.edge_variable is not None:
            edge = f"${traversal.edge_variable.name}:{edge}"
        return f"${traversal.src.name} {edge} ${traversal.dst.name}"

    def condition(self, condition: qt.Condition) -> str:
        match condition:
            case qt.Comparison(left=left, operator=operator, right=right):
                return f"{self.expr(left)} {operator} {self.expr(right)}"
            case qt.NullTest(operand=operand, negated=negated):
                return f"{self.expr(operand)} is {'not ' if negated else ''}null"
            case qt.Membership(operand=operand, choices=choices):
                return f"{self.expr(operand)} in {self.expr(choices)}"
            case qt.CallCondition(call=call):
                return self.expr(call)
            case qt.AllOf():
                return f"({self._choice(condition)})"
            case qt.AnyOf(conditions=parts):
                return f"({' or '.join(self._choice(part) for part in parts)})"
            case _ as unreachable:
                assert_never(unreachable)

    def _choice(self, condition: qt.Condition) -> str:
        """Write one side of an `or`, where `and` binds tighter and needs no parentheses.

        More parentheses than were read could nest deeper than can be read.
        """
        if isinstance(condition, qt.AllOf):
            return " and ".join(self.condition(part) for part in condition.conditions)
        return self.condition(condition)

    def _projection(self, projection: qt.Projection) -> str:
        alias = f" as {projection.alias}" if projection.alias is not None else ""
        return self.expr(projection.expr) + alias

    def _ordering(self, ordering: qt.Ordering) -> str:
        direction = f" {ordering.direction}" if ordering.direction is not None else ""
        return self.expr(ordering.expr) + direction

    def expr(self, expr: qt.Expr) -> str:
        match expr:
            case qt.Literal():
                return self._literal(expr)
            case qt.ListLiteral(items=items):
                return f"[{', '.join(self.expr(item) for item in items)}]"
            case qt.Variable(name=name):
                return f"${name}"
            case qt.Access(variable=variable, property=name):
                return f"${variable.name}.{name}"
            case qt.Call(function=function, arguments=arguments, distinct=distinct):
                inner = ", ".join(self.expr(argument) for argument in arguments)
                return f"{function}({'distinct ' if distinct else ''}{inner})"
            case qt.AliasRef(name=name):
                return name
            case qt.EdgePath():
                return _edge_path(expr)
            case _ as unreachable:
                assert_never(unreachable)

    def _literal(self, literal: qt.Literal) -> str:
        match literal.value:
            case bool(value):
                return "true" if value else "false"
            case str(value) if literal.scalar is Scalar.STRING:
                return self.writer.string(value, literal.span)
            case str(value):
                word = "date" if literal.scalar is Scalar.DATE else "datetime"
                return f"{word}({self.writer.string(value, Span(0, 0))})"
            case int(value) | float(value):
                return self.writer.number(plain_number(value), literal.span)

    # --- mutations -----------------------------------------------------------------------------

    def _statement(self, statement: qt.Statement) -> None:
        match statement:
            case qt.Insert(type_name=name, assignments=assignments, span=span):
                self._assignments(f"insert {name} {{", assignments, "}", span)
            case qt.Update(type_name=name, assignments=assignments, tests=tests, span=span):
                tail = f"}} where {self._tests(tests)}"
                self._assignments(f"update {name} set {{", assignments, tail, span)
            case qt.Delete(type_name=name, tests=tests, span=span):
                self.writer.line(f"delete {name} where {self._tests(tests)}", span)
            case _ as unreachable:
                assert_never(unreachable)

    def _assignments(
        self, head: str, assignments: Sequence[qt.Assignment], tail: str, span: Span
    ) -> None:
        texts = [f"{a.property}: {self.expr(a.value)}" for a in assignments]
        line = f"{head} {', '.join(texts)} {tail}"
        if self.writer.width(line) <= LINE_WIDTH and not self.writer.has_comments("{", span):
            self.writer.line(line, span)
            return
        self.writer.open(head, span.start)
        for index, (text, assignment) in enumerate(zip(texts, assignments, strict=True)):
            comma = "," if index < len(texts) - 1 else ""
            place = assignment.property.span.to(assignment.value.span)
            self.writer.line(text + comma, place)
        self.writer.close(tail, span.end)

    def _tests(self, tests: Sequence[qt.MutationTest]) -> str:
        return " and ".join(f"{t.property} {t.operator} {self.expr(t.value)}" for t in tests)
