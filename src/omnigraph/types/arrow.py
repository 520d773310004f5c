"""This module maps property types to Arrow types, the form in which values are stored."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.types.property_type import PropertyType
from omnigraph.types.scalar import Scalar

BLOB = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
"""A blob on its way to storage: its bytes, or where they are."""


def arrow_type(type_: PropertyType) -> pa.DataType:
    """Return the Arrow type of a property's values; storage has its own for blobs."""
    if type_.scalar is Scalar.BLOB:
        return BLOB
    if type_.dimension is not None:
        return pa.list_(pa.field("item", pa.float32()), type_.dimension)
    scalar = pa.type_for_alias(type_.spec.arrow)
    return pa.list_(pa.field("item", scalar)) if type_.is_list else scalar
