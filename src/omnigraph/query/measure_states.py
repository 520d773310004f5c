"""Aggregates of groups whose rows come in batches: what is kept of a group between two of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.plan.expressions import FunctionCall
from omnigraph.plan.functions import FUNCTIONS
from omnigraph.query.aggregation import (
    collect_values,
    count_column,
    distinct_in_groups,
    extreme_values,
    sum_column,
)
from omnigraph.query.comparison import timestamps_to_integers
from omnigraph.query.exact_integers import (
    Weights,
    as_floats,
    exact_addition,
    sum_by_group,
)
from omnigraph.storage.columns import Positions


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Rows of one batch: the group of each, how many groups there are, how often a row counts."""

    groups: Positions
    size: int
    weights: Weights | None = None

    def only(self, there: npt.NDArray[np.bool_]) -> GroupedRows:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[there]
        return GroupedRows(self.groups[there], self.size, weights)


class MeasureState(Protocol):
    """An aggregate of all groups."""

    def add(self, values: pa.Array | None, rows: GroupedRows) -> None:
        """Add the values of rows; None when rows are counted, whatever they have."""

    def results(self, count: int) -> pa.Array:
        """Return the values of the first groups."""

    def drop(self, count: int) -> None:
        """Forget the first groups."""

    @property
    def nbytes(self) -> int:
        """How much memory this takes."""


@dataclass(slots=True)
class CountState:
    """Counts of values that are not null."""

    call: FunctionCall
    totals: Weights = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, values: pa.Array | None, rows: GroupedRows) -> None:
        """Count the values of rows."""
        if values is not None and values.null_count:
            rows = rows.only(np.asarray(values.is_valid()))
        if rows.weights is None:
            counts: Weights = np.bincount(rows.groups, minlength=rows.size)
        else:
            counts = sum_by_group(rows.groups, rows.weights, rows.size)
        self.totals = exact_addition(_grown(self.totals, rows.size), counts)

    def results(self, count: int) -> pa.Array:
        """Return the counts."""
        return count_column(self.totals[:count])

    def drop(self, count: int) -> None:
        """Forget the first groups."""
        self.totals = self.totals[count:]

    @property
    def nbytes(self) -> int:
        """How much memory this takes."""
        return self.totals.nbytes


@dataclass(slots=True)
class SumState:
    """Sums or means: those of integers are exact, others are added in the order of rows."""

    call: FunctionCall
    sums: Weights = field(default_factory=lambda: np.zeros(0, np.int64))
    sizes: Positions = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, values: pa.Array | None, rows: GroupedRows) -> None:
        """Add the values of rows."""
        assert values is not None, "sums are of values"
        numbers = timestamps_to_integers(values)
        if numbers.null_count:
            there = numbers.is_valid()
            rows, numbers = rows.only(np.asarray(there)), numbers.filter(there)
        added = numbers.to_numpy(zero_copy_only=False)
        if pa.types.is_integer(numbers.type):
            more = sum_by_group(rows.groups, added, rows.size)
            self.sums = exact_addition(_grown(self.sums, rows.size), more)
        else:
            groups = np.concatenate([np.arange(len(self.sums)), rows.groups])
            self.sums = np.bincount(groups, np.concatenate([self.sums, added]), rows.size)
        sizes = np.bincount(rows.groups, minlength=rows.size)
        self.sizes = _grown(self.sizes, rows.size) + sizes

    def results(self, count: int) -> pa.Array:
        """Return sums or means."""
        sums, is_mean = as_floats(self.sums[:count]), self.call.function.name == "avg"
        return sum_column(sums, self.sizes[:count], is_mean=is_mean)

    def drop(self, count: int) -> None:
        """Forget the first groups."""
        self.sums, self.sizes = self.sums[count:], self.sizes[count:]

    @property
    def nbytes(self) -> int:
        """How much memory this takes."""
        return self.sums.nbytes + self.sizes.nbytes


