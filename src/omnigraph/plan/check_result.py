"""This module type-checks what a read query returns: columns, order, limit, offset."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from omnigraph.lang import Code, Span, did_you_mean
from omnigraph.lang import query_tree as qt
from omnigraph.lang.tree import Name
from omnigraph.plan.check_expressions import ExpressionChecker
from omnigraph.plan.check_values import parameter
from omnigraph.plan.expressions import (
    Expression,
    FunctionCall,
    ParameterRef,
    PropertyRef,
    is_call,
)
from omnigraph.plan.functions import FUNCTIONS, FunctionKind
from omnigraph.plan.operators import Column, Count, SortKey
from omnigraph.plan.scope import Context, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedResult:
    """The checked tail of a read query; `sort` keys are expressions of columns or bindings."""

    columns: tuple[Column, ...]
    distinct: bool
    sort: tuple[SortKey, ...]
    limit: Count | None
    offset: Count | None

    @property
    def is_aggregate(self) -> bool:
        """Tell whether rows are grouped."""
        return any(is_call(c.expression, FunctionKind.AGGREGATE) for c in self.columns)


def check_result(body: qt.ReadBody, scope: Scope, context: Context) -> CheckedResult:
    """Check return, order, limit and offset; mistakes are in the context's report."""
    checker = _ResultChecker(body, scope, context)
    columns = checker.columns()
    return CheckedResult(
        columns=columns,
        distinct=body.distinct,
        sort=checker.sort(columns),
        limit=checker.count(body.limit, "limit"),
        offset=checker.count(body.offset, "offset"),
    )


