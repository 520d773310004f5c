"""This module groups rows and computes counts, sums, means and extremes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.plan import operators as op
from omnigraph.plan.expressions import Expression, FunctionCall, PropertyRef
from omnigraph.query.budget import QueryLimit
from omnigraph.query.compare import as_number
from omnigraph.query.evaluate import Evaluator
from omnigraph.query.frame import Frame
from omnigraph.query.groups import group_codes, value_codes
from omnigraph.query.weights import MAX_I64, as_floats, largest, totals_by
from omnigraph.storage.columns import Positions
from omnigraph.types.arrow import arrow_type

_GROUP = "#group"
_MANY = 4
"""More than one of so many entities are grouped by numbers for all of them."""


def aggregated(aggregate: op.Aggregate, frame: Frame, evaluator: Evaluator) -> dict[str, pa.Array]:
    """Return the result columns: one row per group, or exactly one without keys."""
    codes = (_codes(column.expression, frame, evaluator) for column in aggregate.keys)
    groups, first = group_codes(codes, frame.rows)
    found: dict[str, pa.Array] = {}
    head = frame.take(first)
    for column in aggregate.keys:
        found[column.name] = evaluator.column(column.expression, head)
    count = len(first) if aggregate.keys else 1
    for column in aggregate.measures:
        assert isinstance(column.expression, FunctionCall), "a measure is a call"
        found[column.name] = _measure(column.expression, frame, evaluator, (groups, count))
    return {name: found[name] for name in aggregate.names}


def is_always_there(expression: Expression) -> bool:
    """Tell whether a value is never null, so that counting it is counting rows."""
    return isinstance(expression, PropertyRef) and not expression.type.nullable


def _codes(key: Expression, frame: Frame, evaluator: Evaluator) -> Positions:
    """Return numbers that are equal where the values of a group key are."""
    if isinstance(key, PropertyRef) and frame.rows:
        table = evaluator.tables[key.variable]
        if frame.rows * _MANY > table.rows:
            return table.codes(key.property, value_codes)[frame.positions[key.variable]]
    return value_codes(evaluator.column(key, frame))


def _measure(
    call: FunctionCall, frame: Frame, evaluator: Evaluator, grouping: tuple[Positions, int]
) -> pa.Array:
    name = call.function.name
    if name == "count" and not call.distinct and is_always_there(call.arguments[0]):
        return _count(np.ones(frame.rows, np.bool_), frame, grouping)
    values = evaluator.column(call.arguments[0], frame)
    if name == "count" and call.distinct:
        return _count_distinct(values, grouping)
    if name == "count":
        return _count(np.asarray(values.is_valid()), frame, grouping)
    if name in ("sum", "avg"):
        return _sum(as_number(values), grouping, is_mean=name == "avg")
    groups, count = grouping
    table = pa.table({"v": as_number(values), _GROUP: groups})
    made = table.group_by(_GROUP, use_threads=False).aggregate([("v", name)])
    found = _in_order(made[f"v_{name}"], made[_GROUP], count)
    wanted = arrow_type(call.type)
    return found.view(wanted) if pa.types.is_date64(wanted) else pc.cast(found, wanted)


def _sum(numbers: pa.Array, grouping: tuple[Positions, int], *, is_mean: bool) -> pa.Array:
    groups, count = grouping
    there = np.asarray(numbers.is_valid())
    if numbers.null_count:
        groups, numbers = groups[there], numbers.filter(pa.array(there))
    values = numbers.to_numpy(zero_copy_only=False)
    if pa.types.is_integer(numbers.type):
        sums = as_floats(totals_by(groups, values, count))  # exact, and rounded once
    else:
        sums = np.bincount(groups, values.astype(np.float64), count).astype(np.float64)
    sizes = np.bincount(groups, minlength=count)
    if is_mean:
        sums = np.divide(sums, sizes, out=np.zeros(count), where=sizes > 0)
    return pa.array(sums, pa.float64(), mask=sizes == 0)


def _count_distinct(values: pa.Array, grouping: tuple[Positions, int]) -> pa.Array:
    groups, count = grouping
    there = np.asarray(values.is_valid())
    _, first = group_codes((groups[there], value_codes(values)[there]), int(there.sum()))
    return pa.array(np.bincount(groups[there][first], minlength=count), pa.int64())


def _count(there: npt.NDArray[np.bool_], frame: Frame, grouping: tuple[Positions, int]) -> pa.Array:
    groups, count = grouping
    if frame.weights is None:
        return pa.array(np.bincount(groups[there], minlength=count), pa.int64())
    totals = totals_by(groups[there], frame.weights[there], count)
    if largest(totals) > MAX_I64:
        message = (
            f"a count is greater than {MAX_I64:,}, the largest I64; "
            "narrow the match, or count distinct values"
        )
        raise QueryLimit(message, code="query_count_overflow", operator="Aggregate", limit=MAX_I64)
    return pa.array(totals.astype(np.int64), pa.int64())


def _in_order(values: pa.ChunkedArray, groups: pa.ChunkedArray, count: int) -> pa.Array:
    """Put the value of each group at its number; a group without rows has none."""
    places = np.full(count, -1, np.int64)
    places[groups.to_numpy()] = np.arange(len(groups))
    index = pa.array(places, mask=places < 0)
    return values.combine_chunks().take(index)
