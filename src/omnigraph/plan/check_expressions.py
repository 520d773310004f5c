"""Type checks of expressions and conditions of a read query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from omnigraph.lang import Code, TextSpan, did_you_mean
from omnigraph.lang import query_tree as qt
from omnigraph.lang.diagnostics import nearest_name
from omnigraph.lang.query_tree import ComparisonOperator
from omnigraph.lang.source import Name
from omnigraph.plan.check_values import check_constant_call, check_literal, find_literal_mismatch
from omnigraph.plan.expressions import (
    ANY_LENGTH,
    And,
    Binding,
    Case,
    Compare,
    Constant,
    EdgePath,
    EntityKind,
    Expression,
    FunctionCall,
    Hops,
    IsIn,
    IsNull,
    Or,
    ParameterRef,
    Predicate,
    PredicateCall,
    PropertyRef,
    has_predicate_call,
    is_call,
    is_computed,
    is_constant,
    is_row_value,
)
from omnigraph.plan.functions import (
    FUNCTIONS,
    OPERATORS,
    FunctionArgument,
    FunctionArgumentKind,
    FunctionKind,
    FunctionSpec,
)
from omnigraph.plan.result_types import any_nullable, common_type
from omnigraph.plan.type_check_context import (
    BindingScope,
    TypeCheckContext,
    resolve_direction,
    resolve_edge_type,
    resolve_hops,
)
from omnigraph.types import PropertyType, Scalar

_ID = PropertyType(Scalar.STRING)
_FIELDS = (FunctionArgumentKind.TEXT_PROPERTY, FunctionArgumentKind.VECTOR_PROPERTY)
_TIMES = (Scalar.DATE, Scalar.DATE_TIME)


class ExpressionChecker:
    """Checks expressions in one scope; None means that the error has been reported."""

    def __init__(self, context: TypeCheckContext, scope: BindingScope) -> None:
        self.context = context
        self.scope = scope

    # --- expressions ---------------------------------------------------------------------------

    def read_value(self, expr: qt.Expr) -> Expression | None:
        """Check an expression whose value reaches the result: no blob, no predicate variable."""
        expression = self.expression(expr)
        if expression is not None and expression.type.scalar is Scalar.BLOB:
            self.context.error(
                Code.BLOB_READ,
                "a Blob cannot be read by a query",
                expr.span,
                hint="fetch it with the blob interface, by type, id and property",
            )
            return None
        return expression

    def expression(self, expr: qt.Expr) -> Expression | None:
        """Check any expression."""
        match expr:
            case qt.Literal() | qt.ListLiteral():
                return check_literal(expr, self.context)
            case qt.Variable():
                return self._variable(expr)
            case qt.PropertyAccess():
                return self.access(expr)
            case qt.CallExpression():
                return self.call(expr)
            case qt.ArithmeticExpression(left=left, operator=operator, right=right):
                return self._computed(OPERATORS[operator], (left, right), expr.span)
            case qt.CaseExpression():
                return self._case(expr)
            case qt.AliasRef():
                self.context.error(
                    Code.UNBOUND_VARIABLE,
                    f"`{expr.name}` is neither a variable nor a value",
                    expr.span,
                    hint=self._bare_word_hint(expr.name),
                )
                return None
            case qt.EdgePathExpression():
                message = f"a path along edges like `{expr.edge}` is not a value"
                hint = "only shortest_path() and path_length() take one"
                self.context.error(Code.FUNCTION_MISUSE, message, expr.span, hint=hint)
                return None

    def _bare_word_hint(self, word: str) -> str:
        if word in self.scope.bindings or word in self.context.parameters:
            return f"did you mean `${word}`?"
        return "variables are written with `$`, text in double quotes"

    def _variable(self, variable: qt.Variable) -> Expression | None:
        type_ = self.context.parameters.get(variable.name)
        if type_ is not None:
            return ParameterRef(variable.name, type_)
        binding = self.scope.get(variable)
        if binding is None and variable.name in self.scope.invalid:
            return None
        if binding is None:
            names = {*self.scope.bindings, *self.context.parameters}
            hint = did_you_mean(variable.name, names, prefix="$")
            if self.context.is_anonymous and nearest_name(variable.name, names) is None:
                hint = self.context.declaration_hint(variable.name)
            self.context.error(
                Code.UNBOUND_VARIABLE,
                f"`${variable.name}` is neither bound by the match nor a parameter",
                variable.span,
                hint=hint,
            )
            return None
        if binding.kind is EntityKind.EDGE:
            self.context.error(
                Code.EDGE_VARIABLE_MISUSE,
                f"edge variable `${variable.name}` cannot be used bare",
                variable.span,
                hint=f"use one of its properties: `${variable.name}.…`",
            )
            return None
        return PropertyRef(binding.name, "id", self._row_type(variable, _ID))

    def _row_type(self, variable: qt.Variable, type_: PropertyType) -> PropertyType:
        """Return the type of a property in a row that may have no entity for the variable."""
        return type_.as_nullable() if variable.name in self.scope.optional else type_

    def access(self, access: qt.PropertyAccess) -> PropertyRef | None:
        """Check `$x.p`."""
        binding = self.scope.get(access.variable)
        name = access.variable.name
        if binding is None and name in self.scope.invalid:
            return None
        if binding is None:
            hint = self.scope.hint(name)
            if name in self.context.parameters:
                hint = f"`${name}` is a parameter; parameters have no properties"
            message = f"`${name}` is not bound here"
            self.context.error(Code.UNKNOWN_PROPERTY, message, access.variable.span, hint=hint)
            return None
        property_ = self.context.property(binding, access.property, Code.UNKNOWN_PROPERTY)
        if property_ is None:
            return None
        type_ = self._row_type(access.variable, property_.type)
        return PropertyRef(binding.name, property_.name, type_)

    # --- functions -----------------------------------------------------------------------------

    def call(self, call: qt.CallExpression) -> FunctionCall | None:
        """Check a call against its row of the function table."""
        spec = FUNCTIONS.get(call.function.text)
        if spec is None:
            self.context.error(
                Code.FUNCTION_MISUSE,
                f"unknown function `{call.function}`",
                call.function.span,
                hint=did_you_mean(call.function.text, FUNCTIONS),
            )
            return None
        if not spec.arguments:
            return check_constant_call(call, self.context)
        if call.distinct and not spec.allows_distinct:
            message = f"{spec.name}() cannot be distinct"
            hint = "only count() and collect() take each value once"
            self.context.error(Code.FUNCTION_MISUSE, message, call.span, hint=hint)
            return None
        if not spec.takes(len(call.arguments)):
            message = f"{spec.name}() takes {_argument_count_text(spec)}, not {len(call.arguments)}"
            hint = f"write `{spec.signature}`"
            self.context.error(Code.FUNCTION_MISUSE, message, call.span, hint=hint)
            return None
        if spec.kind is FunctionKind.PATH:
            return self._path(spec, call)
        if spec.kind is FunctionKind.SCALAR:
            return self._computed(spec, call.arguments, call.span)
        return self._arguments(spec, call)

    def _arguments(self, spec: FunctionSpec, call: qt.CallExpression) -> FunctionCall | None:
        arguments: list[Expression] = []
        for argument, written in zip(spec.arguments, call.arguments, strict=False):
            expression = self._argument(spec, argument, written)
            if expression is None or not self._fits(spec, argument, expression, written, arguments):
                return None
            if spec.kind is not FunctionKind.AGGREGATE and self._is_optional(spec, written):
                return None
            arguments.append(expression)
        result = spec.result_of([argument.type for argument in arguments])
        assert result is not None, "only computed values have types that may not fit"
        return FunctionCall(spec, tuple(arguments), result, call.distinct)

    def _is_optional(self, spec: FunctionSpec, written: qt.Expr) -> bool:
        """Report an argument that needs an entity of one type in every row, where rows differ."""
        variable = written.variable if isinstance(written, qt.PropertyAccess) else written
        if not isinstance(variable, qt.Variable):
            return False
        if variable.name in self.scope.optional:
            why = "which belongs to an `optional` block"
            hint = "use it inside that block, or a variable that every row has"
        elif variable.name in self.scope.polymorphic:
            why = "which is bound to an interface"
            hint = "bind it to one of the types that implement the interface"
        else:
            return False
        message = f"{spec.title} cannot use `${variable.name}`, {why}"
        self.context.error(spec.mismatch_code, message, written.span, hint=hint)
        return True

    # --- computed values -----------------------------------------------------------------------

    def _computed(
        self, spec: FunctionSpec, written: Sequence[qt.Expr], span: TextSpan
    ) -> FunctionCall | None:
        """Check a function of values; all arguments are checked, so that all errors are shown."""
        checked: list[Expression] = []
        for argument, expr in zip(spec.arguments_for(len(written)), written, strict=True):
            expression = self._row_value(spec.title, expr)
            if expression is not None and self._fits(spec, argument, expression, expr, []):
                checked.append(expression)
        if len(checked) < len(written):
            return None
        result = spec.result_of([argument.type for argument in checked])
        if result is None:
            what = " and ".join(map(_describe_expression, checked))
            self.context.error(
                spec.mismatch_code, f"{spec.title}: {what} have no common type", span
            )
            return None
        return FunctionCall(spec, tuple(checked), result)

    def _row_value(self, owner: str, written: qt.Expr) -> Expression | None:
        """Check a part of a computed value, which is made of values of the row alone."""
        expression = self.read_value(written)
        if expression is None or is_row_value(expression):
            return expression
        assert isinstance(expression, FunctionCall), "every other value depends on the row alone"
        self.context.error(
            Code.FUNCTION_MISUSE,
            f"{owner} cannot contain {expression.function.name}()",
            written.span,
            hint=f"it takes properties, literals, parameters and functions of these; "
            f"{_FUNCTION_CLAUSES[expression.function.kind]}",
        )
        return None

    def _case(self, case: qt.CaseExpression) -> Case | None:
        """Check `case`: its conditions, and that its values have a common type."""
        conditions = [self._case_condition(branch.condition) for branch in case.branches]
        written = [branch.value for branch in case.branches]
        written += [] if case.otherwise is None else [case.otherwise]
        values = [self._row_value("case", expr) for expr in written]
        checked = [value for value in values if value is not None]
        kept = [condition for condition in conditions if condition is not None]
        if len(checked) < len(values) or len(kept) < len(conditions):
            return None
        types = [value.type for value in checked]
        result = common_type(types)
        if result is None or result.scalar is Scalar.VECTOR:
            what = " and ".join(map(_describe_expression, checked))
            reason = "have no common type" if result is None else "cannot be chosen: vectors"
            self.context.error(Code.INCOMPATIBLE_TYPES, f"case: {what} {reason}", case.span)
            return None
        nullable = case.otherwise is None or any_nullable(types)
        branches = tuple(zip(kept, checked, strict=False))
        otherwise = None if case.otherwise is None else checked[-1]
        return Case(branches, otherwise, result.as_nullable(nullable))

    def _case_condition(self, written: qt.Condition) -> Predicate | None:
        condition = self.condition(written)
        if condition is None or not has_predicate_call(condition):
            return condition
        message = "a condition of `case` cannot search texts"
        hint = _FUNCTION_CLAUSES[FunctionKind.PREDICATE]
        self.context.error(Code.FUNCTION_MISUSE, message, written.span, hint=hint)
        return None

    def _path(self, spec: FunctionSpec, call: qt.CallExpression) -> FunctionCall | None:
        """Check `f($a, edge{1,8}, $b)`; an edge without bounds is followed as far as it leads."""
        start, end = (self._node(spec, place, call.arguments[place]) for place in (0, 2))
        path = _as_edge_path(call.arguments[1])
        if path is None:
            self._report_mismatch(spec, spec.arguments[1], call.arguments[1].span)
            return None
        edge = resolve_edge_type(path, self.context)
        hops = Hops(1, ANY_LENGTH)
        if path.hops is not None:
            bounds = resolve_hops(path.hops, path.hops.maximum or ANY_LENGTH, self.context)
            if bounds is None:
                return None
            hops = bounds
        if edge is None or start is None or end is None:
            return None
        direction = resolve_direction(edge, start, end, self.context, undirected=path.undirected)
        if direction is None:
            return None
        first, last = (PropertyRef(binding.name, "id", _ID) for _, binding in (start, end))
        arguments = (first, EdgePath(edge.name, direction, hops), last)
        result = spec.result_of([_ID])
        assert result is not None, "a path function has a type of its own"
        return FunctionCall(spec, arguments, result)

    def _node(
        self, spec: FunctionSpec, place: int, written: qt.Expr
    ) -> tuple[qt.Variable, Binding] | None:
        expression = self.expression(written)
        if expression is None:
            return None
        binding = self.scope.get(written) if isinstance(written, qt.Variable) else None
        if binding is None or not isinstance(written, qt.Variable):
            self._report_mismatch(spec, spec.arguments[place], written.span)
            return None
        if self._is_optional(spec, written):
            return None
        return written, binding

    def _argument(
        self, spec: FunctionSpec, argument: FunctionArgument, written: qt.Expr
    ) -> Expression | None:
        if argument.kind in _FIELDS:
            return self._field(spec, argument, written)
        if argument.kind is FunctionArgumentKind.RANKING:
            nested = _called_function(written)
            if nested is None or nested.kind is not FunctionKind.RANK or nested is spec:
                self._report_mismatch(spec, argument, written.span)
                return None
        expression = self.read_value(written)
        if expression is not None and is_call(expression, FunctionKind.AGGREGATE):
            message = f"{spec.name}() cannot contain another aggregate"
            self.context.error(Code.AGGREGATE_MISFIT, message, written.span)
            return None
        return expression

    def _field(
        self, spec: FunctionSpec, argument: FunctionArgument, written: qt.Expr
    ) -> PropertyRef | None:
        """Check the property that a search function searches."""
        if not isinstance(written, qt.PropertyAccess):
            self._report_mismatch(spec, argument, written.span)
            return None
        binding = self.scope.get(written.variable)
        if binding is not None and binding.kind is EntityKind.EDGE:
            self.context.error(
                Code.EDGE_VARIABLE_MISUSE,
                f"{spec.name}() cannot look into edge variable `${written.variable.name}`",
                written.span,
            )
            return None
        if written.variable.name in self.scope.invalid and binding is None:
            return None
        if spec.mismatch_code is Code.BOUNDS_OR_NEAREST and (
            binding is None
            or self.context.entity_type(binding).lookup(written.property.text) is None
        ):
            what = f"`${written.variable.name}.{written.property}`"
            message = f"{spec.name}() names unknown property {what}"
            properties = self.context.entity_type(binding).properties if binding else {}
            hint = did_you_mean(written.property.text, properties) if binding else None
            self.context.error(spec.mismatch_code, message, written.span, hint=hint)
            return None
        return self.access(written)

    def _report_mismatch(
        self, spec: FunctionSpec, argument: FunctionArgument, span: TextSpan
    ) -> None:
        message = f"{spec.name}(): {argument.name} must be {argument.kind}"
        self.context.error(spec.mismatch_code, message, span)

    def _fits(
        self,
        spec: FunctionSpec,
        argument: FunctionArgument,
        expression: Expression,
        written: qt.Expr,
        before: list[Expression],
    ) -> bool:
        type_ = expression.type
        match argument.kind:
            case FunctionArgumentKind.POSITIVE if isinstance(expression, Constant):
                fits = _is_integer(type_) and expression.value > 0
            case FunctionArgumentKind.VECTOR_OR_TEXT:
                fits = _is_nearest_query(before[0].type, expression)
            case kind:
                fits = kind not in _ARGUMENT_TESTS or _ARGUMENT_TESTS[kind](type_)
        if not fits:
            takes = f"{argument.kind}, not {_describe_expression(expression)}"
            message = f"{spec.title}: {argument.name} must be {takes}"
            self.context.error(spec.mismatch_code, message, written.span)
        return fits

    # --- conditions ----------------------------------------------------------------------------

    def condition(self, condition: qt.Condition) -> Predicate | None:
        """Check a condition of a match block."""
        match condition:
            case qt.ComparisonCondition():
                return self._comparison(condition)
            case qt.NullCondition(operand=operand, negated=negated):
                checked = self._operand(operand)
                return None if checked is None else IsNull(checked, negated)
            case qt.MembershipCondition():
                return self._membership(condition)
            case qt.CallCondition(call=call):
                return self._holds(call)
            case qt.AndCondition(conditions=conditions) | qt.OrCondition(conditions=conditions):
                parts = [self.condition(part) for part in conditions]
                kept = tuple(part for part in parts if part is not None)
                if len(kept) < len(parts):
                    return None
                return And(kept) if isinstance(condition, qt.AndCondition) else Or(kept)

    def _holds(self, call: qt.CallExpression) -> PredicateCall | None:
        spec = FUNCTIONS.get(call.function.text)
        if spec is not None and spec.kind is not FunctionKind.PREDICATE:
            self.context.error(
                Code.FUNCTION_MISUSE,
                f"{spec.name}() is not a condition",
                call.span,
                hint=_FUNCTION_CLAUSES[spec.kind],
            )
            return None
        checked = self.call(call)
        return None if checked is None else PredicateCall(checked)

    def _operand(self, expr: qt.Expr) -> Expression | None:
        """Check one side of a comparison: a value of the row, a literal, a parameter or now()."""
        expression = self.expression(expr)
        if expression is None:
            return None
        if isinstance(expr, qt.Variable) and isinstance(expression, PropertyRef):
            self.context.error(
                Code.INCOMPATIBLE_TYPES,
                f"node variable `${expr.name}` cannot be compared",
                expr.span,
                hint=f"compare its id: `${expr.name}.id`",
            )
            return None
        if (
            isinstance(expression, FunctionCall)
            and not is_constant(expression)
            and not is_computed(expression)
        ):
            self.context.error(
                Code.INCOMPATIBLE_TYPES,
                f"{expression.function.name}() cannot be compared",
                expr.span,
                hint=_FUNCTION_CLAUSES[expression.function.kind],
            )
            return None
        return expression

    def _comparison(self, comparison: qt.ComparisonCondition) -> Predicate | None:
        bare = _predicate_compared_with_true(comparison)
        if bare is not None:
            return self._holds(bare)
        left, right = self._operand(comparison.left), self._operand(comparison.right)
        if left is None or right is None:
            return None
        operator = comparison.operator
        try:
            checked = Compare(left, operator, right)
        except ValueError:
            self.context.error(
                Code.INCOMPATIBLE_TYPES,
                f"cannot compare {_describe_expression(left)} {operator} "
                f"{_describe_expression(right)}",
                comparison.span,
                hint=_comparison_hint(left, operator, right),
            )
            return None
        self._warn_never_matches(checked, comparison)
        return checked

    def _warn_never_matches(self, compare: Compare, written: qt.ComparisonCondition) -> None:
        for one, other in ((compare.left, compare.right), (compare.right, compare.left)):
            if compare.operator is not ComparisonOperator.EQ or not isinstance(other, Constant):
                continue
            if not isinstance(one, PropertyRef) or one.type.enum_values is None:
                continue
            problem, hint = find_literal_mismatch(other, one.type, exact=False)
            if problem is not None:
                message = f"`{one.property}` {problem}, so this never matches"
                self.context.warn(Code.NEVER_MATCHES, message, written.span, hint=hint)

    def _membership(self, membership: qt.MembershipCondition) -> IsIn | None:
        operand, choices = self._operand(membership.operand), self._operand(membership.choices)
        if operand is None or choices is None:
            return None
        if isinstance(choices, Constant) and choices.value == []:
            choices = Constant([], PropertyType(operand.type.scalar, is_list=True))
        if operand.type.orderable:
            try:
                return IsIn(operand, choices)
            except ValueError:
                pass
        self.context.error(
            Code.INCOMPATIBLE_TYPES,
            f"cannot look for {_describe_expression(operand)} in {_describe_expression(choices)}",
            membership.span,
        )
        return None


_FUNCTION_CLAUSES = {
    FunctionKind.AGGREGATE: "aggregates are allowed in `return`",
    FunctionKind.RANK: "rankings are allowed in `order` and `return`",
    FunctionKind.PREDICATE: "write it alone as a condition; negate it with `not { … }`",
    FunctionKind.PATH: "paths are allowed in `return` and `order`",
    FunctionKind.CONSTANT: "compare it with a property",
    FunctionKind.SCALAR: "compare it with a value",
}


def _is_integer(type_: PropertyType) -> bool:
    return type_.spec.integer and not type_.is_list


_ARGUMENT_TESTS: Mapping[FunctionArgumentKind, Callable[[PropertyType], bool]] = {
    FunctionArgumentKind.NUMBER: lambda type_: type_.numeric,
    FunctionArgumentKind.ORDERABLE: lambda type_: type_.orderable,
    FunctionArgumentKind.TEXT_PROPERTY: lambda type_: type_.text,
    FunctionArgumentKind.TEXT: lambda type_: type_.text,
    FunctionArgumentKind.INTEGER: _is_integer,
    FunctionArgumentKind.POSITIVE: _is_integer,
    FunctionArgumentKind.VECTOR_PROPERTY: lambda type_: type_.scalar is Scalar.VECTOR,
    FunctionArgumentKind.TIME: lambda type_: not type_.is_list and type_.scalar in _TIMES,
    FunctionArgumentKind.INSTANT: lambda type_: (
        not type_.is_list and type_.scalar is Scalar.DATE_TIME
    ),
    FunctionArgumentKind.VALUE: lambda type_: type_.scalar is not Scalar.VECTOR,
}
"""The types that a kind of argument accepts; a kind that is not here accepts all."""


def _predicate_compared_with_true(comparison: qt.ComparisonCondition) -> qt.CallExpression | None:
    """Return the call of `predicate(…) = true`, which means the same as the call alone."""
    match comparison:
        case qt.ComparisonCondition(
            left=qt.CallExpression() as call,
            operator=ComparisonOperator.EQ,
            right=qt.Literal(scalar=Scalar.BOOL, value=True),
        ):
            spec = _called_function(call)
            return call if spec is not None and spec.kind is FunctionKind.PREDICATE else None
    return None


def _called_function(written: qt.Expr) -> FunctionSpec | None:
    return FUNCTIONS.get(written.function.text) if isinstance(written, qt.CallExpression) else None


def _is_nearest_query(vector: PropertyType, query: Expression) -> bool:
    """Return whether nearest() can compare a vector property with this query."""
    if query.type.text:
        return True
    if isinstance(query, Constant) and query.type.is_list:
        return query.type.spec.numeric and len(query.value) == vector.dimension
    return vector.comparable_with(query.type)


def _as_edge_path(written: qt.Expr) -> qt.EdgePathExpression | None:
    if isinstance(written, qt.AliasRef):
        return qt.EdgePathExpression(Name(written.name, span=written.span), span=written.span)
    return written if isinstance(written, qt.EdgePathExpression) else None


def _argument_count_text(spec: FunctionSpec) -> str:
    least, most = spec.argument_counts
    counts = str(most) if least == most else f"{least} or {most}"
    if most is None:
        counts = f"{least} or more"
    return f"{counts} argument{'' if counts == '1' else 's'}"


def _describe_expression(expression: Expression) -> str:
    """Name an expression and its type for a message."""
    match expression:
        case PropertyRef(property=name, type=type_):
            return f"{name} ({type_.base_text})"
        case ParameterRef(name=name, type=type_):
            return f"${name} ({type_.base_text})"
        case Constant(value=value, type=type_):
            if type_.is_list:
                return f"a list of {len(value)} value{'' if len(value) == 1 else 's'}"
            return f"{'an' if type_.base_text[0] in 'IF' else 'a'} {type_.base_text} literal"
        case EdgePath(edge=edge):
            return f"edges {edge}"
        case FunctionCall(function=function, type=type_):
            return (
                function.title if function.name.isidentifier() else f"a value ({type_.base_text})"
            )
        case Case(type=type_):
            return f"a case ({type_.base_text})"


def _comparison_hint(
    left: Expression, operator: ComparisonOperator, right: Expression
) -> str | None:
    if operator in (ComparisonOperator.CONTAINS, ComparisonOperator.STARTS_WITH):
        return f"`{operator}` needs text on both sides" + (
            ", or a list on the left" if operator is ComparisonOperator.CONTAINS else ""
        )
    scalars = {left.type.scalar, right.type.scalar}
    if left.type.is_list and operator is ComparisonOperator.EQ and not right.type.is_list:
        return "ask for membership with `contains`"
    if Scalar.STRING in scalars and Scalar.DATE in scalars:
        return 'write a day as `date("2024-05-01")`'
    if Scalar.STRING in scalars and Scalar.DATE_TIME in scalars:
        return 'write an instant as `datetime("2024-05-01T12:00:00Z")`'
    return None
