"""This module maps property types to Arrow types, the form in which values are stored."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.types.property_type import PropertyType


def arrow_type(type_: PropertyType) -> pa.DataType:
    """Return the Arrow type of a property's stored values."""
    if type_.dimension is not None:
        return pa.list_(pa.field("item", pa.float32()), type_.dimension)
    scalar = pa.type_for_alias(type_.spec.arrow)
    return pa.list_(pa.field("item", scalar)) if type_.is_list else scalar
