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

from omnigraph.types import PropertyType

_TYPES: Mapping[str, DataType] = MappingProxyType(
    {
        type_.simpleString(): type_
        for type_ in (
            StringType(),
            BooleanType(),
            IntegerType(),
            LongType(),
            DecimalType(20, 0),
            FloatType(),
            DoubleType(),
            TimestampType(),
            DateType(),
            ArrayType(FloatType()),
        )
    }
)
"""The Spark types that rows of the scalar table name."""


def spark_type(type_: PropertyType) -> DataType:
    """Return the Spark type of a property's values; a blob is the text that export writes."""
    found = _TYPES[type_.spec.spark]
    return ArrayType(found) if type_.is_list else found


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark wants rows of its schema in."""
    wanted: pa.Schema = to_arrow_schema(schema, timezone="UTC")
    return wanted


def to_spark(columns: list[pa.Array], wanted: pa.Schema) -> pa.RecordBatch:
    """Return stored columns as Spark wants them."""
    casts = [column.cast(field.type) for column, field in zip(columns, wanted, strict=True)]
    return pa.RecordBatch.from_arrays(casts, schema=wanted)
