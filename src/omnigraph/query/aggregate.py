"""This module groups rows and computes counts, sums, means and extremes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.plan import operators as op
from omnigraph.plan.expressions import FunctionCall
from omnigraph.query.compare import as_number
from omnigraph.query.evaluate import Evaluator
from omnigraph.query.frame import Frame
from omnigraph.query.groups import group_rows, value_codes
from omnigraph.types.arrow import arrow_type

_GROUP = "#group"


def aggregated(aggregate: op.Aggregate, frame: Frame, evaluator: Evaluator) -> dict[str, pa.Array]:
    """Return the result columns: one row per group, or exactly one without keys."""
    keys = [evaluator.column(column.expression, frame) for column in aggregate.keys]
    groups, first = group_rows(keys, frame.rows)
    found: dict[str, pa.Array] = {}
    for column, values in zip(aggregate.keys, keys, strict=True):
        found[column.name] = values.take(pa.array(first))
    count = len(first) if aggregate.keys else 1
    for column in aggregate.measures:
        assert isinstance(column.expression, FunctionCall), "a measure is a call"
        found[column.name] = _measure(column.expression, frame, evaluator, (groups, count))
    return {name: found[name] for name in aggregate.names}


def _measure(
    call: FunctionCall, frame: Frame, evaluator: Evaluator, grouping: tuple[np.ndarray, int]
) -> pa.Array:
    groups, count = grouping
    values = evaluator.column(call.arguments[0], frame)
    if call.function.name == "count":
        return _count(values, call, frame, grouping)
    numbers = as_number(values)
    if call.function.name in ("sum", "avg"):
        numbers = pc.cast(numbers, pa.float64(), safe=False)
    function = {"avg": "mean"}.get(call.function.name, call.function.name)
    table = pa.table({"v": numbers, _GROUP: groups})
    made = table.group_by(_GROUP, use_threads=False).aggregate([("v", function)])
    found = _in_order(made[f"v_{function}"], made[_GROUP], count)
    wanted = arrow_type(call.type)
    return found.view(wanted) if pa.types.is_date64(wanted) else pc.cast(found, wanted)


def _count(
    values: pa.Array, call: FunctionCall, frame: Frame, grouping: tuple[np.ndarray, int]
) -> pa.Array:
    groups, count = grouping
    if call.distinct:
        there = np.asarray(values.is_valid())
        pairs = np.unique(np.stack([groups[there], value_codes(values)[there]]), axis=1)
        return pa.array(np.bincount(pairs[0], minlength=count), pa.int64())
    weights = np.ones(frame.rows, np.int64) if frame.weights is None else frame.weights
    there = np.asarray(values.is_valid())
    totals = np.zeros(count, np.int64)
    np.add.at(totals, groups[there], weights[there])
    return pa.array(totals, pa.int64())


def _in_order(values: pa.ChunkedArray, groups: pa.ChunkedArray, count: int) -> pa.Array:
    """Put the value of each group at its number; a group without rows has none."""
    places = np.full(count, -1, np.int64)
    places[groups.to_numpy()] = np.arange(len(groups))
    index = pa.array(places, mask=places < 0)
    return values.combine_chunks().take(index)
