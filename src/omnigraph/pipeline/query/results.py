"""Compile result operators to data frames.

Columns are numbered until the end, because Spark does not distinguish `a` from `A` in names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from omnigraph.pipeline.query.aggregates import measure_column
from omnigraph.pipeline.query.rows import RowCompiler, sort_column
from omnigraph.plan import operators as op
from omnigraph.plan.expressions import Expression, FunctionCall, is_call
from omnigraph.plan.functions import FunctionKind


@dataclass(frozen=True, slots=True)
class ResultCompiler:
    """Makes the result of one query."""

    rows: RowCompiler

    def of(self, root: op.ResultOperator) -> DataFrame:
        """Return the result under the names of its columns."""
        names = dict(enumerate(root.names))
        return self._of(root).select(*map(_column, names)).toDF(*names.values())

    def _of(self, operator: op.ResultOperator) -> DataFrame:
        match operator:
            case op.Project(input=rows, columns=columns):
                expressions = [column.expression for column in columns]
                return self.rows.of(rows).select(*self._columns(expressions))
            case op.Aggregate():
                return self._aggregate(operator)
            case op.Distinct(input=source):
                return self._of(source).distinct()
            case op.SortColumns():
                return self._sort(operator)
            case op.SliceColumns(input=source):
                return self.rows.cut(self._of(source), operator)
            case _ as unreachable:
                assert_never(unreachable)

    def _columns(self, expressions: list[Expression]) -> list[Column]:
        found = map(self.rows.expressions.column, expressions)
        return [column.alias(_name(number)) for number, column in enumerate(found)]

    def _aggregate(self, aggregate: op.Aggregate) -> DataFrame:
        columns = {column.name: column.expression for column in aggregate.keys}
        for measure in aggregate.measures:
            assert isinstance(measure.expression, FunctionCall), "a measure is a call"
            columns[measure.name] = measure.expression.arguments[0]
        # Keys are columns before they are keys: Spark treats a number in GROUP BY as a position.
        values = self._columns([columns[name] for name in aggregate.names])
        rows = self.rows.of(aggregate.input).select(*values)
        places = {name: _name(number) for number, name in enumerate(aggregate.names)}
        measures = [
            measure_column(m.expression, F.col(places[m.name])).alias(places[m.name])
            for m in aggregate.measures
            if isinstance(m.expression, FunctionCall)
        ]
        return rows.groupBy(*(places[key.name] for key in aggregate.keys)).agg(*measures)

    def _sort(self, sort: op.SortColumns) -> DataFrame:
        found, places = self._of(sort.input), {n: _name(i) for i, n in enumerate(sort.names)}
        keys = [sort_column(F.col(places[k.name]), descending=k.descending) for k in sort.keys]
        for name in {key.name for key in sort.keys} & rankings(sort.input):
            found = found.where(F.col(places[name]).isNotNull())
        ties = (sort_column(F.col(places[name]), descending=False) for name in sort.tie_break)
        return found.orderBy(*keys, *ties)


def rankings(operator: op.ResultOperator) -> set[str]:
    """Return the columns that are rankings; rows they give no score are left out by an order."""
    if not isinstance(operator, op.Distinct) or not isinstance(operator.input, op.Project):
        return set()
    columns = operator.input.columns
    return {c.name for c in columns if is_call(c.expression, FunctionKind.RANK)}


def _name(number: int) -> str:
    return f"c{number}"


def _column(number: int) -> Column:
    return F.col(_name(number))
