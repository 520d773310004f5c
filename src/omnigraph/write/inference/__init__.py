"""Infer a schema from tables: types, keys, endpoints and nullability, each with its evidence.

Files are read as streams: every value is looked at, uniqueness and containment are checked exactly
with files as large as the keys, and memory is bounded. What the data does not decide is no part of
the proposal: it is a note beside it. Equal inputs give equal proposals.
"""

from omnigraph.write.inference.infer import infer_schema
from omnigraph.write.inference.input_tables import InputFile, find_input_files
from omnigraph.write.inference.model import (
    InferredEdge,
    InferredNode,
    InferredProperty,
    InferredSchema,
    InferredType,
    UndecidedTable,
)
from omnigraph.write.inference.schema_text import schema_text
from omnigraph.write.inference.typed_rows import Inference, infer

__all__ = [
    "Inference",
    "InferredEdge",
    "InferredNode",
    "InferredProperty",
    "InferredSchema",
    "InferredType",
    "InputFile",
    "UndecidedTable",
    "find_input_files",
    "infer",
    "infer_schema",
    "schema_text",
]
