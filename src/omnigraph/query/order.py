"""This module puts rows in order: nulls lowest, texts by bytes, and never two rows undecided."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from omnigraph.plan import operators as op
from omnigraph.plan.expressions import Expression, FunctionCall, PropertyRef
from omnigraph.plan.functions import FunctionKind
from omnigraph.query.compare import as_number
from omnigraph.query.evaluate import Evaluator
from omnigraph.query.frame import Frame
from omnigraph.query.sorting import RUN, Sorter, Values, column_values, ranks
from omnigraph.query.store import SPARSE
from omnigraph.storage.columns import Positions

FEW = 4
"""Rows are chosen before they are sorted when not one of so many is wanted."""
PARTITIONED = 1_000_000
"""Rows of which some are chosen in one step."""
RANKED = 100_000
"""Entities that are ranked in one step."""


def sorted_rows(
    sort: op.SortRows,
    frame: Frame,
    evaluator: Evaluator,
    tick: Callable[[], None],
    most: int | None = None,
) -> Positions:
    """Return the numbers of rows in order, at least the first `most`; ties break by ids.

    A ranking puts the best first and leaves out rows it gives no score. When only the first rows
    are `shown`, later ones may be missing. While rows are sorted, `tick` is called now and then and
    may raise.
    """
    calls = [key.expression for key in sort.keys if isinstance(key.expression, FunctionCall)]
    ranks = [call for call in calls if call.function.kind is FunctionKind.RANK]
    if most is not None and len(ranks) == 1 and sort.keys[0].expression is ranks[0]:
        rows = evaluator.search.best(ranks[0], frame, evaluator, most)
        if rows is not None:
            return rows[sorted_rows(sort, frame.take(rows), evaluator, tick)]
    chosen = _first_rows(sort.keys[0], frame, evaluator, most)
    if chosen is not None:
        frame = frame.take(chosen)
    keys: list[tuple[Values, bool]] = []
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
            keys.append((column_values(pa.array(scores)), call.function.best_is_highest))
            keys.append((column_values(pa.array(places)), False))
        else:
            keys.append((_values(call, frame, evaluator), key.descending))
    keys += [(_property(name, "id", frame, evaluator), False) for name in sort.tie_break]
    order = Sorter(keys, tick).order(np.flatnonzero(kept), most)
    return order if chosen is None else chosen[order]


def _values(expression: Expression, frame: Frame, evaluator: Evaluator) -> Values:
    """Return the values of an expression as a key."""
    if isinstance(expression, PropertyRef):
        return _property(expression.variable, expression.property, frame, evaluator)
    return column_values(evaluator.column(expression, frame))


def _property(variable: str, name: str, frame: Frame, evaluator: Evaluator) -> Values:
    """Return the values of a property as a key, of many rows without a copy for each row.

    Where many rows are of few entities, their places among all entities are compared instead.
    """
    table, positions = evaluator.tables[variable], frame.positions[variable]
    if frame.rows <= RUN or frame.rows * SPARSE <= table.rows:
        return column_values(table.values(name, positions))
    if table.rows <= RANKED and table.rows * FEW <= frame.rows:
        places = table.codes(name, ranks)
        return lambda rows: pa.array(places[positions[rows]])
    column = table.column(name)
    return lambda rows: column.take(pa.array(positions[rows]))


def _first_rows(
    key: op.SortKey, frame: Frame, evaluator: Evaluator, most: int | None
) -> Positions | None:
    """Return the rows that may be among the first `most` by their first key; None for all."""
    if most is None or most * FEW >= frame.rows or frame.rows > PARTITIONED:
        return None
    if isinstance(key.expression, FunctionCall):
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
