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

from omnigraph.plan import operators as op
from omnigraph.plan.expressions import Expression, FunctionCall, PropertyRef
from omnigraph.plan.functions import FunctionKind
from omnigraph.query.column_cache import SPARSE_RATIO
from omnigraph.query.comparison import timestamps_to_integers
from omnigraph.query.distinct import distinct_values
from omnigraph.query.expressions import Evaluator
from omnigraph.query.frame import Frame
from omnigraph.query.limits import chunk_slices
from omnigraph.storage.columns import Positions

SORT_RUN_ROWS = 65_536
"""Rows that are sorted in one step."""
BUCKET_STEP_ROWS = 262_144
"""Rows that are divided in one step."""
MAX_BUCKETS = 512
_SAMPLES_PER_BUCKET = 16
"""Rows that are looked at for each bucket to find its borders."""
_PREFIX_BYTES = 7
"""Bytes of a text that a number encodes; one more byte is their count."""

KeyValues: TypeAlias = Callable[[Positions], pa.Array]
"""Returns the values of a key for rows by number."""
BucketKeys: TypeAlias = npt.NDArray[Any]


def sort_indices(keys: Sequence[tuple[pa.Array, bool]], rows: int) -> Positions:
    """Return the order of rows by columns, each ascending or descending."""
    columns: dict[str, pa.Array] = {}
    sort_keys: list[tuple[str, str]] = []
    for number, (column, descending) in enumerate(keys):
        direction = "descending" if descending else "ascending"
        values = to_sortable(column)
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


def to_sortable(column: pa.Array) -> pa.Array:
    """Return values that Arrow orders as we do: instants are numbers, lists bytes."""
    values = timestamps_to_integers(column)
    return _list_sort_keys(values) if pa.types.is_nested(values.type) else values


def column_values(column: pa.Array) -> KeyValues:
    """Return the values of a whole column as a key."""
    values = to_sortable(column)
    return lambda rows: values.take(pa.array(rows))


def dense_ranks(column: pa.Array) -> Positions:
    """Return for each value its place among all different values; null is lower than all."""
    values = to_sortable(column)
    ranks = np.asarray(pc.rank(values, "ascending", tiebreaker="dense"))
    return np.where(np.asarray(values.is_valid()), ranks, 0).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Sorter:
    """Sorts rows by keys, each ascending or descending."""

    keys: Sequence[tuple[KeyValues, bool]]
    tick: Callable[[], None]

    def order(self, rows: Positions, most: int | None = None, first: int = 0) -> Positions:
        """Return rows in order by the keys from `first` on, at least the first `most` of them."""
        self.tick()
        keys = self.keys[first:]
        if len(rows) <= SORT_RUN_ROWS or not keys:
            return rows[sort_indices([(values(rows), down) for values, down in keys], len(rows))]
        buckets = self._divided(rows, keys[0][0])
        if len(buckets) == 1:
            return self.order(rows, most, first + 1)
        runs: list[Positions] = []
        for bucket in reversed(buckets) if keys[0][1] else buckets:
            left = None if most is None else most - sum(map(len, runs))
            if left is not None and left <= 0:
                break
            runs.append(self.order(bucket, left, first))
        return np.concatenate([rows[:0], *runs])

    def _divided(self, rows: Positions, values: KeyValues) -> list[Positions]:
        """Return rows in buckets, lower values first; one bucket when all values are equal."""
        there = np.concatenate([np.asarray(part.is_valid()) for part in self._parts(rows, values)])
        if not there.all():
            return [some for some in (rows[~there], rows[there]) if len(some)]
        shared = self._shared(rows, values)
        numbers = np.concatenate([_bucket_keys(part, shared) for part in self._parts(rows, values)])
        borders = _bucket_bounds(numbers)
        buckets: list[list[Positions]] = [[] for _ in range(len(borders) + 1)]
        for part in chunk_slices(len(rows), BUCKET_STEP_ROWS):
            self.tick()
            places = np.searchsorted(borders, numbers[part]).astype(np.uint16)
            order = np.argsort(places, kind="stable")
            starts = np.searchsorted(places[order], np.arange(len(borders) + 2))
            for bucket in np.flatnonzero(np.diff(starts)):
                some = order[starts[bucket] : starts[bucket + 1]]
                buckets[bucket].append(rows[part][some])
        return [np.concatenate(parts) for parts in buckets if parts]

    def _parts(self, rows: Positions, values: KeyValues) -> Iterator[pa.Array]:
        for part in chunk_slices(len(rows), BUCKET_STEP_ROWS):
            self.tick()
            yield timestamps_to_integers(values(rows[part]))

    def _shared(self, rows: Positions, values: KeyValues) -> int:
        """Return with how many equal bytes all texts begin."""
        ends: list[bytes] = []
        for part in self._parts(rows, values):
            if not _is_text(part.type):
                return 0
            limits = pc.min_max(part)
            ends += [_text_bytes(limits[name]) for name in ("min", "max")]
        least, greatest = min(ends), max(ends)
        pairs = enumerate(zip(least, greatest, strict=False))
        return next((place for place, (a, b) in pairs if a != b), min(len(least), len(greatest)))


