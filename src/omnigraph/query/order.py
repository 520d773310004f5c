"""This module puts rows in order: nulls lowest, texts by bytes, and never two rows undecided."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.plan import operators as op
from omnigraph.plan.expressions import FunctionCall
from omnigraph.plan.functions import FunctionKind
from omnigraph.query.compare import as_number
from omnigraph.query.evaluate import Evaluator
from omnigraph.query.frame import Frame
from omnigraph.storage.columns import Positions

FEW = 4
"""Rows are chosen before they are sorted when not one of so many is wanted."""


def sorted_rows(
    sort: op.SortRows, frame: Frame, evaluator: Evaluator, most: int | None = None
) -> Positions:
    """Return the numbers of rows in order, at least the first `most`; ties break by ids.

    A ranking puts the best first and leaves out rows it gives no score. When only the first rows
    are `shown`, later ones may be missing.
    """
    calls = [key.expression for key in sort.keys if isinstance(key.expression, FunctionCall)]
    ranks = [call for call in calls if call.function.kind is FunctionKind.RANK]
    if most is not None and len(ranks) == 1 and sort.keys[0].expression is ranks[0]:
        rows = evaluator.search.best(ranks[0], frame, evaluator, most)
        if rows is not None:
            return rows[sorted_rows(sort, frame.take(rows), evaluator)]
    chosen = _first_rows(sort.keys[0], frame, evaluator, most)
    if chosen is not None:
        frame = frame.take(chosen)
    keys: list[tuple[pa.Array, bool]] = []
    kept = np.ones(frame.rows, np.bool_)
    for key in sort.keys:
        call = key.expression
        if isinstance(call, FunctionCall) and call.function.kind is FunctionKind.RANK:
            scores, places = evaluator.search.scores(call, frame, evaluator)
            kept &= ~np.isnan(scores)
            if (
                len(ranks) == 1
                and not keys
                and len(np.unique(scores[kept])) == np.count_nonzero(kept)
            ):
                order = np.argsort(-scores if call.function.best_is_highest else scores)
                return order[kept[order]]
            keys.append((pa.array(scores), call.function.best_is_highest))
            keys.append((pa.array(places), False))
        else:
            keys.append((evaluator.column(call, frame), key.descending))
    ties = [evaluator.tables[name].values("id", frame.positions[name]) for name in sort.tie_break]
    order = order_of([*keys, *((tie, False) for tie in ties)], frame.rows)
    order = order[kept[order]]
    return order if chosen is None else chosen[order]


def _first_rows(
    key: op.SortKey, frame: Frame, evaluator: Evaluator, most: int | None
) -> Positions | None:
    """Return the rows that may be among the first `most` by their first key; None for all."""
    if most is None or most * FEW >= frame.rows or isinstance(key.expression, FunctionCall):
        return None
    column = as_number(evaluator.column(key.expression, frame))
    is_plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if not most or column.null_count or not is_plain:
        return None
    values = column.to_numpy(zero_copy_only=False)
    if np.isnan(values).any():
        return None
    if key.descending:
        return np.flatnonzero(values >= np.partition(values, -most)[-most])
    return np.flatnonzero(values <= np.partition(values, most - 1)[most - 1])


def order_of(keys: Sequence[tuple[pa.Array, bool]], rows: int) -> Positions:
    """Return the order of rows by columns, each ascending or descending."""
    columns: dict[str, pa.Array] = {}
    sort_keys: list[tuple[str, str]] = []
    for number, (column, descending) in enumerate(keys):
        direction = "descending" if descending else "ascending"
        values = as_number(column)
        if values.null_count:
            # Where a value is missing comes before all values, so that null is lowest.
            columns[f"valid{number}"] = values.is_valid()
            sort_keys.append((f"valid{number}", direction))
        columns[f"key{number}"] = _list_keys(values) if pa.types.is_nested(values.type) else values
        sort_keys.append((f"key{number}", direction))
    if not columns:
        return np.arange(rows)
    order = pc.sort_indices(pa.table(columns), sort_keys=sort_keys)
    return np.asarray(order, np.int64)


def _list_keys(lists: pa.Array) -> pa.Array:
    """Return bytes in the order of lists: element by element, then the shorter one first.

    An element becomes its rank among all elements, in as many bytes as every other.
    """
    items = as_number(lists.flatten())
    if pa.types.is_floating(items.type):
        items = pc.add(items, pa.scalar(0.0, items.type))  # there is only one zero
    ranks = np.asarray(pc.rank(items, "ascending", tiebreaker="dense"))
    data = np.where(np.asarray(items.is_valid()), ranks, 0).astype(">u8")
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0), np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]) * data.itemsize
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    keys = pa.Array.from_buffers(pa.large_binary(), len(lists), buffers)
    return pc.if_else(lists.is_valid(), keys, None)
