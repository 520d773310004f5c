"""Local arithmetic: integers exactly or not at all, other numbers as 64-bit floats."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.plan.expressions import FunctionCall
from omnigraph.query.comparison import Operand
from omnigraph.query.exact_integers import MAX_I64
from omnigraph.query.expressions import Evaluator, number_overflow
from omnigraph.query.frame import Frame

_Compute = Callable[[Any, Any], Any]
_MIN_I64 = -MAX_I64 - 1


def add(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Operand:
    """Return the sum of both sides."""
    return _compute(call, frame, evaluator, (pc.add_checked, pc.add, operator.add))


def subtract(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Operand:
    """Return the difference of both sides."""
    return _compute(call, frame, evaluator, (pc.subtract_checked, pc.subtract, operator.sub))


def multiply(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Operand:
    """Return the product of both sides."""
    return _compute(call, frame, evaluator, (pc.multiply_checked, pc.multiply, operator.mul))


def divide(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Operand:
    """Return the quotient of both sides as floats; null where the right side is zero."""
    left, right = _operands(call, frame, evaluator)
    divisor = _as_floats(right)
    some = pc.if_else(pc.equal(divisor, 0.0), pa.scalar(None, pa.float64()), divisor)
    return _floats(pc.divide, _as_floats(left), some)


def remainder(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Operand:
    """Return what a whole division leaves, with the sign of the left side; null for zero."""
    left, right = (evaluator.column(side, frame) for side in call.arguments)
    some = pc.if_else(pc.equal(right, pa.scalar(0, right.type)), pa.scalar(None, right.type), right)
    try:
        dividend, divisor = pc.cast(left, pa.int64()), pc.cast(some, pa.int64())
    except pa.ArrowInvalid:
        return _exact(_exact_remainder, left, some)
    there = pc.and_(dividend.is_valid(), divisor.is_valid())
    numbers = np.fmod(np.asarray(pc.fill_null(dividend, 0)), np.asarray(pc.fill_null(divisor, 1)))
    return pc.if_else(there, pa.array(numbers, pa.int64()), None)


def _exact_remainder(left: int, right: int) -> int:
    """Return a remainder with the sign of the left side."""
    found = abs(left) % abs(right)
    return -found if left < 0 else found


def _operands(call: FunctionCall, frame: Frame, evaluator: Evaluator) -> tuple[Operand, Operand]:
    left, right = (evaluator.operand(side, frame) for side in call.arguments)
    return left, right


def _compute(
    call: FunctionCall,
    frame: Frame,
    evaluator: Evaluator,
    functions: tuple[_Compute, _Compute, _Compute],
) -> Operand:
    """Apply the function for 64-bit integers, for floats, or for integers of any size."""
    checked, plain, exact = functions
    left, right = _operands(call, frame, evaluator)
    if not call.type.spec.integer:
        return _floats(plain, _as_floats(left), _as_floats(right))
    try:
        return checked(pc.cast(left, pa.int64()), pc.cast(right, pa.int64()))
    except pa.ArrowInvalid:
        columns = (evaluator.column(side, frame) for side in call.arguments)
        return _exact(exact, *columns)


def _exact(compute: _Compute, left: pa.Array, right: pa.Array) -> pa.Array:
    """Compute with integers of any size; refuse results that I64 does not hold."""
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    results = [None if a is None or b is None else compute(a, b) for a, b in pairs]
    if any(number is not None and not _MIN_I64 <= number <= MAX_I64 for number in results):
        raise number_overflow()
    return pa.array(results, pa.int64())


def _as_floats(operand: Operand) -> Operand:
    return pc.cast(operand, pa.float64(), safe=False)


def _floats(compute: _Compute, left: Operand, right: Operand) -> Operand:
    """Compute with floats; refuse an infinite result of finite numbers."""
    result = compute(left, right)
    infinite = pc.is_inf(result)
    if pc.any(_column(infinite)).as_py():
        given = pc.or_(pc.is_inf(left), pc.is_inf(right))
        if pc.any(_column(pc.and_not(infinite, given))).as_py():
            raise number_overflow()
    return result


def _column(operand: Operand) -> pa.Array:
    return pa.repeat(operand, 1) if isinstance(operand, pa.Scalar) else operand
