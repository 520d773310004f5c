"""Map property types to Spark types, and convert columns.

The Spark types are those that load accepts, so that rows can be read and written back.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from omnigraph.types import PropertyType, Scalar

_TYPES: Mapping[Scalar, DataType] = MappingProxyType(
    {
        Scalar.STRING: StringType(),
        Scalar.BLOB: StringType(),
        Scalar.BOOL: BooleanType(),
        Scalar.I32: IntegerType(),
        Scalar.I64: LongType(),
        Scalar.U32: LongType(),
        Scalar.U64: DecimalType(20, 0),
        Scalar.F32: FloatType(),
        Scalar.F64: DoubleType(),
        Scalar.DATE_TIME: TimestampType(),
        Scalar.DATE: DateType(),
        Scalar.VECTOR: ArrayType(FloatType()),
    }
)
"""Spark has no unsigned numbers: theirs is the next type that holds them all."""


def spark_type(type_: PropertyType) -> DataType:
    """Return the Spark type of a property's values; a blob is the text that export writes."""
    found = _TYPES[type_.scalar]
    return ArrayType(found) if type_.is_list else found


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark wants rows of its schema in."""
    wanted: pa.Schema = to_arrow_schema(schema, timezone="UTC")
    return wanted


def to_spark(columns: list[pa.Array], wanted: pa.Schema) -> pa.RecordBatch:
    """Return stored columns as Spark wants them."""
    casts = [column.cast(field.type) for column, field in zip(columns, wanted, strict=True)]
    return pa.RecordBatch.from_arrays(casts, schema=wanted)
