"""Convert values to Spark literals, and columns of Spark to stored types."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from omnigraph.pipeline.connector.columns import spark_type
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import arrow_type, from_timestamps
from omnigraph.types.temporal import epoch_days, epoch_milliseconds


def literal(value: Any, type_: PropertyType) -> Column:  # noqa: ANN401 - a value of the type
    """Return a value of ours as a column of it."""
    if value is None:
        return F.lit(None).cast(spark_type(type_))
    if type_.is_list:
        return F.array(*(literal(v, type_.element) for v in value)).cast(spark_type(type_))
    match type_.scalar:
        case Scalar.VECTOR:
            made = F.array(*(F.lit(float(number)) for number in value))
        case Scalar.DATE:
            return F.date_from_unix_date(F.lit(epoch_days(value)))
        case Scalar.DATE_TIME:
            return F.timestamp_millis(F.lit(epoch_milliseconds(value)))
        case Scalar.U64:
            made = F.lit(Decimal(value))
        case Scalar.F32 | Scalar.F64:
            made = F.lit(float(value))
        case _:
            made = F.lit(value)
    return made.cast(spark_type(type_))


def from_spark(column: pa.ChunkedArray, type_: PropertyType) -> pa.ChunkedArray:
    """Return a column that came from Spark in the type in which we have such values."""
    wanted = arrow_type(type_)
    chunks = [_cast_to_stored(chunk, type_, wanted) for chunk in column.chunks]
    return pa.chunked_array(chunks, wanted)


def _cast_to_stored(chunk: pa.Array, type_: PropertyType, wanted: pa.DataType) -> pa.Array:
    if type_.dimension is not None:
        return _vectors(chunk, type_.dimension)
    if type_.scalar is not Scalar.DATE_TIME:
        return pc.cast(chunk, wanted)
    return from_timestamps(chunk, type_)


def _vectors(lists: pa.Array, size: int) -> pa.Array:
    """Return lists as vectors; Arrow's own cast crashes where one is null."""
    there = np.asarray(lists.is_valid())
    items = np.zeros((len(lists), size), np.float32)
    items[there] = lists.drop_null().flatten().to_numpy(zero_copy_only=False).reshape(-1, size)
    return pa.FixedSizeListArray.from_arrays(pa.array(items.ravel()), size, mask=pa.array(~there))
