"""IDs, whole columns at a time: derived from keys, or new ULIDs in order."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.types import PropertyType, Scalar, key_text
from omnigraph.types.arrow import ArrowColumn

_ALPHABET = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", np.uint8)
_ULID_LENGTH = 26
_COUNTER_CHARS = 8
"""Characters at the end that count; what stands before them is the time and chance."""
_JSON_ESCAPED = r'["\\\x00-\x1f]'
_AS_NUMBERS = {Scalar.DATE: pa.int32(), Scalar.DATE_TIME: pa.int64()}


def generate_ids(count: int) -> pa.Array:
    """Return new ULIDs, in ascending order.

    All have the same time and the same random start, from which they count on, as ULIDs of one
    millisecond do.
    """
    milliseconds = time.time_ns() // 1_000_000
    head = milliseconds << 40 | secrets.randbits(40)
    first = secrets.randbits(39)
    text = np.empty((count, _ULID_LENGTH), np.uint8)
    for place in range(_ULID_LENGTH - _COUNTER_CHARS):
        shift = 5 * (_ULID_LENGTH - _COUNTER_CHARS - 1 - place)
        text[:, place] = _ALPHABET[(head >> shift) & 31]
    numbers = np.arange(first, first + count, dtype=np.uint64)
    for place in range(_COUNTER_CHARS):
        digits = (numbers >> np.uint64(5 * (_COUNTER_CHARS - 1 - place))) & np.uint64(31)
        text[:, _ULID_LENGTH - _COUNTER_CHARS + place] = _ALPHABET[digits]
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * _ULID_LENGTH)
    return pa.StringArray.from_buffers(count, offsets.buffers()[1], pa.py_buffer(text))


def ids_from_keys(columns: Sequence[ArrowColumn], types: Sequence[PropertyType]) -> pa.Array:
    """Return the ids made of key columns, which must hold no null, in the order that forms ids."""
    texts = [key_texts(column, type_) for column, type_ in zip(columns, types, strict=True)]
    if len(texts) == 1:
        return texts[0]
    members = pc.binary_join_element_wise(*map(_json_strings, texts), ",")
    return pc.binary_join_element_wise("[", members, "]", "")


def _json_strings(texts: pa.Array) -> pa.Array:
    """Return texts as JSON strings; few have characters to escape, so those are encoded apart."""
    quoted = pc.binary_join_element_wise('"', texts, '"', "")
    special = pc.match_substring_regex(texts, _JSON_ESCAPED)
    if not pc.any(special).as_py():
        return quoted
    encoded = [json.dumps(t, ensure_ascii=False) for t in texts.filter(special).to_pylist()]
    return pc.replace_with_mask(quoted, special, pa.array(encoded, pa.string()))


def key_texts(column: ArrowColumn, type_: PropertyType) -> pa.Array:
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


# ----------------------------------------------------------------------
# Set difference of large columns of IDs.


JOIN_MIN_IDS = 100_000
"""From here on a join, which works in several threads, beats looking up each value."""

_Ids: TypeAlias = pa.ChunkedArray | pa.Array


def ids_except(values: _Ids, others: _Ids) -> pa.Array:
    """Return the different values that are not among others; none is null."""
    if len(values) < JOIN_MIN_IDS:
        plain = others.combine_chunks() if isinstance(others, pa.ChunkedArray) else others
        return values.filter(pc.invert(pc.is_in(values, value_set=plain))).unique()
    left, right = _fixed_width_columns([values, others])
    joined = pa.table([left], ["id"]).join(pa.table([right], ["id"]), "id", join_type="left anti")
    return joined["id"].unique().cast(pa.binary()).cast(pa.string())


def _fixed_width_columns(columns: Sequence[_Ids]) -> list[_Ids]:
    """Return texts that all have one length as bytes of that length, which are hashed faster."""
    bounds = [pc.min_max(pc.binary_length(column)).as_py() for column in columns]
    widths = {bound[word] for bound in bounds for word in ("min", "max")}
    if len(widths) != 1 or None in widths or 0 in widths:
        return list(columns)
    [width] = widths
    return [_as_bytes(column, width) for column in columns]


def _as_bytes(column: _Ids, width: int) -> pa.ChunkedArray:
    parts = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    arrays = []
    for part in parts:
        _, offsets, data = part.buffers()
        start = int(np.frombuffer(offsets, np.int32)[part.offset]) if len(part) else 0
        piece = data.slice(start, width * len(part)) if len(part) else pa.py_buffer(b"")
        arrays.append(pa.Array.from_buffers(pa.binary(width), len(part), [None, piece]))
    return pa.chunked_array(arrays, pa.binary(width))