def _is_text(type_: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_large_binary)
    return any(test(type_) for test in tests)


def _text_bytes(text: pa.Scalar) -> bytes:
    value = text.as_py()
    return value.encode() if isinstance(value, str) else bytes(value)


def _bucket_keys(values: pa.Array, shared: int) -> BucketKeys:
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
    keys = np.zeros(len(values), np.uint64)
    for place in range(_PREFIX_BYTES):
        inside = starts + place < stops
        letter = np.zeros(len(values), np.uint64)
        letter[inside] = letters[(starts + place)[inside]]
        keys = (keys << np.uint64(8)) | letter
    lengths = np.clip(stops - starts, 0, _PREFIX_BYTES + 1).astype(np.uint64)
    return np.asarray((keys << np.uint64(8)) | lengths)


def _bucket_bounds(numbers: BucketKeys) -> BucketKeys:
    """Return up to which number each bucket but the last goes."""
    buckets = min(MAX_BUCKETS, 2 * len(numbers) // SORT_RUN_ROWS + 2)
    sample = np.sort(numbers[:: max(1, len(numbers) // (buckets * _SAMPLES_PER_BUCKET))])
    inner = sample[:: max(1, len(sample) // buckets)][:-1]
    # The least number has a bucket of its own, so that there are two unless all are equal.
    return distinct_values(np.append(inner, numbers.min()))


def _list_sort_keys(lists: pa.Array) -> pa.Array:
    """Return bytes in the order of lists: element by element, then the shorter one first.

    An element becomes its rank among all elements, in as many bytes as every other.
    """
    items = timestamps_to_integers(lists.flatten())
    if pa.types.is_floating(items.type):
        items = pc.add(items, pa.scalar(0.0, items.type))  # there is only one zero
    data = dense_ranks(items).astype(">u8")
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0), np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]) * data.itemsize
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    keys = pa.Array.from_buffers(pa.large_binary(), len(lists), buffers)
    return pc.if_else(lists.is_valid(), keys, None)


# ----------------------------------------------------------------------
# Sorting: nulls lowest, texts by bytes, ties always broken.


TOP_K_RATIO = 4
"""Rows are selected before they are sorted when fewer than one of this many is needed."""
PARTITION_ROWS = 1_000_000
"""Rows of which some are chosen in one step."""
RANK_ROWS = 100_000
"""Entities that are ranked in one step."""


def sort_rows(
    sort: op.SortRows,
    frame: Frame,
    evaluator: Evaluator,
    tick: Callable[[], None],
    most: int | None = None,
) -> Positions:
    """Return the numbers of rows in order, at least the first `most`; ties break by ids.

    A ranking puts the best first and leaves out rows it gives no score. When only the first rows
    are `shown`, later ones may be missing. While rows are sorted, `tick` is called now and then and
    may raise.
    """
    calls = [key.expression for key in sort.keys if isinstance(key.expression, FunctionCall)]
    ranks = [call for call in calls if call.function.kind is FunctionKind.RANK]
    if most is not None and len(ranks) == 1 and sort.keys[0].expression is ranks[0]:
        rows = evaluator.search.best(ranks[0], frame, evaluator, most)
        if rows is not None:
            return rows[sort_rows(sort, frame.take(rows), evaluator, tick)]
    chosen = _top_k_candidate_rows(sort.keys[0], frame, evaluator, most)
    if chosen is not None:
        frame = frame.take(chosen)
    keys: list[tuple[KeyValues, bool]] = []
    kept = np.ones(frame.rows, np.bool_)
    for key in sort.keys:
        call = key.expression
        if isinstance(call, FunctionCall) and call.function.kind is FunctionKind.RANK:
            scores, places = evaluator.search.scores(call, frame, evaluator)
            kept &= ~np.isnan(scores)
            if (
                len(ranks) == 1
                and not keys
                and len(distinct_values(scores[kept])) == np.count_nonzero(kept)
            ):
                order = np.argsort(-scores if call.function.best_is_highest else scores)
                return order[kept[order]]
            keys.append((column_values(pa.array(scores)), call.function.best_is_highest))
            keys.append((column_values(pa.array(places)), False))
        else:
            keys.append((_expression_key(call, frame, evaluator), key.descending))
    keys += [(_property_key(name, "id", frame, evaluator), False) for name in sort.tie_break]
    order = Sorter(keys, tick).order(np.flatnonzero(kept), most)
    return order if chosen is None else chosen[order]


def _expression_key(expression: Expression, frame: Frame, evaluator: Evaluator) -> KeyValues:
    """Return the values of an expression as a key."""
    if isinstance(expression, PropertyRef):
        return _property_key(expression.variable, expression.property, frame, evaluator)
    return column_values(evaluator.column(expression, frame))


def _property_key(variable: str, name: str, frame: Frame, evaluator: Evaluator) -> KeyValues:
    """Return the values of a property as a key, of many rows without a copy for each row.

    Where many rows are of few entities, their places among all entities are compared instead.
    """
    table, positions = evaluator.tables[variable], frame.positions[variable]
    is_short = frame.rows <= SORT_RUN_ROWS or frame.rows * SPARSE_RATIO <= table.rows
    if is_short or variable in evaluator.indirect or not evaluator.reads_whole(table, name):
        return column_values(evaluator.values(variable, name, positions))
    if table.rows <= RANK_ROWS and table.rows * TOP_K_RATIO <= frame.rows:
        places = table.codes(name, dense_ranks)
        return lambda rows: pa.array(places[positions[rows]])
    column = table.column(name)
    return lambda rows: column.take(pa.array(positions[rows]))


def comparable_values(expression: Expression, frame: Frame, evaluator: Evaluator) -> pa.Array:
    """Return the values of an expression, or numbers in their order, the same for all frames."""
    if isinstance(expression, PropertyRef):
        return comparable_property(expression.variable, expression.property, frame, evaluator)
    return evaluator.column(expression, frame)


def comparable_property(variable: str, name: str, frame: Frame, evaluator: Evaluator) -> pa.Array:
    """Return the values of a property, or their places among those of few entities."""
    table, positions = evaluator.tables[variable], frame.positions[variable]
    is_few = table.rows <= RANK_ROWS and variable not in evaluator.indirect
    if is_few and evaluator.reads_whole(table, name):
        return pa.array(table.codes(name, dense_ranks)[positions].astype(np.int32))
    return evaluator.values(variable, name, positions)


def _top_k_candidate_rows(
    key: op.SortKey, frame: Frame, evaluator: Evaluator, most: int | None
) -> Positions | None:
    """Return the rows that may be among the first `most` by their first key; None for all."""
    if most is None or most * TOP_K_RATIO >= frame.rows or frame.rows > PARTITION_ROWS:
        return None
    if isinstance(key.expression, FunctionCall):
        return None
    column = timestamps_to_integers(evaluator.column(key.expression, frame))
    is_plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if not most or column.null_count or not is_plain:
        return None
    values = column.to_numpy(zero_copy_only=False)
    if np.isnan(values).any():
        return None
    if key.descending:
        return np.flatnonzero(values >= np.partition(values, -most)[-most])
    return np.flatnonzero(values <= np.partition(values, most - 1)[most - 1])