class _ResultChecker:
    def __init__(self, body: qt.ReadBody, scope: Scope, context: Context) -> None:
        self.body = body
        self.scope = scope
        self.context = context
        self.expressions = ExpressionChecker(context, scope)
        self.failed: set[str] = set()

    # --- return --------------------------------------------------------------------------------

    def columns(self) -> tuple[Column, ...]:
        columns: dict[str, Column] = {}
        checked = [self.expressions.read_value(p.expr) for p in self.body.projections]
        grouped = any(e is not None and is_call(e, FunctionKind.AGGREGATE) for e in checked)
        for projection, expression in zip(self.body.projections, checked, strict=True):
            name = column_name(projection)
            if expression is None:
                self.failed.add(name)
                continue
            if grouped and not _is_group_key(projection.expr, expression):
                self.context.error(
                    Code.UNGROUPED_OR_UNCORRELATED,
                    f"`{name}` is neither an aggregate nor a property or variable to group by",
                    projection.span,
                )
            if name in columns:
                self.context.error(
                    Code.DUPLICATE_COLUMN,
                    f"two result columns are called `{name}`",
                    projection.span,
                    hint="give one of them an alias: `… as name`",
                )
                continue
            columns[name] = Column(name, expression)
        return tuple(columns.values())

    # --- order ---------------------------------------------------------------------------------

    def sort(self, columns: tuple[Column, ...]) -> tuple[SortKey, ...]:
        keys: list[SortKey] = []
        by_name = {column.name: column for column in columns}
        for ordering in self.body.orderings:
            expression = self._sort_expression(ordering, by_name)
            if expression is None:
                continue
            self._check_ranking(ordering, expression)
            if not expression.type.orderable:
                self.context.error(
                    Code.ORDER_INVALID,
                    f"a {expression.type.base_text} has no order",
                    ordering.span,
                )
                continue
            keys.append(SortKey(expression, _is_descending(ordering, expression)))
        return tuple(keys)

    def _sort_expression(
        self, ordering: qt.Ordering, by_name: dict[str, Column]
    ) -> Expression | None:
        written = ordering.expr
        if isinstance(written, qt.AliasRef):
            return self._alias(written, by_name)
        if isinstance(written, qt.Literal | qt.ListLiteral):
            self.context.error(
                Code.ORDER_INVALID, "ordering by a constant has no effect", ordering.span
            )
            return None
        expression = self.expressions.read_value(written)
        if expression is None:
            return None
        if isinstance(expression, ParameterRef) or is_call(expression, FunctionKind.SCALAR):
            message = "ordering by a parameter or constant has no effect"
            self.context.error(Code.ORDER_INVALID, message, ordering.span)
            return None
        if is_call(expression, FunctionKind.PREDICATE):
            message = "a condition cannot be ordered by; give it an alias in `return`"
            self.context.error(Code.ORDER_INVALID, message, ordering.span)
            return None
        return self._among_columns(expression, ordering, by_name.values())

    def _alias(self, written: qt.AliasRef, by_name: dict[str, Column]) -> Expression | None:
        column = by_name.get(written.name)
        if column is None and written.name not in self.failed:
            self.context.error(
                Code.ORDER_INVALID,
                f"`{written.name}` is no column of the result",
                written.span,
                hint=did_you_mean(written.name, by_name),
            )
        return None if column is None else column.expression

    def _among_columns(
        self, expression: Expression, ordering: qt.Ordering, columns: Collection[Column]
    ) -> Expression | None:
        """Check that grouped or distinct rows still have what they are ordered by."""
        grouped = any(is_call(c.expression, FunctionKind.AGGREGATE) for c in columns)
        aggregate = is_call(expression, FunctionKind.AGGREGATE)
        if not (grouped or self.body.distinct or aggregate):
            return expression
        if any(column.expression == expression for column in columns):
            return expression
        why = "grouped" if grouped or aggregate else "distinct"
        self.context.error(
            Code.ORDER_INVALID,
            f"{why} results can only be ordered by their own columns",
            ordering.span,
            hint="add it to `return`",
        )
        return None

    def _check_ranking(self, ordering: qt.Ordering, expression: Expression) -> None:
        if not isinstance(expression, FunctionCall):
            return
        if expression.function.kind is not FunctionKind.RANK:
            return
        name = expression.function.name
        if expression.function.needs_limit is not None and self.body.limit is None:
            message = f"ordering by {name}() needs a limit"
            hint = "say how many of the best matches you want: `limit 10`"
            self.context.error(expression.function.needs_limit, message, ordering.span, hint=hint)
        others = [o.expr for o in self.body.orderings if o is not ordering]
        if name == "nearest" and any(isinstance(other, qt.AliasRef) for other in others):
            message = "ordering by nearest() cannot be combined with an alias"
            hint = "write the property instead of the alias"
            self.context.error(Code.NEAREST_WITH_ALIAS, message, ordering.span, hint=hint)
        natural = qt.Direction.DESC if expression.function.best_is_highest else qt.Direction.ASC
        if ordering.direction not in (None, natural):
            message = f"`{ordering.direction}` has no effect: {name}() puts the best match first"
            self.context.warn(Code.DIRECTION_IGNORED, message, ordering.span)

    # --- limit and offset ----------------------------------------------------------------------

    def count(self, written: qt.Count | None, word: str) -> Count | None:
        """Check the operand of `limit` or `offset`."""
        match written:
            case None:
                return None
            case qt.Literal(value=value):
                assert isinstance(value, int)
                return value
            case qt.Variable():
                found = parameter(written, self.context)
                if found is None:
                    return None
                if not found.type.spec.integer or found.type.is_list:
                    self._not_a_count(word, found, written.span)
                    return None
                return found

    def _not_a_count(self, word: str, found: ParameterRef, span: Span) -> None:
        message = f"{word} needs an integer, but `${found.name}` is {found.type}"
        hint = f"declare it as `${found.name}: I64`"
        self.context.error(Code.ORDER_INVALID, message, span, hint=hint)


def _is_descending(ordering: qt.Ordering, expression: Expression) -> bool:
    """A ranking puts the best match first whatever is written; the rest is ascending by default."""
    if isinstance(expression, FunctionCall) and expression.function.kind is FunctionKind.RANK:
        return expression.function.best_is_highest
    return ordering.direction is qt.Direction.DESC


def column_name(projection: qt.Projection) -> str:
    """Return the name of a result column.

    An alias wins; else `var.property`, the variable's name, `literal`, or a function's name. An
    aggregate is called like its argument.
    """
    if projection.alias is not None:
        return projection.alias.text
    return _natural_name(projection.expr)


def _natural_name(expr: qt.Expr) -> str:
    match expr:
        case qt.Access(variable=variable, property=name):
            return f"{variable.name}.{name}"
        case qt.Variable(name=name) | qt.AliasRef(name=name) | qt.EdgePath(edge=Name(text=name)):
            return name
        case qt.Literal() | qt.ListLiteral():
            return "literal"
        case qt.Call(function=function, arguments=arguments):
            spec = FUNCTIONS.get(function.text)
            if spec is not None and spec.kind is FunctionKind.AGGREGATE and arguments:
                return _natural_name(arguments[0])
            return function.text


def _is_group_key(written: qt.Expr, expression: Expression) -> bool:
    if is_call(expression, FunctionKind.AGGREGATE):
        return True
    is_variable = isinstance(written, qt.Access | qt.Variable)
    return is_variable and isinstance(expression, PropertyRef | ParameterRef)
