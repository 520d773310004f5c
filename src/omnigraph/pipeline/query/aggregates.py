"""Spark implementations of aggregates: `(call, column of the argument) -> column`."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from omnigraph.pipeline.connector.columns import spark_type
from omnigraph.plan.expressions import FunctionCall
from omnigraph.plan.functions import Implementation
from omnigraph.types import Scalar

INTEGER = "decimal(20,0)"
"""A type of Spark that holds every integer of ours; a sum of it has ten digits more."""


def measure_column(call: FunctionCall, value: Column) -> Column:
    """Return an aggregate of a column, by the implementation its row of the table names."""
    assert isinstance(call.function.spark, Implementation), "check_supported refused it"
    column: Column = call.function.spark.load()(call, value)
    return column


def count(call: FunctionCall, value: Column) -> Column:
    """Return how many values are not null, or how many different ones there are."""
    return F.count_distinct(value) if call.distinct else F.count(value)


def sum_of_values(call: FunctionCall, value: Column) -> Column:
    """Return the sum as a double; that of integers is exact, and rounded once."""
    if call.arguments[0].type.scalar in (Scalar.F32, Scalar.F64):
        return F.sum(value.cast("double"))
    return F.sum(value.cast(INTEGER)).cast("double")


def mean(call: FunctionCall, value: Column) -> Column:
    """Return the mean."""
    return sum_of_values(call, value) / F.count(value)


def minimum(_call: FunctionCall, value: Column) -> Column:
    """Return the smallest value."""
    return F.min(value)


def maximum(_call: FunctionCall, value: Column) -> Column:
    """Return the largest value."""
    return F.max(value)


def collect(call: FunctionCall, value: Column) -> Column:
    """Return the values that are not null, in order."""
    if not call.distinct:
        return F.sort_array(F.collect_list(value))
    if call.arguments[0].type.scalar in (Scalar.F32, Scalar.F64):
        value = value + F.lit(0.0).cast(spark_type(call.arguments[0].type))  # one zero only
    return F.sort_array(F.collect_set(value))
