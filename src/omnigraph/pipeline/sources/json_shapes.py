"""Types of JSON values, merged over all lines of a source, as columns of Spark and Arrow.

A shape is plain JSON itself, because workers report it: a word, `["list", shape]`, or members with
their shapes. No value is changed by its column: integers beyond the exact range of doubles are not
mixed with doubles, and members with values of several kinds become text.
"""

from __future__ import annotations

import json
from decimal import Decimal
from functools import reduce
from typing import Any, TypeAlias

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

JsonShape: TypeAlias = Any
NOTHING, MIXED = "null", "mixed"

_EXACT, _LONG, _DIGITS = 1 << 53, 1 << 63, 10**38
_WIDER = {
    frozenset(("exact", "long")): "long",
    frozenset(("exact", "big")): "big",
    frozenset(("long", "big")): "big",
    frozenset(("exact", "float")): "float",
}
_TYPES: dict[str, DataType] = {
    "bool": BooleanType(),
    "exact": LongType(),
    "long": LongType(),
    "big": DecimalType(38, 0),
    "float": DoubleType(),
}


def infer_shape(value: Any) -> JsonShape:  # noqa: ANN401 - any JSON value
    """Return the shape of a value."""
    match value:
        case None:
            return NOTHING
        case bool():
            return "bool"
        case int():
            size = abs(value)
            if size <= _EXACT:
                return "exact"
            return "long" if size < _LONG else "big" if size < _DIGITS else MIXED
        case float():
            return "float"
        case str():
            return "text"
        case list():
            return ["list", reduce(merge_shapes, map(infer_shape, value), NOTHING)]
        case _:
            return {name: infer_shape(member) for name, member in value.items()}


def merge_shapes(one: JsonShape, other: JsonShape) -> JsonShape:
    """Return the shape that holds the values of two."""
    if other in (one, NOTHING):
        return one
    if one == NOTHING:
        return other
    match one, other:
        case [_, first], [_, second]:
            return ["list", merge_shapes(first, second)]
        case dict(), dict():
            names = dict.fromkeys([*one, *other])
            return {n: merge_shapes(one.get(n, NOTHING), other.get(n, NOTHING)) for n in names}
        case str(), str():
            return _WIDER.get(frozenset((one, other)), MIXED)
        case _:
            return MIXED


def spark_type(shape: JsonShape) -> DataType:
    """Return the type of the column that holds values of a shape."""
    match shape:
        case [_, element]:
            return ArrayType(spark_type(element))
        case dict() if shape:
            return StructType([StructField(n, spark_type(s)) for n, s in shape.items()])
        case str():
            return _TYPES.get(shape, StringType())
        case _:
            return StringType()


def fit_value(value: Any, shape: JsonShape) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value as the column of its shape holds it."""
    if value is None:
        return None
    match shape:
        case "float":
            return float(value)
        case "big":
            return Decimal(value)
        case [_, element]:
            return [fit_value(item, element) for item in value]
        case dict() if shape:
            return {name: fit_value(value.get(name), inner) for name, inner in shape.items()}
        case "mixed" | dict():
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        case _:
            return value
