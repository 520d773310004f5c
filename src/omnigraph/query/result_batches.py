"""Compute the results of queries that do not fit memory, in batches and with a temporary file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.plan import operators as op
from omnigraph.plan.expressions import (
    Expression,
    FunctionCall,
    is_call,
    is_row_value,
    property_refs,
    subexpressions,
)
from omnigraph.plan.functions import FunctionKind
from omnigraph.query.aggregation import counts_rows, supports_row_weights
from omnigraph.query.exact_integers import Weights
from omnigraph.query.executor import Execution, max_result_rows, slice_bounds
from omnigraph.query.external_sort import ExternalSorter
from omnigraph.query.frame import Frame
from omnigraph.query.group_batches import ROW_NUMBER, WEIGHT, BatchGrouping, BatchMeasure
from omnigraph.query.limits import MEMORY_CODE, QueryLimit
from omnigraph.query.measure_states import has_state
from omnigraph.query.row_batches import RowBatches, value_tables
from omnigraph.query.spill_file import SpilledBatch
from omnigraph.types import PropertyType
from omnigraph.types.arrow import arrow_type

_KEY, _VALUE = "key:", "value:"
"""What columns of grouped rows begin with: keys by name, and values of measures."""
_MAX_U64 = 2**64 - 1


def runs_in_batches(root: op.ResultOperator) -> bool:
    """Return whether a plan can be executed in batches; a ranking needs all rows of a match."""
    operators = (operator for _, operator in op.walk_operators(root))
    return all(map(_can_batch, (e for o in operators for e in op.operator_expressions(o))))


def _can_batch(expression: Expression) -> bool:
    if any(is_call(part, FunctionKind.RANK) for part in subexpressions(expression)):
        return False
    if isinstance(expression, FunctionCall) and is_call(expression, FunctionKind.AGGREGATE):
        return has_state(expression)
    return True


@dataclass(frozen=True, slots=True)
class ResultBatches:
    """The result of a plan, some rows at a time."""

    execution: Execution
    is_whole: bool = False
    """Whether the result has to fit memory, so that it is refused once it is known that it does
    not."""

    def table(self, root: op.ResultOperator) -> pa.Table:
        """Return all rows, which must fit memory."""
        tables: list[pa.Table] = []
        size = 0
        for rows in ResultBatches(self.execution, is_whole=True).tables(root):
            size += rows.nbytes
            if size > self.execution.budget.limit:
                message = "the result would not fit the memory of the query"
                name, limit = type(root).__name__, self.execution.budget.limit
                raise QueryLimit(message, code=MEMORY_CODE, operator=name, limit=limit)
            tables.append(rows)
        return pa.concat_tables(tables)

    def spilled(self, root: op.ResultOperator) -> tuple[pa.Schema, list[SpilledBatch]]:
        """Write all rows to the temporary file, and return their places."""
        places: list[SpilledBatch] = []
        schema: pa.Schema | None = None
        for rows in self.tables(root):
            schema = schema or rows.schema
            batches = rows.combine_chunks().to_batches()
            name = type(root).__name__
            places += [self.execution.budget.spill(name, batch) for batch in batches]
        assert schema is not None, "there is one table at least"
        return schema, places

    def tables(self, operator: op.ResultOperator) -> Iterator[pa.Table]:
        """Yield the rows of an operator; one table at least."""
        return self._noted(operator, self._tables(operator, distinct=False))

    def _noted(self, operator: op.ResultOperator, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        begun, rows = self.execution.now(), 0
        for table in tables:
            rows += table.num_rows
            yield table
        self.execution.note(operator, rows, begun)

    def _tables(self, operator: op.ResultOperator, *, distinct: bool) -> Iterator[pa.Table]:
        match operator:
            case op.Project(columns=columns):
                weigh = distinct and all(is_row_value(column.expression) for column in columns)
                yield from self._projected(operator, weigh=weigh)
            case op.Aggregate():
                yield from self._aggregated(operator)
            case op.Distinct():
                yield from self._distinct(operator)
            case op.SortColumns():
                yield from self._sorted(operator, None)
            case op.SliceColumns():
                yield from self._sliced(operator)

    # --- operators -----------------------------------------------------------------------------

    def _projected(self, project: op.Project, *, weigh: bool) -> Iterator[pa.Table]:
        evaluator, needed = self.execution.evaluator, _variables(project.columns)

        def values(frame: Frame) -> pa.Table:
            evaluator.fetch((column.expression for column in project.columns), frame)
            columns = {c.name: evaluator.column(c.expression, frame) for c in project.columns}
            return pa.table(columns)

        batches = RowBatches(self.execution, weigh)
        if self.is_whole and isinstance(project.input, op.SortRows):
            width = sum(_least_width(column.expression.type) for column in project.columns)
            batches.most_sorted = int(self.execution.budget.limit / width)
        for frame in batches.of(project.input, needed):
            for _, rows in value_tables(frame, values, self.execution.budget, "Project"):
                yield rows

    def _aggregated(self, aggregate: op.Aggregate) -> Iterator[pa.Table]:
        measures = [
            BatchMeasure(column.name, call, _VALUE + column.name if is_read else None)
            for column, call, is_read in _measures(aggregate)
        ]
        keys = [_KEY + key.name for key in aggregate.keys]
        grouping = BatchGrouping(keys, measures, self.execution.budget)
        names = [_KEY + name if _KEY + name in keys else name for name in aggregate.names]
        for rows in grouping.tables(lambda: self._grouped_rows(aggregate)):
            yield rows.select(names).rename_columns(list(aggregate.names))

    def _grouped_rows(self, aggregate: op.Aggregate) -> Iterator[pa.Table]:
        """Yield the keys of rows, the values of measures, and how often rows count."""
        evaluator = self.execution.evaluator
        columns = {_KEY + key.name: key.expression for key in aggregate.keys}
        calls = [call for _, call, _ in _measures(aggregate)]
        for column, call, is_read in _measures(aggregate):
            if is_read:
                columns[_VALUE + column.name] = call.arguments[0]

        def values(frame: Frame) -> pa.Table:
            evaluator.fetch(columns.values(), frame)
            made = {name: evaluator.column(value, frame) for name, value in columns.items()}
            made[ROW_NUMBER] = np.arange(frame.rows)
            if frame.weights is not None:
                made[WEIGHT] = _weight_column(frame.weights)
            return pa.table(made)

        needed = {ref.variable for value in columns.values() for ref in property_refs(value)}
        weigh = all(map(supports_row_weights, calls))
        budget = self.execution.budget
        frames = RowBatches(self.execution, weigh).of(aggregate.input, needed)
        weighted = (_weighted(frame, weigh=weigh) for frame in frames)
        parts = (value_tables(frame, values, budget, "Aggregate") for frame in weighted)
        yield from self._numbered(rows for part in parts for _, rows in part)

    def _distinct(self, distinct: op.Distinct) -> Iterator[pa.Table]:
        names = list(distinct.names)

        def rows() -> Iterator[pa.Table]:
            source = self._noted(distinct.input, self._tables(distinct.input, distinct=True))
            return self._numbered(
                table.append_column(ROW_NUMBER, pa.array(np.arange(table.num_rows)))
                for table in source
            )

        for table in BatchGrouping(names, (), self.execution.budget).tables(rows):
            yield table.select(names)

    @staticmethod
    def _numbered(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Yield tables whose row numbers count on from one to the next."""
        start = 0
        for rows in tables:
            place = rows.schema.get_field_index(ROW_NUMBER)
            numbers = pa.array(rows[ROW_NUMBER].to_numpy() + start)
            yield rows.set_column(place, ROW_NUMBER, numbers)
            start += rows.num_rows

    def _sorted(self, sort: op.SortColumns, most: int | None) -> Iterator[pa.Table]:
        keys = [(key.name, key.descending) for key in sort.keys]
        keys += [(name, False) for name in sort.tie_break]
        sorter = ExternalSorter(keys, self.execution.budget, most)
        for rows in self.tables(sort.input):
            sorter.add(rows)
        yield from sorter.sorted()

    def _sliced(self, cut: op.SliceColumns) -> Iterator[pa.Table]:
        evaluator = self.execution.evaluator
        most = max_result_rows(cut, evaluator)
        if isinstance(cut.input, op.SortColumns):
            tables = self._noted(cut.input, self._sorted(cut.input, most))
        else:
            tables = self.tables(cut.input)
        seen = 0
        for rows in tables:
            start, stop = slice_bounds(cut, seen + rows.num_rows, evaluator)
            first = max(0, start - seen)
            yield rows.slice(first, max(0, stop - seen - first))
            seen += rows.num_rows
            if most is not None and seen >= most:
                return


def _measures(
    aggregate: op.Aggregate,
) -> Iterator[tuple[op.OutputColumn, FunctionCall, bool]]:
    """Yield measures with their calls, and whether their values are looked at."""
    for column in aggregate.measures:
        assert isinstance(column.expression, FunctionCall), "a measure is a call"
        yield column, column.expression, not counts_rows(column.expression)


def _least_width(type_: PropertyType) -> float:
    """Return how many bytes a value takes at least."""
    try:
        return float(arrow_type(type_).bit_width) / 8
    except ValueError:
        return 4.0  # the offset of a text or list


def _weighted(frame: Frame, *, weigh: bool) -> Frame:
    """Return rows that all say how often they count, or none."""
    if not weigh or frame.weights is not None:
        return frame
    return Frame(frame.rows, frame.positions, np.ones(frame.rows, np.int64))


def _weight_column(weights: Weights) -> pa.Array:
    """Return weights as 64-bit integers; one beyond these is too large a count in any case."""
    if weights.dtype == object:
        weights = np.minimum(weights, _MAX_U64)
    return pa.array(weights, pa.uint64())


def _variables(columns: tuple[op.OutputColumn, ...]) -> set[str]:
    return {ref.variable for column in columns for ref in property_refs(column.expression)}
