"""Compile expressions and predicates to Spark columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, assert_never

from pyspark.sql import Column
from pyspark.sql import functions as F

from omnigraph.catalog import Metric
from omnigraph.lang.query_tree import ComparisonOperator
from omnigraph.pipeline.connector.columns import spark_type
from omnigraph.pipeline.query.checked import checked, let
from omnigraph.pipeline.query.compare import SparkOperand, compare
from omnigraph.pipeline.query.values import literal
from omnigraph.plan.expressions import (
    And,
    Case,
    Compare,
    Constant,
    EdgePath,
    Expression,
    FunctionCall,
    IsIn,
    IsNull,
    Or,
    ParameterRef,
    Predicate,
    PredicateCall,
    PropertyRef,
    is_constant,
)
from omnigraph.plan.functions import Implementation
from omnigraph.query.expressions import Constants
from omnigraph.types import PropertyType, Scalar


@dataclass(slots=True)
class FrameColumnNames:
    """The columns in which frames keep properties; Spark does not distinguish `a` from `A`."""

    _known: dict[tuple[str, str], str] = field(default_factory=dict)

    def of(self, variable: str, property_: str = "id") -> str:
        """Return the column of a property of a variable."""
        return self._known.setdefault((variable, property_), f"p{len(self._known)}")


@dataclass(frozen=True, slots=True)
class VectorRanking:
    """What a `nearest` compares with: the query vector, and the metric."""

    metric: Callable[[PropertyRef], Metric]
    embedded: Callable[[PropertyRef, str], Sequence[float]]


@dataclass(frozen=True, slots=True)
class ExpressionCompiler:
    """Knows where properties are, and the values of constants."""

    names: FrameColumnNames
    constants: Constants
    ranking: VectorRanking

    def column(self, expression: Expression) -> Column:
        """Return the value of an expression for each row."""
        match expression:
            case PropertyRef(variable=variable, property=name):
                return F.col(self.names.of(variable, name))
            case Constant() | ParameterRef():
                return literal(self.constants.value(expression), expression.type)
            case FunctionCall(function=function):
                assert isinstance(function.spark, Implementation), "check_supported refused it"
                column: Column = function.spark.load()(self, expression)
                return column
            case Case():
                return self._case(expression)
            case EdgePath():
                raise AssertionError("a path has no value")
            case _ as unreachable:
                assert_never(unreachable)

    def _case(self, case: Case) -> Column:
        """Return the value of the first branch whose condition holds."""
        found: Column | None = None
        for condition, value in case.branches:
            when = F if found is None else found
            found = when.when(self.holds(condition), self.converted(value, case.type))
        assert found is not None, "a case has branches"
        if case.otherwise is None:
            return found
        return found.otherwise(self.converted(case.otherwise, case.type))

    def converted(self, expression: Expression, wanted: PropertyType) -> Column:
        """Return the value of an expression in a type that holds values of its kind."""
        column, type_ = self.column(expression), spark_type(wanted)
        if spark_type(expression.type) == type_:
            return column
        if wanted.is_list or not wanted.spec.integer:
            return column.cast(type_)
        return let(
            [column],
            lambda value: checked(value.try_cast(type_), value.isNotNull()),
        )

    # --- predicates ----------------------------------------------------------------------------

    def holds(self, predicate: Predicate) -> Column:
        """Return for which rows a predicate holds; null does not match."""
        match predicate:
            case Compare(left=left, operator=sign, right=right):
                return self._compare(left, sign, right)
            case IsNull(operand=operand, negated=negated):
                found = self.column(operand)
                return found.isNotNull() if negated else found.isNull()
            case IsIn(operand=operand, choices=choices):
                return self._is_in(operand, choices)
            case PredicateCall(call=call):
                return self.column(call)
            case And(parts=parts):
                return reduce(lambda a, b: a & b, map(self.holds, parts), F.lit(True))
            case Or(parts=parts):
                return reduce(lambda a, b: a | b, map(self.holds, parts), F.lit(False))
            case _ as unreachable:
                assert_never(unreachable)

    def _compare(self, left: Expression, sign: ComparisonOperator, right: Expression) -> Column:
        if sign is ComparisonOperator.CONTAINS and left.type.is_list:
            return self._is_in(right, left)
        one, other = self._beside(left, right), self._beside(right, left)
        if sign is ComparisonOperator.CONTAINS:
            return one.column.contains(other.column)
        if sign is ComparisonOperator.STARTS_WITH:
            return one.column.startswith(other.column)
        return compare(one, sign, other)

    def _beside(self, expression: Expression, other: Expression) -> SparkOperand:
        if not is_constant(expression):
            return SparkOperand(self.column(expression), expression.type)
        value = self.constants.value_beside(expression, other)
        return SparkOperand.of(value, expression.type)

    def _is_in(self, operand: Expression, choices: Expression) -> Column:
        element = choices.type.element
        if not is_constant(choices):
            needle = self._beside(operand, choices)
            return F.exists(
                self.column(choices),
                lambda item: compare(SparkOperand(item, element), ComparisonOperator.EQ, needle),
            )
        values = self.constants.value_beside(choices, operand) or []
        wanted = [value for value in values if value is not None]
        column = SparkOperand(self.column(operand), operand.type)
        if element.text:
            return column.column.isin(wanted) if wanted else F.lit(False)
        tests = (
            compare(column, ComparisonOperator.EQ, _choice(value, element)) for value in wanted
        )
        return reduce(lambda a, b: a | b, tests, F.lit(False))

    # --- distances -----------------------------------------------------------------------------

    def distance(self, call: FunctionCall) -> Column:
        """Return the distance of each vector to the query vector; null for null."""
        target, query = call.arguments
        assert isinstance(target, PropertyRef), "a ranking ranks a property"
        vector, wanted = self.column(target), self._query_vector(target, query)
        match self.ranking.metric(target):
            case Metric.L2:
                apart = F.zip_with(vector, wanted, lambda a, b: _double(a) - _double(b))
                return _sum(F.transform(apart, lambda x: x * x))
            case Metric.DOT:
                return F.lit(1.0) - _product(vector, wanted)
            case Metric.COSINE:
                lengths = F.sqrt(_product(vector, vector)) * F.sqrt(_product(wanted, wanted))
                near = _product(vector, wanted) / F.nullif(lengths, F.lit(0.0))
                return F.lit(1.0) - near
            case _ as unreachable:
                assert_never(unreachable)

    def _query_vector(self, target: PropertyRef, query: Expression) -> Column:
        if isinstance(query, PropertyRef) or query.type.scalar is Scalar.VECTOR:
            return self.column(query)
        value = self.constants.value(query)
        if isinstance(value, str):
            value = self.ranking.embedded(target, value)
        return literal(value, target.type)


def constant_value(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return a call whose value is the same for each row as a literal."""
    return literal(compiler.constants.value(call), call.type)


def vector_distance(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return the distance of a vector of each row to the one of the query."""
    return compiler.distance(call)


def _choice(value: Any, type_: PropertyType) -> SparkOperand:  # noqa: ANN401 - of the type
    """Return one of a list of choices; an integer among floats stays what it is."""
    if type_.numeric and isinstance(value, int):
        return SparkOperand.of(value, PropertyType(Scalar.I64 if value < 2**63 else Scalar.U64))
    return SparkOperand.of(value, type_)


def _double(number: Column) -> Column:
    return number.cast("double")


def _product(one: Column, other: Column) -> Column:
    return _sum(F.zip_with(one, other, lambda a, b: _double(a) * _double(b)))


def _sum(numbers: Column) -> Column:
    return F.aggregate(numbers, F.lit(0.0), lambda total, x: total + x)
