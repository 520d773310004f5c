"""This module tells which rows are equal: columns become small numbers, equal where values are."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.compare import as_number
from omnigraph.storage.columns import Positions

_FEW_CODES = 65_536


def group_rows(columns: Iterable[pa.Array], rows: int) -> tuple[Positions, Positions]:
    """Return the group of each row, in order of first appearance, and the first row of each.

    Nulls are equal to each other here.
    """
    return group_codes((value_codes(column) for column in columns), rows)


def group_codes(columns: Iterable[Positions], rows: int) -> tuple[Positions, Positions]:
    """Return the same for columns that are small numbers already."""
    codes, size = np.zeros(rows, np.int64), 1
    for values in columns:
        width = int(values.max(initial=0)) + 1
        codes = codes * width + values if size > 1 else values
        size *= width
        if size > 4 * rows + _FEW_CODES:
            present, codes = np.unique(codes, return_inverse=True)
            size = len(present)
    first = np.full(size, rows)
    first[codes[::-1]] = np.arange(rows - 1, -1, -1)  # the last assignment stays: the first row
    order = np.argsort(first, kind="stable")[: np.count_nonzero(first < rows)]
    rank = np.empty(size, np.int64)
    rank[order] = np.arange(len(order))
    return rank[codes], first[order]


def value_codes(column: pa.Array) -> Positions:
    """Return numbers that are equal where the values of a column are; null has one, too."""
    values = as_number(column)
    if pa.types.is_nested(values.type):
        values = _list_texts(values)
    elif pa.types.is_floating(values.type):
        values = pc.add(values, pa.scalar(0.0, values.type))  # there is only one zero
    encoded = values.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices, np.int64)


def _list_texts(lists: pa.Array) -> pa.Array:
    """Return texts that are equal where lists are."""
    items = iter(_plain(as_number(lists.flatten()).to_pylist()))
    lengths = pc.list_value_length(lists).to_pylist()
    texts = (None if n is None else repr(list(islice(items, n))) for n in lengths)
    return pa.array(texts, pa.string())


def _plain(values: list[object]) -> list[object]:
    return [0.0 if value == 0.0 and isinstance(value, float) else value for value in values]
