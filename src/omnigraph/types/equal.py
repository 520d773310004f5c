"""Compare the values of two columns exactly: null, "" and [] differ, and so do 0.0 and -0.0."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]


def same_values(one: pa.Array | pa.ChunkedArray, other: pa.Array | pa.ChunkedArray) -> Mask:
    """Return row by row whether two columns of one type hold the same."""
    left, right = _whole(one), _whole(other)
    missing, absent = _mask(left.is_null()), _mask(right.is_null())
    found = missing & absent
    both = np.flatnonzero(~missing & ~absent)
    if len(both):
        rows = pa.array(both)
        found[both] = _same(left.take(rows), right.take(rows))
    return found


def _same(left: pa.Array, right: pa.Array) -> Mask:
    """Compare columns without nulls."""
    type_ = left.type
    if pa.types.is_struct(type_):
        found = np.ones(len(left), np.bool_)
        for number in range(type_.num_fields):
            found &= same_values(pc.struct_field(left, number), pc.struct_field(right, number))
        return found
    if pa.types.is_list(type_) or pa.types.is_fixed_size_list(type_):
        return _same_lists(left, right)
    if pa.types.is_floating(type_):
        bits = pa.int32() if type_ == pa.float32() else pa.int64()
        left, right = left.view(bits), right.view(bits)
    return _mask(pc.equal(left, right))


def _same_lists(left: pa.Array, right: pa.Array) -> Mask:
    lengths = pc.list_value_length(left)
    found = _mask(pc.equal(lengths, pc.list_value_length(right)))
    rows = pa.array(np.flatnonzero(found))
    one, other = left.take(rows), right.take(rows)
    items = same_values(one.flatten(), other.flatten())
    owners = np.repeat(np.flatnonzero(found), np.asarray(lengths.take(rows), np.int64))
    found[owners[~items]] = False
    return found


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _mask(found: Any) -> Mask:
    return np.array(found.to_numpy(zero_copy_only=False), np.bool_)
