"""Parts of days and instants in UTC: `(call, frame, evaluator) -> operand`."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.plan.expressions import FunctionCall
from omnigraph.query.comparison import Operand, timestamps_to_integers
from omnigraph.query.expressions import Evaluator
from omnigraph.query.frame import Frame


def year(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Operand:
    """Return years."""
    return _part(pc.year, call, frame, evaluator)


def month(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Operand:
    """Return months, from 1."""
    return _part(pc.month, call, frame, evaluator)


def day(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Operand:
    """Return days of the month, from 1."""
    return _part(pc.day, call, frame, evaluator)


def hour(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Operand:
    """Return hours."""
    return _part(pc.hour, call, frame, evaluator)


def minute(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Operand:
    """Return minutes."""
    return _part(pc.minute, call, frame, evaluator)


def second(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Operand:
    """Return whole seconds."""
    return _part(pc.second, call, frame, evaluator)


def _part(
    part: Callable[[Operand], Operand], call: FunctionCall, frame: Frame, evaluator: Evaluator
) -> Operand:
    times = evaluator.column(call.arguments[0], frame)
    if pa.types.is_date64(times.type):
        times = timestamps_to_integers(times).cast(pa.timestamp("ms"))
    return part(times)