@dataclass(slots=True)
class ExtremeState:
    """The smallest or greatest values."""

    call: FunctionCall
    values: pa.Array | None = None

    def add(self, values: pa.Array | None, rows: GroupedRows) -> None:
        """Compare the values of rows with those so far."""
        assert values is not None, "extremes are of values"
        groups = rows.groups
        if self.values is not None:
            groups = np.concatenate([np.arange(len(self.values)), groups])
            values = pa.concat_arrays([self.values.cast(values.type), values])
        self.values = extreme_values(
            self.call.function.name, self.call, values, (groups, rows.size)
        )

    def results(self, count: int) -> pa.Array:
        """Return the values."""
        assert self.values is not None, "rows were added"
        return self.values.slice(0, count)

    def drop(self, count: int) -> None:
        """Forget the first groups."""
        assert self.values is not None, "rows were added"
        self.values = self.values.slice(count)

    @property
    def nbytes(self) -> int:
        """How much memory this takes."""
        return 0 if self.values is None else int(self.values.nbytes)


@dataclass(slots=True)
class ValuesState:
    """The values of each group, each once if they are to be distinct: a list or a count."""

    call: FunctionCall
    is_sorted: bool = False
    """Whether values ascend within groups, so that of those counted the last is enough."""
    values: pa.Array | None = None
    groups: Positions = field(default_factory=lambda: np.empty(0, np.int64))
    counted: Positions = field(default_factory=lambda: np.zeros(0, np.int64))
    """How many values of each group were counted and forgotten."""

    def add(self, values: pa.Array | None, rows: GroupedRows) -> None:
        """Keep the values of rows."""
        assert values is not None, "there are values"
        there = values.is_valid()
        values, groups = values.filter(there), rows.groups[np.asarray(there)]
        if self.values is not None:
            values = pa.concat_arrays([self.values, values])
            groups = np.concatenate([self.groups, groups])
        if self.call.distinct:
            values, groups = distinct_in_groups(values, groups)
        self.values, self.groups = values, groups
        self.counted = _grown(self.counted, rows.size)

    def results(self, count: int) -> pa.Array:
        """Return the lists or counts."""
        there = np.flatnonzero(self.groups < count)
        groups = self.groups[there]
        if self.call.function.name == "count":
            counts = np.bincount(groups, minlength=count)
            return pa.array(self.counted[:count] + counts, pa.int64())
        assert self.values is not None, "rows were added"
        return collect_values(self.call, self.values.take(pa.array(there)), (groups, count))

    def drop(self, count: int) -> None:
        """Forget the first groups, and of others what cannot come again."""
        assert self.values is not None, "rows were added"
        kept = np.flatnonzero(self.groups >= count)
        self.counted = self.counted[count:]
        if self.is_sorted and len(kept):
            # All are of the last group: groups before it are complete.
            self.counted = self.counted + len(kept) - 1
            kept = kept[-1:]
        self.values = self.values.take(pa.array(kept))
        self.groups = self.groups[kept] - count

    @property
    def nbytes(self) -> int:
        """How much memory this takes."""
        values = 0 if self.values is None else int(self.values.nbytes)
        return values + self.groups.nbytes + self.counted.nbytes


_STATES: Mapping[str, Callable[[FunctionCall], MeasureState]] = MappingProxyType(
    {
        "count": CountState,
        "sum": SumState,
        "avg": SumState,
        "min": ExtremeState,
        "max": ExtremeState,
        "collect": ValuesState,
    }
)


def has_state(call: FunctionCall) -> bool:
    """Return whether an aggregate can be computed from batches."""
    return call.function.name in _STATES and FUNCTIONS[call.function.name] is call.function


def measure_state(call: FunctionCall, *, is_sorted: bool = False) -> MeasureState:
    """Return the state of an aggregate of no rows; `is_sorted` as in `ValuesState`."""
    if call.distinct and call.function.name == "count":
        return ValuesState(call, is_sorted)
    return _STATES[call.function.name](call)


def _grown(numbers: Weights, size: int) -> Weights:
    """Return numbers for more groups, 0 for new ones."""
    new: Weights = np.zeros(size - len(numbers), numbers.dtype)
    return np.concatenate([numbers, new])
