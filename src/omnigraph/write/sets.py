"""This module compares large columns of ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MANY = 100_000
"""From here on a join, which works in several threads, beats looking up each value."""

_Ids: TypeAlias = pa.ChunkedArray | pa.Array


def without(values: _Ids, others: _Ids) -> pa.Array:
    """Return the different values that are not among others; none is null."""
    if len(values) < MANY:
        plain = others.combine_chunks() if isinstance(others, pa.ChunkedArray) else others
        return values.filter(pc.invert(pc.is_in(values, value_set=plain))).unique()
    left, right = _same_width([values, others])
    joined = pa.table([left], ["id"]).join(pa.table([right], ["id"]), "id", join_type="left anti")
    return joined["id"].unique().cast(pa.binary()).cast(pa.string())


def _same_width(columns: Sequence[_Ids]) -> list[_Ids]:
    """Return texts that all have one length as bytes of that length, which are hashed faster."""
    bounds = [pc.min_max(pc.binary_length(column)).as_py() for column in columns]
    widths = {bound[word] for bound in bounds for word in ("min", "max")}
    if len(widths) != 1 or None in widths or 0 in widths:
        return list(columns)
    [width] = widths
    return [_as_bytes(column, width) for column in columns]


def _as_bytes(column: _Ids, width: int) -> pa.ChunkedArray:
    parts = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    found = []
    for part in parts:
        _, offsets, data = part.buffers()
        start = int(np.frombuffer(offsets, np.int32)[part.offset]) if len(part) else 0
        piece = data.slice(start, width * len(part)) if len(part) else pa.py_buffer(b"")
        found.append(pa.Array.from_buffers(pa.binary(width), len(part), [None, piece]))
    return pa.chunked_array(found, pa.binary(width))
