"""Local functions of values: `(call, frame, evaluator) -> operand`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.plan.expressions import FunctionCall
from omnigraph.query.comparison import Operand
from omnigraph.query.expressions import Evaluator, RowChoice
from omnigraph.query.frame import Frame

_MAX_LENGTH = 2**31 - 1
"""No text has more characters."""


def coalesce(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Operand:
    """Return the first value that is not null; later ones are computed where they are needed."""
    choice = RowChoice(frame, call.type)
    for argument in call.arguments:
        if not choice.left.rows:
            break
        column = evaluator.column(argument, choice.left)
        there = np.asarray(column.is_valid())
        choice.put(there, column.filter(pa.array(there)))
    return choice.column()


def lower(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Operand:
    """Return texts in lower case."""
    return _mapped(evaluator.column(call.arguments[0], frame), str.lower, pc.ascii_lower)


def upper(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Operand:
    """Return texts in upper case."""
    return _mapped(evaluator.column(call.arguments[0], frame), str.upper, pc.ascii_upper)


def _mapped(
    texts: pa.Array, change: Callable[[str], str], change_ascii: Callable[[pa.Array], pa.Array]
) -> pa.Array:
    """Change each different text; Arrow knows no letters that become several."""
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return change_ascii(texts)
    encoded = texts.dictionary_encode()
    changed = [change(text) for text in encoded.dictionary.to_pylist()]
    return pa.array(changed, pa.string()).take(encoded.indices)


def length(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Operand:
    """Return how many code points texts have."""
    return pc.cast(pc.utf8_length(evaluator.operand(call.arguments[0], frame)), pa.int64())


def substring(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Operand:
    """Return the characters whose places are in a range; places outside a text have none."""
    texts = evaluator.column(call.arguments[0], frame)
    bounds = [evaluator.operand(bound, frame) for bound in call.arguments[1:]]
    if all(isinstance(bound, pa.Scalar) for bound in bounds):
        span = _span(*(bound.as_py() for bound in bounds))
        if span is None:
            return pa.nulls(len(texts), pa.string())
        return pc.utf8_slice_codeunits(texts, *span)
    columns = [evaluator.column(bound, frame).to_pylist() for bound in call.arguments[1:]]
    rows = zip(texts.to_pylist(), map(_span, *columns), strict=True)
    parts = [None if t is None or span is None else t[slice(*span)] for t, span in rows]
    return pa.array(parts, pa.string())


def _span(start: int | None, *length: int | None) -> tuple[int, int] | None:
    """Return the first place, from 0, and the one after the last; None if a bound is null."""
    if start is None or None in length:
        return None
    end = max(start + length[0], 1) if length and length[0] is not None else _MAX_LENGTH
    first = min(max(start, 1), _MAX_LENGTH) - 1
    return first, max(first, min(end, _MAX_LENGTH) - 1)
