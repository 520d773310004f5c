"""Sort rows by several keys in bounded steps, so that a time limit is kept while sorting.

Many rows are divided into buckets by their first key, each of them sorted by itself. Between steps
`tick` is called, which may raise. When only the first rows are wanted, later buckets stay unsorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.compare import as_number
from omnigraph.query.parts import parts_of
from omnigraph.storage.columns import Positions

RUN = 65_536
"""Rows that are sorted in one step."""
STEP = 262_144
"""Rows that are divided in one step."""
MAX_BUCKETS = 512
_SAMPLED = 16
"""Rows that are looked at for each bucket to find its borders."""
_BYTES = 7
"""Bytes of a text that a number stands for; one more byte says how many there are."""

Values: TypeAlias = Callable[[Positions], pa.Array]
"""Returns the values of a key for rows by number."""
Numbers: TypeAlias = npt.NDArray[Any]


def order_of(keys: Sequence[tuple[pa.Array, bool]], rows: int) -> Positions:
    """Return the order of rows by columns, each ascending or descending."""
    columns: dict[str, pa.Array] = {}
    sort_keys: list[tuple[str, str]] = []
    for number, (column, descending) in enumerate(keys):
        direction = "descending" if descending else "ascending"
        values = sortable(column)
        if values.null_count:
            # Where a value is missing comes before all values, so that null is lowest.
            columns[f"valid{number}"] = values.is_valid()
            sort_keys.append((f"valid{number}", direction))
        columns[f"key{number}"] = values
        sort_keys.append((f"key{number}", direction))
    if not columns:
        return np.arange(rows)
    order = pc.sort_indices(pa.table(columns), sort_keys=sort_keys)
    return np.asarray(order, np.int64)


def sortable(column: pa.Array) -> pa.Array:
    """Return values that Arrow orders as we do: instants are numbers, lists bytes."""
    values = as_number(column)
    return _list_keys(values) if pa.types.is_nested(values.type) else values


def column_values(column: pa.Array) -> Values:
    """Return the values of a whole column as a key."""
    values = sortable(column)
    return lambda rows: values.take(pa.array(rows))


def ranks(column: pa.Array) -> Positions:
    """Return for each value its place among all different values; null is lower than all."""
    values = sortable(column)
    found = np.asarray(pc.rank(values, "ascending", tiebreaker="dense"))
    return np.where(np.asarray(values.is_valid()), found, 0).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Sorter:
    """Sorts rows by keys, each ascending or descending."""

    keys: Sequence[tuple[Values, bool]]
    tick: Callable[[], None]

    def order(self, rows: Positions, most: int | None = None, first: int = 0) -> Positions:
        """Return rows in order by the keys from `first` on, at least the first `most` of them."""
        self.tick()
        keys = self.keys[first:]
        if len(rows) <= RUN or not keys:
            return rows[order_of([(values(rows), down) for values, down in keys], len(rows))]
        buckets = self._divided(rows, keys[0][0])
        if len(buckets) == 1:
            return self.order(rows, most, first + 1)
        found: list[Positions] = []
        for bucket in reversed(buckets) if keys[0][1] else buckets:
            left = None if most is None else most - sum(map(len, found))
            if left is not None and left <= 0:
                break
            found.append(self.order(bucket, left, first))
        return np.concatenate([rows[:0], *found])

    def _divided(self, rows: Positions, values: Values) -> list[Positions]:
        """Return rows in buckets, lower values first; one bucket when all values are equal."""
        there = np.concatenate([np.asarray(part.is_valid()) for part in self._parts(rows, values)])
        if not there.all():
            return [some for some in (rows[~there], rows[there]) if len(some)]
        shared = self._shared(rows, values)
        numbers = np.concatenate([_numbers(part, shared) for part in self._parts(rows, values)])
        borders = _borders(numbers)
        found: list[list[Positions]] = [[] for _ in range(len(borders) + 1)]
        for part in parts_of(len(rows), STEP):
            self.tick()
            places = np.searchsorted(borders, numbers[part]).astype(np.uint16)
            order = np.argsort(places, kind="stable")
            starts = np.searchsorted(places[order], np.arange(len(borders) + 2))
            for bucket in np.flatnonzero(np.diff(starts)):
                some = order[starts[bucket] : starts[bucket + 1]]
                found[bucket].append(rows[part][some])
        return [np.concatenate(parts) for parts in found if parts]

    def _parts(self, rows: Positions, values: Values) -> Iterator[pa.Array]:
        for part in parts_of(len(rows), STEP):
            self.tick()
            yield as_number(values(rows[part]))

    def _shared(self, rows: Positions, values: Values) -> int:
        """Return with how many equal bytes all texts begin."""
        ends: list[bytes] = []
        for part in self._parts(rows, values):
            if not _is_text(part.type):
                return 0
            limits = pc.min_max(part)
            ends += [_bytes(limits[name]) for name in ("min", "max")]
        least, greatest = min(ends), max(ends)
        pairs = enumerate(zip(least, greatest, strict=False))
        return next((place for place, (a, b) in pairs if a != b), min(len(least), len(greatest)))


def _is_text(type_: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_large_binary)
    return any(test(type_) for test in tests)


def _bytes(text: pa.Scalar) -> bytes:
    value = text.as_py()
    return value.encode() if isinstance(value, str) else bytes(value)


def _numbers(values: pa.Array, shared: int) -> Numbers:
    """Return numbers in the order of values: of texts by some bytes after those all share."""
    if not _is_text(values.type):
        if pa.types.is_date(values.type):
            values = values.view(pa.int32())
        return np.asarray(values.to_numpy(zero_copy_only=False))
    values = pc.cast(values, pa.large_binary())
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset :][: len(values) + 1]
    letters = np.frombuffer(data or b"", np.uint8)
    starts, stops = ends[:-1] + shared, ends[1:]
    found = np.zeros(len(values), np.uint64)
    for place in range(_BYTES):
        inside = starts + place < stops
        letter = np.zeros(len(values), np.uint64)
        letter[inside] = letters[(starts + place)[inside]]
        found = (found << np.uint64(8)) | letter
    lengths = np.clip(stops - starts, 0, _BYTES + 1).astype(np.uint64)
    return np.asarray((found << np.uint64(8)) | lengths)


def _borders(numbers: Numbers) -> Numbers:
    """Return up to which number each bucket but the last goes."""
    wanted = min(MAX_BUCKETS, 2 * len(numbers) // RUN + 2)
    sample = np.sort(numbers[:: max(1, len(numbers) // (wanted * _SAMPLED))])
    inner = sample[:: max(1, len(sample) // wanted)][:-1]
    # The least number has a bucket of its own, so that there are two unless all are equal.
    return np.unique(np.append(inner, numbers.min()))


def _list_keys(lists: pa.Array) -> pa.Array:
    """Return bytes in the order of lists: element by element, then the shorter one first.

    An element becomes its rank among all elements, in as many bytes as every other.
    """
    items = as_number(lists.flatten())
    if pa.types.is_floating(items.type):
        items = pc.add(items, pa.scalar(0.0, items.type))  # there is only one zero
    data = ranks(items).astype(">u8")
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0), np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]) * data.itemsize
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    keys = pa.Array.from_buffers(pa.large_binary(), len(lists), buffers)
    return pc.if_else(lists.is_valid(), keys, None)
