"""Parts of days and instants on Spark, in UTC whatever the time zone of the session is."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from omnigraph.pipeline.query.expressions import ExpressionCompiler
from omnigraph.plan.expressions import FunctionCall
from omnigraph.types import Scalar

_SECOND = 1000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR


def year(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return years."""
    return F.year(_day_of(compiler, call)).cast("bigint")


def month(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return months, from 1."""
    return F.month(_day_of(compiler, call)).cast("bigint")


def day(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return days of the month, from 1."""
    return F.dayofmonth(_day_of(compiler, call)).cast("bigint")


def hour(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return hours."""
    return _part(compiler, call, _DAY, _HOUR)


def minute(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return minutes."""
    return _part(compiler, call, _HOUR, _MINUTE)


def second(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return whole seconds."""
    return _part(compiler, call, _MINUTE, _SECOND)


def _day_of(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    [time] = call.arguments
    column = compiler.column(time)
    if time.type.scalar is Scalar.DATE:
        return column
    days = F.floor(F.unix_millis(column) / F.lit(_DAY)).cast("int")
    return F.date_from_unix_date(days)


def _part(compiler: ExpressionCompiler, call: FunctionCall, whole: int, part: int) -> Column:
    milliseconds = F.unix_millis(compiler.column(call.arguments[0]))
    return F.floor(F.pmod(milliseconds, F.lit(whole)) / F.lit(part)).cast("bigint")
