"""Functions of values on Spark: `(compiler, call) -> column`."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from omnigraph.pipeline.query.checked import let
from omnigraph.pipeline.query.expressions import ExpressionCompiler
from omnigraph.plan.expressions import FunctionCall

_MAX_LENGTH = 2**31 - 1
"""No text has more characters."""


def coalesce(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return the first value that is not null."""
    return F.coalesce(*(compiler.converted(value, call.type) for value in call.arguments))


def lower(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return texts in lower case."""
    return F.lower(compiler.column(call.arguments[0]))


def upper(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return texts in upper case."""
    return F.upper(compiler.column(call.arguments[0]))


def length(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return how many code points texts have."""
    return F.char_length(compiler.column(call.arguments[0])).cast("bigint")


def substring(compiler: ExpressionCompiler, call: FunctionCall) -> Column:
    """Return the characters whose places are in a range; places outside a text have none."""
    text, *bounds = (compiler.column(argument) for argument in call.arguments)
    return let([text, *map(_clipped, bounds)], _characters)


def _clipped(bound: Column) -> Column:
    """Return a place or a number of characters as one that can be added to another."""
    number = bound.cast("decimal(20,0)")
    inside = F.greatest(F.least(number, F.lit(_MAX_LENGTH)), F.lit(-_MAX_LENGTH)).cast("bigint")
    return F.when(bound.isNotNull(), inside)


def _characters(text: Column, start: Column, *length: Column) -> Column:
    first = F.greatest(start, F.lit(1))
    end = start + length[0] if length else F.lit(_MAX_LENGTH)
    count = F.least(F.greatest(end - first, F.lit(0)), F.lit(_MAX_LENGTH))
    is_known = start.isNotNull() & (length[0].isNotNull() if length else F.lit(True))
    return F.when(is_known, F.substring(text, first.cast("int"), count.cast("int")))
