"""Values that are used several times in one expression, and errors of single rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F

from omnigraph.query.expressions import NUMBER_OVERFLOW, number_overflow


def let(values: Sequence[Column], body: Callable[..., Column]) -> Column:
    """Return an expression of values that are computed once, however often it uses them.

    Repeating a column repeats the expression, so that nested ones would grow exponentially.
    """
    names = [f"v{number}" for number in range(len(values))]
    packed = F.struct(*(value.alias(name) for value, name in zip(values, names, strict=True)))
    computed = F.transform(F.array(packed), lambda row: body(*(row[name] for name in names)))
    return F.element_at(computed, 1)


def checked(result: Column, expected: Column) -> Column:
    """Return a result; one that is null, though a number is expected, is an error."""
    is_missing = result.isNull() & expected
    return F.when(is_missing, F.raise_error(F.lit(NUMBER_OVERFLOW))).otherwise(result)


@contextmanager
def translate_number_overflow() -> Iterator[None]:
    """Run a query; raise the error of the local engine where a number leaves its range."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        if NUMBER_OVERFLOW in str(error):
            raise number_overflow() from error
        raise
