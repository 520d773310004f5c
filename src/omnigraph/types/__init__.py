"""What a value is.

The scalar registry, the type of a property, the reading of JSON values and temporal text, and
the canonical text from which ids are made. Nothing here knows a schema, a query or a file.
A value that does not fit raises ValueError with a sentence; the caller knows where it came from.
"""

from omnigraph.types.property_type import (
    MAX_VECTOR_DIMENSION,
    PropertyType,
    entity_id,
    key_text,
    pattern_problem,
)
from omnigraph.types.scalar import BASE_NAMES, SCALARS, Scalar, json_kind
from omnigraph.types.temporal import parse_date, parse_datetime

__all__ = [
    "BASE_NAMES",
    "MAX_VECTOR_DIMENSION",
    "SCALARS",
    "PropertyType",
    "Scalar",
    "entity_id",
    "json_kind",
    "key_text",
    "parse_date",
    "parse_datetime",
    "pattern_problem",
]
