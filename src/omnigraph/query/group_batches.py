"""Group rows that come in batches, and compute their aggregates.

Groups stay in memory while they fit. When there are too many, rows are sorted by their keys through
a temporary file, so that only the last group of a batch goes on in the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.plan.expressions import FunctionCall
from omnigraph.query.aggregation import group_rows
from omnigraph.query.exact_integers import Weights
from omnigraph.query.external_sort import ExternalSorter
from omnigraph.query.limits import QueryBudget
from omnigraph.query.measure_states import GroupedRows, MeasureState, measure_state
from omnigraph.storage.columns import Positions

ROW_NUMBER = "#row"
"""The column with the number of a row among all, and of a group with that of its first row."""
WEIGHT = "#weight"
"""The column that says how often a row counts, if that is not once."""


class TooManyGroups(Exception):
    """Groups do not fit memory."""


@dataclass(frozen=True, slots=True)
class BatchMeasure:
    """An aggregate and the column of its values; None counts rows."""

    name: str
    call: FunctionCall
    column: str | None


Batches: TypeAlias = Callable[[], Iterable[pa.Table]]
"""Makes the rows, again each time: key columns, values of measures, numbers and weights of rows."""


@dataclass(frozen=True, slots=True)
class BatchGrouping:
    """How to group rows; without keys all are one group."""

    keys: Sequence[str]
    measures: Sequence[BatchMeasure]
    budget: QueryBudget

    def tables(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield groups in the order in which they appear first."""
        try:
            groups = [self._in_memory(batches)]
        except TooManyGroups:
            yield from self._by_sorting(batches)
        else:
            yield from groups

    @property
    def _counted(self) -> list[str]:
        """The column whose different values are counted, if there is one: rows are sorted by it."""
        counted = [m.column for m in self.measures if m.column and _counts_distinct(m)]
        return counted if len(counted) == 1 else []

    def _in_memory(self, batches: Batches) -> pa.Table:
        groups = _Groups.of(self)
        for rows in batches():
            self.budget.check("Aggregate")
            groups.add(rows)
            if groups.nbytes > self.budget.step_memory and (self.keys or self._counted):
                raise TooManyGroups
            self.budget.check_bytes("Aggregate", groups.nbytes)
        return groups.close(len(groups))

    def _by_sorting(self, batches: Batches) -> Iterator[pa.Table]:
        order = [*self.keys, *self._counted, ROW_NUMBER]
        sorter = ExternalSorter([(name, False) for name in order], self.budget)
        for rows in batches():
            sorter.add(rows)
        groups = _Groups.of(self, is_sorted=bool(self._counted))
        results = ExternalSorter([(ROW_NUMBER, False)], self.budget)
        for rows in sorter.sorted():
            groups.add(rows)
            results.add(groups.close(max(0, len(groups) - 1)))
            self.budget.check_bytes("Aggregate", groups.nbytes)
        results.add(groups.close(len(groups)))
        yield from results.sorted()


@dataclass(slots=True)
class _Groups:
    """The groups so far, with their keys and the states of their measures."""

    grouping: BatchGrouping
    states: list[MeasureState]
    is_sorted: bool
    """Whether rows of a group ascend by the values that are counted, not by their numbers."""
    heads: pa.Table | None = None
    """The keys of each group and the number of its first row."""
    _size: int = field(default=0)

    @classmethod
    def of(cls, grouping: BatchGrouping, *, is_sorted: bool = False) -> _Groups:
        """Return no groups."""
        states = [measure_state(m.call, is_sorted=is_sorted) for m in grouping.measures]
        return cls(grouping, states, is_sorted, _size=0 if grouping.keys else 1)

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        """How much memory this takes."""
        heads = 0 if self.heads is None else int(self.heads.nbytes)
        return heads + sum(state.nbytes for state in self.states)

    def add(self, rows: pa.Table) -> None:
        """Add rows to their groups."""
        heads = rows.select([*self.grouping.keys, ROW_NUMBER])
        if self.heads is None:
            self.heads = heads.slice(0, 0)
        groups = self._numbers(heads) if self.grouping.keys else np.zeros(len(rows), np.int64)
        weights: Weights | None = None
        if WEIGHT in rows.column_names:
            weights = rows[WEIGHT].to_numpy()
        grouped = GroupedRows(groups, self._size, weights)
        for measure, state in zip(self.grouping.measures, self.states, strict=True):
            column = None if measure.column is None else rows[measure.column].combine_chunks()
            state.add(column, grouped)

    def _numbers(self, heads: pa.Table) -> Positions:
        """Return the group of each row, those that are new counted on."""
        assert self.heads is not None, "set with the first rows"
        known = self._size
        both = pa.concat_tables([self.heads, heads])
        columns = (both[name].combine_chunks() for name in self.grouping.keys)
        groups, first = group_rows(columns, len(both))
        if self.is_sorted:
            first = _least_numbers(both, groups)
        self.heads, self._size = both.take(pa.array(first)).combine_chunks(), len(first)
        return groups[known:]

    def close(self, count: int) -> pa.Table:
        """Return the first groups as rows, and forget them."""
        assert self.heads is not None, "rows were added, if only none"
        measures = {
            measure.name: state.results(count)
            for measure, state in zip(self.grouping.measures, self.states, strict=True)
        }
        if self.grouping.keys:
            rows = self.heads.slice(0, count)
        else:
            rows = pa.table({ROW_NUMBER: np.zeros(count, np.int64)})
        for name, column in measures.items():
            rows = rows.append_column(name, column)
        self.heads, self._size = self.heads.slice(count), self._size - count
        for state in self.states:
            state.drop(count)
        return rows


def _counts_distinct(measure: BatchMeasure) -> bool:
    return measure.call.distinct and measure.call.function.name == "count"


def _least_numbers(rows: pa.Table, groups: Positions) -> Positions:
    """Return the row of each group with the least number: sorted rows come in another order."""
    order = np.lexsort((rows[ROW_NUMBER].to_numpy(), groups))
    first: Positions = order[np.flatnonzero(np.diff(groups[order], prepend=-1))]
    return first
