"""Sort rows that do not fit memory: sorted runs in a temporary file, merged a block at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from omnigraph.query.limits import QueryBudget
from omnigraph.query.sorting import Sorter, column_values
from omnigraph.query.spill_file import SpilledBatch
from omnigraph.storage.columns import Positions

MERGED_RUNS = 32
"""Runs that are merged at once; when there are more, some are merged into one first."""
MIN_BLOCK_ROWS = 64

SortOrder = Sequence[tuple[str, bool]]
"""Columns by which rows are sorted, and whether in descending order."""
_Run = list[SpilledBatch]
"""The sorted blocks of a run."""


@dataclass(slots=True)
class ExternalSorter:
    """Sorts tables of the same columns; with `most`, only that many first rows are wanted."""

    keys: SortOrder
    budget: QueryBudget
    most: int | None = None
    _waiting: list[pa.Table] = field(default_factory=list)
    _bytes: int = 0
    _runs: list[_Run] = field(default_factory=list)
    _schema: pa.Schema | None = None

    def add(self, rows: pa.Table) -> None:
        """Take more rows."""
        self._schema = self._schema or rows.schema
        self._waiting.append(rows)
        self._bytes += rows.nbytes
        if self._bytes > self.budget.step_memory:
            self._flush()

    def sorted(self) -> Iterator[pa.Table]:
        """Yield all rows in order."""
        assert self._schema is not None, "rows were added, if only none"
        if not self._runs:
            yield self._in_order()
            return
        if self._waiting:
            self._write_run(self._in_order())
        yield self._schema.empty_table()
        yield from self._merged(self._runs)

    def _tick(self) -> None:
        self.budget.check("Sort")

    def _in_order(self) -> pa.Table:
        """Return the waiting rows in order; they wait no more."""
        rows = sort_table(pa.concat_tables(self._waiting), self.keys, self.budget, self.most)
        self._waiting, self._bytes = [], 0
        return rows

    def _flush(self) -> None:
        """Sort the waiting rows, and write them to the file unless few of them are wanted."""
        rows = self._in_order()
        if self.most is not None and 2 * rows.nbytes <= self.budget.step_memory:
            self._waiting, self._bytes = [rows], rows.nbytes
        else:
            self._write_run(rows)

    def _write_run(self, rows: pa.Table) -> None:
        """Write sorted rows to the file; when there are many runs, merge them into one."""
        self._runs.append(list(self._written([rows], rows.nbytes / max(1, rows.num_rows))))
        if len(self._runs) >= MERGED_RUNS:
            runs, self._runs = self._runs, []
            width = sum(place.size for run in runs for place in run) / max(1, sum(map(_rows, runs)))
            self._runs.append(list(self._written(self._merged(runs), width)))

    def _written(self, tables: Iterator[pa.Table] | list[pa.Table], width: float) -> _Run:
        """Write rows in blocks, of which one of each run fits memory."""
        size = int(self.budget.step_memory / MERGED_RUNS / max(1.0, width))
        run: _Run = []
        for table in tables:
            for start in range(0, table.num_rows, max(MIN_BLOCK_ROWS, size)):
                rows = table.slice(start, max(MIN_BLOCK_ROWS, size)).combine_chunks()
                run += [self.budget.spill("Sort", batch) for batch in rows.to_batches()]
        return run

    def _merged(self, runs: list[_Run]) -> Iterator[pa.Table]:
        """Yield the rows of runs in order.

        A row may be given out when no run can have a smaller one: up to the first of the last rows
        of the blocks that are in memory.
        """
        readers = [iter(run) for run in runs]
        heads = {number: _next_block(reader) for number, reader in enumerate(readers)}
        while True:
            self._tick()
            for number, head in heads.items():
                if head is not None and not head.num_rows:
                    heads[number] = _next_block(readers[number])
            blocks = {number: head for number, head in heads.items() if head is not None}
            if not blocks:
                return
            near, bound = self._up_to_bound(blocks)
            rows = pa.concat_tables([blocks[number] for number in near])
            sizes = np.array([blocks[number].num_rows for number in near])
            owners = np.repeat(np.arange(len(near)), sizes)
            order = _order(rows, self.keys, self.budget)
            last = int(np.cumsum(sizes)[near.index(bound)]) - 1
            order = order[: int(np.flatnonzero(order == last)[0]) + 1]
            taken = np.bincount(owners[order], minlength=len(near)).tolist()
            for number, count in zip(near, taken, strict=True):
                heads[number] = blocks[number].slice(count)
            yield rows.take(pa.array(order))

    def _up_to_bound(self, blocks: dict[int, pa.Table]) -> tuple[list[int], int]:
        """Return the runs that have rows before the first of the last rows, and its run."""
        numbers = list(blocks)
        firsts = [blocks[number].slice(0, 1) for number in numbers]
        lasts = [blocks[number].slice(blocks[number].num_rows - 1) for number in numbers]
        order = _order(pa.concat_tables([*firsts, *lasts]), self.keys, self.budget).tolist()
        place = next(at for at, row in enumerate(order) if row >= len(numbers))
        bound = numbers[order[place] - len(numbers)]
        near = {numbers[row] for row in order[:place]} | {bound}
        return sorted(near), bound


def sort_table(
    rows: pa.Table, keys: SortOrder, budget: QueryBudget, most: int | None = None
) -> pa.Table:
    """Return rows in order, or the first `most` of them."""
    order = _order(rows, keys, budget, most)
    return rows.take(pa.array(order if most is None else order[:most]))


def _order(
    rows: pa.Table, keys: SortOrder, budget: QueryBudget, most: int | None = None
) -> Positions:
    values = [(column_values(_whole(rows[name])), down) for name, down in keys]
    return Sorter(values, lambda: budget.check("Sort")).order(np.arange(rows.num_rows), most)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _next_block(reader: Iterator[SpilledBatch]) -> pa.Table | None:
    place = next(reader, None)
    return None if place is None else pa.Table.from_batches([place.read()])


def _rows(run: _Run) -> int:
    return sum(place.rows for place in run)
