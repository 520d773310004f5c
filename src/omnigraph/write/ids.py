"""This module makes ids, whole columns at a time: from keys, or new ones in order."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.types import PropertyType, Scalar, entity_id, key_text
from omnigraph.types.column import Column, to_values

_ALPHABET = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", np.uint8)
_LENGTH = 26
_COUNTED = 8
"""Characters at the end that count; what stands before them is the time and chance."""
_AS_NUMBERS = {Scalar.DATE: pa.int32(), Scalar.DATE_TIME: pa.int64()}


def fresh_ids(count: int) -> pa.Array:
    """Return new ULIDs, in ascending order.

    All have the same time and the same random start, from which they count on, as ULIDs of one
    millisecond do.
    """
    milliseconds = time.time_ns() // 1_000_000
    head = milliseconds << 40 | secrets.randbits(40)
    first = secrets.randbits(39)
    text = np.empty((count, _LENGTH), np.uint8)
    for place in range(_LENGTH - _COUNTED):
        shift = 5 * (_LENGTH - _COUNTED - 1 - place)
        text[:, place] = _ALPHABET[(head >> shift) & 31]
    numbers = np.arange(first, first + count, dtype=np.uint64)
    for place in range(_COUNTED):
        digits = (numbers >> np.uint64(5 * (_COUNTED - 1 - place))) & np.uint64(31)
        text[:, _LENGTH - _COUNTED + place] = _ALPHABET[digits]
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * _LENGTH)
    return pa.StringArray.from_buffers(count, offsets.buffers()[1], pa.py_buffer(text))


def key_ids(columns: Sequence[Column], types: Sequence[PropertyType]) -> pa.Array:
    """Return the ids made of key columns, which must hold no null, in the order that forms ids."""
    if len(columns) == 1:
        return key_texts(columns[0], types[0])
    members = [to_values(column, type_) for column, type_ in zip(columns, types, strict=True)]
    rows = (zip(row, types, strict=True) for row in zip(*members, strict=True))
    return pa.array([entity_id(list(row)) for row in rows], pa.string())


def key_texts(column: Column, type_: PropertyType) -> pa.Array:
    """Return the canonical text of each value; a null stays one."""
    if isinstance(column, pa.ChunkedArray):
        parts = [key_texts(chunk, type_) for chunk in column.chunks]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.string())
    if type_.scalar is Scalar.STRING:
        return column
    if type_.scalar in (Scalar.F32, Scalar.F64):
        return pa.array(
            [None if v is None else key_text(v, type_) for v in column.to_pylist()], pa.string()
        )
    stored = _AS_NUMBERS.get(type_.scalar)
    return pc.cast(column if stored is None else column.view(stored), pa.string())
