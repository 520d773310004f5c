"""Type checks of a read query: its match block, and what it returns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import assert_never

from omnigraph.catalog.model import EdgeType
from omnigraph.lang import Code, did_you_mean
from omnigraph.lang import query_tree as qt
from omnigraph.lang.source import Name, SyntaxNode
from omnigraph.plan.check_expressions import ExpressionChecker
from omnigraph.plan.check_values import check_match_value, check_parameter
from omnigraph.plan.expressions import (
    Binding,
    Compare,
    EntityKind,
    Expression,
    FunctionCall,
    Hops,
    MatchPattern,
    ParameterRef,
    PatternStep,
    PropertyRef,
    is_call,
    is_computed,
    is_constant,
    property_refs,
)
from omnigraph.plan.functions import FUNCTIONS, FunctionKind
from omnigraph.plan.operators import OutputColumn, SliceBound, SortKey
from omnigraph.plan.type_check_context import (
    BindingScope,
    TypeCheckContext,
    endpoint_types,
    report_wrong_endpoint,
    resolve_direction,
    resolve_edge_type,
    resolve_hops,
)


def check_match(
    clauses: Iterable[qt.MatchClause], scope: BindingScope, context: TypeCheckContext
) -> MatchPattern:
    """Check clauses in the order of the text; bindings they introduce are added to the scope."""
    checker = _MatchChecker(context, scope)
    for clause in clauses:
        checker.clause(clause)
    return checker.pattern


class _MatchChecker:
    def __init__(self, context: TypeCheckContext, scope: BindingScope) -> None:
        self.context = context
        self.scope = scope
        self.expressions = ExpressionChecker(context, scope)
        self.pattern = MatchPattern()

    def clause(self, clause: qt.MatchClause) -> None:
        match clause:
            case qt.BindingClause():
                self._binding(clause)
            case qt.TraversalClause():
                self._traversal(clause)
            case qt.FilterClause(condition=condition):
                predicate = self.expressions.condition(condition)
                if predicate is not None:
                    self.pattern.filters.append(predicate)
            case qt.NegationClause() | qt.ExistsClause() | qt.OptionalClause():
                self._block(clause)
            case _ as unreachable:
                assert_never(unreachable)

    # --- bindings ------------------------------------------------------------------------------

    def _binding(self, clause: qt.BindingClause) -> None:
        type_name = clause.type_name.text
        if type_name not in self.context.catalog.nodes:
            self._unknown_type(clause)
            self.scope.mark_invalid(clause.variable)
            return
        if self._is_optional_here(clause.variable):
            return
        binding = self.scope.get(clause.variable)
        if binding is None:
            new = self.context.new_binding(clause.variable.name, EntityKind.NODE, type_name)
            binding = self.scope.bind(clause.variable, new)
            self.pattern.declared.append(binding)
        elif binding.kind is EntityKind.EDGE:
            message = f"edge variable `${clause.variable.name}` cannot be bound to a node type"
            self.context.error(Code.EDGE_VARIABLE_MISUSE, message, clause.variable.span)
            return
        elif binding.type_name != type_name:
            self.context.error(
                Code.VARIABLE_REBOUND,
                f"`${clause.variable.name}` is a {binding.type_name} already, "
                f"it cannot also be a {type_name}",
                clause.type_name.span,
            )
            return
        elif binding not in self.pattern.declared and clause.variable.name not in self.scope.outer:
            self.pattern.declared.append(binding)
        for match in clause.matches:
            self._property_match(binding, match)

    def _unknown_type(self, clause: qt.BindingClause) -> None:
        catalog, name = self.context.catalog, clause.type_name.text
        hint = did_you_mean(name, catalog.nodes)
        if name in catalog.edges:
            word = name[0].lower() + name[1:]
            hint = f"{name} is an edge type; follow it with `$a {word} $b`"
        elif name in catalog.interfaces:
            hint = f"{name} is an interface; inside of a block bind a type that implements it"
        message = f"unknown node type `{name}`"
        self.context.error(Code.UNKNOWN_NODE_TYPE, message, clause.type_name.span, hint=hint)

    def _property_match(self, binding: Binding, match: qt.PropertyMatch) -> None:
        property_ = self.context.property(binding, match.property, Code.UNKNOWN_MATCH_PROPERTY)
        if property_ is None:
            return
        place = f"{binding.type_name}.{property_.name}"
        value = check_match_value(match.value, property_, place, self.context)
        if value is not None:
            left = PropertyRef(binding.name, property_.name, property_.type)
            operator = (
                qt.ComparisonOperator.CONTAINS
                if property_.type.is_list
                else qt.ComparisonOperator.EQ
            )
            self.pattern.filters.append(Compare(left, operator, value))

    # --- traversals ----------------------------------------------------------------------------

    def _traversal(self, clause: qt.TraversalClause) -> None:
        path = qt.EdgePathExpression(clause.edge, clause.undirected, clause.hops)
        edge = resolve_edge_type(path, self.context)
        hops = self._hops(clause)
        src, dst = self._endpoint(clause.src), self._endpoint(clause.dst)
        if edge is None or src is _INVALID_BINDING or dst is _INVALID_BINDING:
            self.scope.mark_invalid(clause.src, clause.dst, clause.edge_variable)
            return
        written = ((clause.src, src), (clause.dst, dst))
        direction = resolve_direction(edge, *written, self.context, undirected=clause.undirected)
        if direction is None:
            self.scope.mark_invalid(clause.src, clause.dst, clause.edge_variable)
            return
        first, second = endpoint_types(edge, direction)
        src = src or self._introduce(clause.src, first)
        # `$a edge $a` is a self-loop: the first endpoint just introduced is the second.
        dst = dst or self.scope.get(clause.dst) or self._introduce(clause.dst, second)
        if dst.type_name != second:
            report_wrong_endpoint(edge, clause.dst, dst, self.context)
            return
        edge_binding = self._edge_binding(clause, edge)
        if hops is not None:
            step = PatternStep(
                src=src,
                edge=edge.name,
                dst=dst,
                direction=direction,
                hops=hops,
                edge_binding=edge_binding,
            )
            self.pattern.steps.append(step)

    def _hops(self, clause: qt.TraversalClause) -> Hops | None:
        written = clause.hops
        if written is None:
            return Hops()
        if clause.edge_variable is not None and (written.minimum, written.maximum) != (1, 1):
            self.context.error(
                Code.EDGE_VARIABLE_MISUSE,
                "an edge variable cannot be combined with hop bounds",
                written.span,
                hint="drop the edge variable or the bounds",
            )
            return None
        if written.maximum is None:
            self.context.error(
                Code.BOUNDS_OR_NEAREST,
                "unbounded traversal is disabled",
                written.span,
                hint=f"give a maximum: `{{{written.minimum},{max(written.minimum, 3)}}}`",
            )
            return None
        return resolve_hops(written, written.maximum, self.context)

    def _endpoint(self, variable: qt.Variable) -> Binding | None:
        """Return the binding of an endpoint, None when it is new."""
        binding = self.scope.get(variable)
        if binding is not None and binding.kind is EntityKind.EDGE:
            message = f"edge variable `${variable.name}` cannot be an endpoint"
            self.context.error(Code.EDGE_VARIABLE_MISUSE, message, variable.span)
            return _INVALID_BINDING
        if self._is_optional_here(variable):
            return _INVALID_BINDING
        return (
            _INVALID_BINDING if binding is None and variable.name in self.scope.invalid else binding
        )

    def _introduce(self, variable: qt.Variable, type_name: str) -> Binding:
        binding = self.context.new_binding(variable.name, EntityKind.NODE, type_name)
        return self.scope.bind(variable, binding)

    def _edge_binding(self, clause: qt.TraversalClause, edge: EdgeType) -> Binding | None:
        variable = clause.edge_variable
        if variable is None or variable.name == qt.ANONYMOUS:
            return None
        if self.scope.get(variable) is not None:
            taken = variable.name in (clause.src.name, clause.dst.name)
            what = "is an endpoint of the same traversal" if taken else "is bound already"
            message = f"edge variable `${variable.name}` {what}"
            self.context.error(Code.EDGE_VARIABLE_MISUSE, message, variable.span)
            return None
        binding = self.context.new_binding(variable.name, EntityKind.EDGE, edge.name)
        return self.scope.bind(variable, binding)

    def _is_optional_here(self, variable: qt.Variable) -> bool:
        """Report a variable that an `optional` block beside this clause may leave without a node.

        Inside a block of its own the clause finds nothing for such rows, and says so.
        """
        name = variable.name
        if name not in self.scope.optional or name in self.scope.outer:
            return False
        self.context.error(
            Code.VARIABLE_REBOUND,
            f"`${name}` belongs to an `optional` block, so a row may have no node for it",
            variable.span,
            hint="go on from it inside that block, or in another `optional`, `exists` or `not`",
        )
        return True

    # --- blocks --------------------------------------------------------------------------------

    def _block(self, clause: qt.BlockClause) -> None:
        word, patterns = {
            qt.NegationClause: ("not", self.pattern.negations),
            qt.ExistsClause: ("exists", self.pattern.existences),
            qt.OptionalClause: ("optional", self.pattern.optionals),
        }[type(clause)]
        mentioned = {name for inner in clause.clauses for name in _clause_variables(inner)}
        if not mentioned & {*self.scope.bindings, *self.scope.invalid}:
            self.context.error(
                Code.UNGROUPED_OR_UNCORRELATED,
                f"this `{word}` block mentions no variable bound outside of it",
                clause.span,
                hint="use a variable of the enclosing pattern that stands before the block",
            )
            return
        inner = self.scope.child()
        patterns.append(check_match(clause.clauses, inner, self.context))
        if isinstance(clause, qt.OptionalClause):
            self.scope.adopt(inner)


_INVALID_BINDING = Binding("#wrong", EntityKind.EDGE, "")


def _clause_variables(clause: qt.MatchClause) -> Iterator[str]:
    """Yield the variables a clause of a block mentions itself, not in a nested block."""
    match clause:
        case qt.BindingClause(variable=variable):
            yield variable.name
        case qt.TraversalClause(src=src, dst=dst):
            yield src.name
            yield dst.name
        case qt.FilterClause(condition=condition):
            yield from (access.variable.name for access in property_accesses(condition))
        case qt.NegationClause() | qt.ExistsClause() | qt.OptionalClause():
            return
        case _ as unreachable:
            assert_never(unreachable)


def property_accesses(node: object) -> Iterator[qt.PropertyAccess]:
    """Yield every `$x.p` below a node of a syntax tree."""
    if isinstance(node, qt.PropertyAccess):
        yield node
    elif isinstance(node, SyntaxNode):
        yield from property_accesses(tuple(getattr(node, f.name) for f in fields(node)))
    elif isinstance(node, tuple):
        for part in node:
            yield from property_accesses(part)


# ----------------------------------------------------------------------
# The result: columns, order, limit, offset


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedResult:
    """The checked tail of a read query; `sort` keys are expressions of columns or bindings."""

    columns: tuple[OutputColumn, ...]
    distinct: bool
    sort: tuple[SortKey, ...]
    limit: SliceBound | None
    offset: SliceBound | None

    @property
    def is_aggregate(self) -> bool:
        """Whether rows are grouped."""
        return any(is_call(c.expression, FunctionKind.AGGREGATE) for c in self.columns)


def check_result(
    body: qt.ReadBody, scope: BindingScope, context: TypeCheckContext
) -> CheckedResult:
    """Check return, order, limit and offset; errors are in the context's report."""
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
    def __init__(self, body: qt.ReadBody, scope: BindingScope, context: TypeCheckContext) -> None:
        self.body = body
        self.scope = scope
        self.context = context
        self.expressions = ExpressionChecker(context, scope)
        self.failed: set[str] = set()

    # --- return --------------------------------------------------------------------------------

    def columns(self) -> tuple[OutputColumn, ...]:
        columns: dict[str, OutputColumn] = {}
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
            columns[name] = OutputColumn(name, expression)
        return tuple(columns.values())

    # --- order ---------------------------------------------------------------------------------

    def sort(self, columns: tuple[OutputColumn, ...]) -> tuple[SortKey, ...]:
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
        self, ordering: qt.OrderingTerm, by_name: dict[str, OutputColumn]
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
        is_same = is_computed(expression) and not any(property_refs(expression))
        if is_constant(expression) or is_same:
            message = "ordering by a parameter or constant has no effect"
            self.context.error(Code.ORDER_INVALID, message, ordering.span)
            return None
        if is_call(expression, FunctionKind.PREDICATE):
            message = "a condition cannot be ordered by; give it an alias in `return`"
            self.context.error(Code.ORDER_INVALID, message, ordering.span)
            return None
        return self._among_columns(expression, ordering, by_name.values())

    def _alias(self, written: qt.AliasRef, by_name: dict[str, OutputColumn]) -> Expression | None:
        column = by_name.get(written.name)
        if column is None and written.name not in self.failed:
            self.context.error(
                Code.ORDER_INVALID,
                f"`{written.name}` is not a column of the result",
                written.span,
                hint=did_you_mean(written.name, by_name),
            )
        return None if column is None else column.expression

    def _among_columns(
        self, expression: Expression, ordering: qt.OrderingTerm, columns: Collection[OutputColumn]
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

    def _check_ranking(self, ordering: qt.OrderingTerm, expression: Expression) -> None:
        if not isinstance(expression, FunctionCall) or not is_call(expression, FunctionKind.RANK):
            return
        name = expression.function.name
        if expression.function.needs_limit is not None and self.body.limit is None:
            message = f"ordering by {name}() needs a limit"
            hint = "say how many of the best matches you want: `limit 10`"
            self.context.error(expression.function.needs_limit, message, ordering.span, hint=hint)
        others = [o.expr for o in self.body.orderings if o is not ordering]
        refusal = expression.function.refuses_alias
        if refusal is not None and any(isinstance(other, qt.AliasRef) for other in others):
            message = f"ordering by {name}() cannot be combined with an alias"
            hint = "write the property instead of the alias"
            self.context.error(refusal, message, ordering.span, hint=hint)
        natural = (
            qt.SortDirection.DESC if expression.function.best_is_highest else qt.SortDirection.ASC
        )
        if ordering.direction not in (None, natural):
            message = f"`{ordering.direction}` has no effect: {name}() puts the best match first"
            self.context.warn(Code.DIRECTION_IGNORED, message, ordering.span)

    # --- limit and offset ----------------------------------------------------------------------

    def count(self, written: qt.CountExpression | None, word: str) -> SliceBound | None:
        """Check the operand of `limit` or `offset`."""
        match written:
            case None:
                return None
            case qt.Literal(value=value):
                assert isinstance(value, int)
                return value
            case qt.Variable():
                parameter = check_parameter(written, self.context)
                if parameter is None:
                    return None
                if parameter.type.spec.integer and not parameter.type.is_list:
                    return parameter
                message = f"{word} needs an integer, but `${parameter.name}` is {parameter.type}"
                hint = f"declare it as `${parameter.name}: I64`"
                self.context.error(Code.ORDER_INVALID, message, written.span, hint=hint)
                return None


def _is_descending(ordering: qt.OrderingTerm, expression: Expression) -> bool:
    """A ranking puts the best match first in every case; other keys are ascending by default."""
    if isinstance(expression, FunctionCall) and expression.function.kind is FunctionKind.RANK:
        return expression.function.best_is_highest
    return ordering.direction is qt.SortDirection.DESC


def column_name(projection: qt.Projection) -> str:
    """Return the name of a result column.

    An alias wins; else `var.property`, the variable's name, `literal`, `expression`, `case`, or a
    function's name. An aggregate is called like its argument.
    """
    if projection.alias is not None:
        return projection.alias.text
    return _default_column_name(projection.expr)


def _default_column_name(expr: qt.Expr) -> str:
    match expr:
        case qt.PropertyAccess(variable=variable, property=name):
            return f"{variable.name}.{name}"
        case (
            qt.Variable(name=name)
            | qt.AliasRef(name=name)
            | qt.EdgePathExpression(edge=Name(text=name))
        ):
            return name
        case qt.Literal() | qt.ListLiteral():
            return "literal"
        case qt.CallExpression(function=function, arguments=arguments):
            spec = FUNCTIONS.get(function.text)
            if spec is not None and spec.kind is FunctionKind.AGGREGATE and arguments:
                return _default_column_name(arguments[0])
            return function.text
        case qt.ArithmeticExpression():
            return "expression"
        case qt.CaseExpression():
            return "case"


def _is_group_key(written: qt.Expr, expression: Expression) -> bool:
    if is_call(expression, FunctionKind.AGGREGATE):
        return True
    if is_computed(expression):
        return any(property_refs(expression))
    is_variable = isinstance(written, qt.PropertyAccess | qt.Variable)
    return is_variable and isinstance(expression, PropertyRef | ParameterRef)
