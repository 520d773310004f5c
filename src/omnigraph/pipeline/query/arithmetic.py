"""Spark arithmetic: integers exactly or not at all, other numbers as doubles.

What Spark does on overflow depends on a setting of the session, so that its `try_` functions are
used, which depend on none.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from omnigraph.pipeline.query.checked import checked, let
from omnigraph.pipeline.query.expressions import ExpressionCompiler
from omnigraph.plan.expressions import FunctionCall
from omnigraph.types import Scalar

_Compute = Callable[[Column, Column], Column]
_INFINITE = float("inf")


def add(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return the sum of both sides."""
    return _compute(compiler, call, F.try_add)


def subtract(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return the difference of both sides."""
    return _compute(compiler, call, F.try_subtract)


def multiply(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return the product of both sides."""
    return _compute(compiler, call, F.try_multiply)


def divide(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return the quotient of both sides as doubles; null where the right side is zero."""
    return _doubles(compiler, call, F.try_divide)


def remainder(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return what a whole division leaves, with the sign of the left side; null for zero."""
    return let(
        _integers(compiler, call),
        lambda left, right: checked(
            F.try_mod(left, right).try_cast("bigint"), left.isNotNull() & (right != 0)
        ),
    )


def _compute(compiler: ExpressionCompiler, call: FunctionCall, compute: _Compute) -> Column:
    if not call.type.spec.integer:
        return _doubles(compiler, call, compute)
    return let(
        _integers(compiler, call),
        lambda left, right: checked(
            compute(left, right).try_cast("bigint"), left.isNotNull() & right.isNotNull()
        ),
    )


def _integers(compiler: ExpressionCompiler, call: FunctionCall) -> list[Column]:
    """Return both sides as integers of 64 bits, or of more digits where one has no sign."""
    is_wide = any(side.type.scalar is Scalar.U64 for side in call.arguments)
    wanted = "decimal(20,0)" if is_wide else "bigint"
    return [compiler.column(side).cast(wanted) for side in call.arguments]


def _doubles(compiler: ExpressionCompiler, call: FunctionCall, compute: _Compute) -> Column:
    """Compute with doubles; refuse an infinite result of finite numbers."""

    def body(left: Column, right: Column) -> Column:
        return let([left, right, compute(left, right)], _finite)

    return let([compiler.column(side).cast("double") for side in call.arguments], body)


def _finite(left: Column, right: Column, result: Column) -> Column:
    is_beyond = F.coalesce(_is_infinite(result), F.lit(False))
    given = _is_infinite(left) | _is_infinite(right)
    kept = F.when(is_beyond & ~given, F.lit(None).cast("double")).otherwise(result)
    return checked(kept, is_beyond)


def _is_infinite(number: Column) -> Column:
    return F.abs(number) == F.lit(_INFINITE)
