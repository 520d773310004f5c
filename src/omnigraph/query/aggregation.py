"""Group rows and compute counts, sums, means and extremes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.plan import operators as op
from omnigraph.plan.expressions import Expression, FunctionCall, PropertyRef
from omnigraph.query.comparison import timestamps_to_integers
from omnigraph.query.exact_integers import (
    MAX_I64,
    Weights,
    as_floats,
    max_magnitude,
    sum_by_group,
)
from omnigraph.query.expressions import Evaluator
from omnigraph.query.frame import Frame
from omnigraph.query.limits import QueryLimit
from omnigraph.query.sorting import sort_indices
from omnigraph.storage.columns import Positions
from omnigraph.types.arrow import arrow_type

# ----------------------------------------------------------------------
# Group keys: columns become small numbers, equal where values are.


_DENSE_CODES_LIMIT = 65_536


def group_rows(columns: Iterable[pa.Array], rows: int) -> tuple[Positions, Positions]:
    """Return the group of each row, in order of first appearance, and the first row of each.

    Nulls are equal to each other here.
    """
    return group_codes((value_codes(column) for column in columns), rows)


def group_codes(columns: Iterable[Positions], rows: int) -> tuple[Positions, Positions]:
    """Return the same for columns that are small numbers already."""
    codes, size = np.zeros(rows, np.int64), 1
    for values in columns:
        width = int(values.max(initial=0)) + 1
        codes = codes * width + values if size > 1 else values
        size *= width
        if size > 4 * rows + _DENSE_CODES_LIMIT:
            present, codes = np.unique(codes, return_inverse=True)
            size = len(present)
    first = np.full(size, rows)
    first[codes[::-1]] = np.arange(rows - 1, -1, -1)  # the last assignment stays: the first row
    order = np.argsort(first, kind="stable")[: np.count_nonzero(first < rows)]
    rank = np.empty(size, np.int64)
    rank[order] = np.arange(len(order))
    return rank[codes], first[order]


def value_codes(column: pa.Array) -> Positions:
    """Return numbers that are equal where the values of a column are; null has one, too."""
    values = timestamps_to_integers(column)
    if pa.types.is_nested(values.type):
        values = _list_keys_as_text(values)
    elif pa.types.is_floating(values.type):
        values = pc.add(values, pa.scalar(0.0, values.type))  # there is only one zero
    encoded = values.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices, np.int64)


def _list_keys_as_text(lists: pa.Array) -> pa.Array:
    """Return texts that are equal where lists are."""
    items = iter(_normalize_zeros(timestamps_to_integers(lists.flatten()).to_pylist()))
    lengths = pc.list_value_length(lists).to_pylist()
    texts = (None if n is None else repr(list(islice(items, n))) for n in lengths)
    return pa.array(texts, pa.string())


def _normalize_zeros(values: list[object]) -> list[object]:
    return [0.0 if value == 0.0 and isinstance(value, float) else value for value in values]


_GROUP_COLUMN = "#group"
_WHOLE_COLUMN_RATIO = 4
"""Codes are computed for all entities when more than one of this many is grouped."""


def compute_aggregates(
    aggregate: op.Aggregate, frame: Frame, evaluator: Evaluator
) -> dict[str, pa.Array]:
    """Return the result columns: one row per group, or exactly one without keys."""
    codes = (_group_key_codes(column.expression, frame, evaluator) for column in aggregate.keys)
    groups, first = group_codes(codes, frame.rows)
    results: dict[str, pa.Array] = {}
    head = frame.take(first)
    for column in aggregate.keys:
        results[column.name] = evaluator.column(column.expression, head)
    size = len(first) if aggregate.keys else 1
    for column in aggregate.measures:
        assert isinstance(column.expression, FunctionCall), "a measure is a call"
        measure = column.expression.function.local.load()
        results[column.name] = measure(column.expression, frame, evaluator, (groups, size))
    return {name: results[name] for name in aggregate.names}


def is_never_null(expression: Expression) -> bool:
    """Return whether a value is never null, so that counting it is counting rows."""
    return isinstance(expression, PropertyRef) and not expression.type.nullable


def counts_rows(call: Expression) -> bool:
    """Return whether a measure counts rows, whatever they are."""
    if not isinstance(call, FunctionCall) or call.distinct or not call.function.counts_rows:
        return False
    return is_never_null(call.arguments[0])


def supports_row_weights(call: Expression) -> bool:
    """Return whether a measure is right for rows that say how often they count."""
    return isinstance(call, FunctionCall) and call.function.supports_row_weights


def _group_key_codes(key: Expression, frame: Frame, evaluator: Evaluator) -> Positions:
    """Return numbers that are equal where the values of a group key are."""
    if isinstance(key, PropertyRef) and frame.rows and key.variable not in evaluator.indirect:
        table = evaluator.tables[key.variable]
        is_whole = evaluator.reads_whole(table, key.property)
        if is_whole and frame.rows * _WHOLE_COLUMN_RATIO > table.rows:
            return table.codes(key.property, value_codes)[frame.positions[key.variable]]
    return value_codes(evaluator.column(key, frame))


Grouping: TypeAlias = tuple[Positions, int]
"""The group of each row, and how many groups there are."""


def count(call: FunctionCall, frame: Frame, evaluator: Evaluator, grouping: Grouping) -> pa.Array:
    """Return how many values of each group are not null, or how many different ones there are."""
    argument = call.arguments[0]
    if not call.distinct and is_never_null(argument):
        return _count(np.ones(frame.rows, np.bool_), frame, grouping)
    values = evaluator.column(argument, frame)
    if call.distinct:
        return _count_distinct(values, grouping)
    return _count(np.asarray(values.is_valid()), frame, grouping)


def sum_of_values(
    call: FunctionCall, frame: Frame, evaluator: Evaluator, grouping: Grouping
) -> pa.Array:
    """Return the sum of each group."""
    numbers = timestamps_to_integers(evaluator.column(call.arguments[0], frame))
    return _sum(numbers, grouping, is_mean=False)


def mean(call: FunctionCall, frame: Frame, evaluator: Evaluator, grouping: Grouping) -> pa.Array:
    """Return the mean of each group."""
    numbers = timestamps_to_integers(evaluator.column(call.arguments[0], frame))
    return _sum(numbers, grouping, is_mean=True)


def minimum(call: FunctionCall, frame: Frame, evaluator: Evaluator, grouping: Grouping) -> pa.Array:
    """Return the smallest value of each group."""
    return extreme_values("min", call, evaluator.column(call.arguments[0], frame), grouping)


def maximum(call: FunctionCall, frame: Frame, evaluator: Evaluator, grouping: Grouping) -> pa.Array:
    """Return the largest value of each group."""
    return extreme_values("max", call, evaluator.column(call.arguments[0], frame), grouping)


def collect(call: FunctionCall, frame: Frame, evaluator: Evaluator, grouping: Grouping) -> pa.Array:
    """Return the values of each group that are not null, in order."""
    return collect_values(call, evaluator.column(call.arguments[0], frame), grouping)


def collect_values(call: FunctionCall, values: pa.Array, grouping: Grouping) -> pa.Array:
    """Return the values of each group that are not null as a list, in order."""
    groups, size = grouping
    there = np.flatnonzero(np.asarray(values.is_valid()))
    values, groups = values.take(pa.array(there)), groups[there]
    if call.distinct:
        values, groups = distinct_in_groups(values, groups)
    order = sort_indices([(pa.array(groups), False), (values, False)], len(groups))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=size))])
    items = values.take(pa.array(order))
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), items, type=arrow_type(call.type)
    )


def distinct_in_groups(values: pa.Array, groups: Positions) -> tuple[pa.Array, Positions]:
    """Return each value once for each group, in order of first appearance."""
    _, first = group_codes((groups, value_codes(values)), len(groups))
    return values.take(pa.array(first)), groups[first]


def extreme_values(name: str, call: FunctionCall, values: pa.Array, grouping: Grouping) -> pa.Array:
    """Return the value of each group that is the `min` or `max`."""
    groups, size = grouping
    table = pa.table({"v": timestamps_to_integers(values), _GROUP_COLUMN: groups})
    extremes = table.group_by(_GROUP_COLUMN, use_threads=False).aggregate([("v", name)])
    column = _scatter_to_groups(extremes[f"v_{name}"], extremes[_GROUP_COLUMN], size)
    type_ = arrow_type(call.type)
    return column.view(type_) if pa.types.is_date64(type_) else pc.cast(column, type_)


def _sum(numbers: pa.Array, grouping: Grouping, *, is_mean: bool) -> pa.Array:
    groups, count = grouping
    there = np.asarray(numbers.is_valid())
    if numbers.null_count:
        groups, numbers = groups[there], numbers.filter(pa.array(there))
    values = numbers.to_numpy(zero_copy_only=False)
    if pa.types.is_integer(numbers.type):
        sums = as_floats(sum_by_group(groups, values, count))  # exact, and rounded once
    else:
        sums = np.bincount(groups, values.astype(np.float64), count).astype(np.float64)
    return sum_column(sums, np.bincount(groups, minlength=count), is_mean=is_mean)


def sum_column(sums: npt.NDArray[np.float64], sizes: Positions, *, is_mean: bool) -> pa.Array:
    """Return sums or means; a group without values has none."""
    if is_mean:
        sums = np.divide(sums, sizes, out=np.zeros(len(sums)), where=sizes > 0)
    return pa.array(sums, pa.float64(), mask=sizes == 0)


def _count_distinct(values: pa.Array, grouping: Grouping) -> pa.Array:
    groups, count = grouping
    there = np.asarray(values.is_valid())
    _, first = group_codes((groups[there], value_codes(values)[there]), int(there.sum()))
    return pa.array(np.bincount(groups[there][first], minlength=count), pa.int64())


def _count(there: npt.NDArray[np.bool_], frame: Frame, grouping: Grouping) -> pa.Array:
    groups, count = grouping
    if frame.weights is None:
        return pa.array(np.bincount(groups[there], minlength=count), pa.int64())
    return count_column(sum_by_group(groups[there], frame.weights[there], count))


def count_column(totals: Weights) -> pa.Array:
    """Return counts as 64-bit integers; raise QueryLimit when one is greater."""
    if max_magnitude(totals) > MAX_I64:
        message = (
            f"a count is greater than {MAX_I64:,}, the largest I64; "
            "narrow the match, or count distinct values"
        )
        raise QueryLimit(message, code="query_count_overflow", operator="Aggregate", limit=MAX_I64)
    return pa.array(totals.astype(np.int64), pa.int64())


def _scatter_to_groups(values: pa.ChunkedArray, groups: pa.ChunkedArray, count: int) -> pa.Array:
    """Put the value of each group at its number; a group without rows has none."""
    places = np.full(count, -1, np.int64)
    places[groups.to_numpy()] = np.arange(len(groups))
    index = pa.array(places, mask=places < 0)
    return values.combine_chunks().take(index)
