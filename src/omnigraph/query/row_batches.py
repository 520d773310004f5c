"""Make the rows of a pattern in batches that fit a part of the memory of a query.

Every operator extends the rows below it some at a time; when what it makes of them does not fit, it
takes fewer. Sorted rows wait in a temporary file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.plan import operators as op
from omnigraph.plan.expressions import predicate_variables, property_refs
from omnigraph.query.executor import Execution, max_result_rows, outer_variables_used, slice_bounds
from omnigraph.query.external_sort import ExternalSorter
from omnigraph.query.frame import Frame
from omnigraph.query.limits import MEMORY_CODE, QueryBudget, QueryLimit
from omnigraph.query.sorting import comparable_property, comparable_values

FIRST_BATCH_ROWS, MAX_BATCH_ROWS = 4_096, 262_144
"""Rows that an operator extends at once, or a cross product makes: at first, and at most."""
VALUE_ROWS = 1_024
"""Rows of which values are made first, to see how wide they are."""
_POSITION, _KEY = "p:", "k:"
"""What the columns of sorted rows begin with: positions by variable, and sort keys."""


@dataclass(slots=True)
class RowBatches:
    """The rows of patterns, some at a time, in the order in which `Execution` makes them.

    With `weigh`, rows that differ only in what is not needed may be counted instead of made.
    """

    execution: Execution
    weigh: bool = False
    most_sorted: int | None = None
    """Rows that a sort may have at most; more would make a result that does not fit memory."""
    _sizes: dict[int, int] = field(default_factory=dict)

    def of(self, operator: op.RowOperator, needed: set[str]) -> Iterator[Frame]:
        """Yield the rows of an operator with the variables that are needed; at least one frame."""
        match operator:
            case op.Scan() | op.OuterRow() | op.Union():
                yield self.execution.rows(operator, needed, weigh=self.weigh)
            case op.SortRows():
                yield from self._sorted(operator, needed, None)
            case op.SliceRows():
                yield from self._sliced(operator, needed)
            case _:
                source = _batched_input(operator)
                self._keep_right_sides(operator, needed)
                for frame in self.of(source, needed | _own_variables(operator)):
                    yield from self._extended(operator, source, frame, needed)

    def _extended(
        self, operator: op.RowOperator, source: op.RowOperator, frame: Frame, needed: set[str]
    ) -> Iterator[Frame]:
        """Yield what an operator makes of rows of its input."""
        given = self.execution.given
        at, size = 0, self._sizes.get(id(operator)) or self._first_size(operator)
        while at < frame.rows or not at:
            part = frame.take(slice(at, at + size))
            given[id(source)] = part
            try:
                rows = self.execution.rows(operator, needed, weigh=self.weigh)
            except QueryLimit as refused:
                if refused.code != MEMORY_CODE or part.rows <= 1:
                    raise
                size = part.rows // 2
                continue
            finally:
                given.pop(id(source), None)
            self._sizes[id(operator)] = size
            yield rows
            at, size = at + max(1, part.rows), min(2 * size, MAX_BATCH_ROWS)

    def _first_size(self, operator: op.RowOperator) -> int:
        """Return how many rows an operator extends at first."""
        cross = operator.input if isinstance(operator, op.Filter) else operator
        if isinstance(cross, op.Cross):
            return max(1, FIRST_BATCH_ROWS // max(1, self.execution.given[id(cross.right)].rows))
        return FIRST_BATCH_ROWS

    def _keep_right_sides(self, operator: op.RowOperator, needed: set[str]) -> None:
        """Make the right side of a cross product once, not for every batch of the left side."""
        cross = operator.input if isinstance(operator, op.Filter) else operator
        if isinstance(cross, op.Cross):
            names = needed | _own_variables(operator)
            rows = self.execution.rows(cross.right, names, weigh=self.weigh)
            self.execution.given[id(cross.right)] = rows

    # --- order and limit -----------------------------------------------------------------------

    def _sorted(self, sort: op.SortRows, needed: set[str], most: int | None) -> Iterator[Frame]:
        """Yield rows in order; with `most`, those after that number may be left out."""
        named = {ref.variable for key in sort.keys for ref in property_refs(key.expression)}
        evaluator, budget = self.execution.evaluator, self.execution.budget
        directions = [key.descending for key in sort.keys] + [False] * len(sort.tie_break)
        keys = [(f"{_KEY}{number}", down) for number, down in enumerate(directions)]
        sorter, kept, count = ExternalSorter(keys, budget, most), needed, 0

        def values(frame: Frame) -> pa.Table:
            columns = [comparable_values(key.expression, frame, evaluator) for key in sort.keys]
            columns += [
                comparable_property(name, "id", frame, evaluator) for name in sort.tie_break
            ]
            return pa.table(
                {_POSITION + name: frame.positions[name] for name in sorted(frame.positions)}
                | {name: column for (name, _), column in zip(keys, columns, strict=True)}
            )

        for frame in self.of(sort.input, needed | named | set(sort.tie_break)):
            for part, rows in value_tables(frame, values, budget, "Sort"):
                kept = needed & set(part.positions)
                sorter.add(rows)
                count += part.rows
                if most is None and self.most_sorted is not None and count > self.most_sorted:
                    message = f"Sort would make more than {self.most_sorted:,} rows"
                    limit = budget.limit
                    raise QueryLimit(message, code=MEMORY_CODE, operator="Sort", limit=limit)
        for rows in sorter.sorted():
            positions = {name: rows[_POSITION + name].to_numpy() for name in kept}
            yield Frame(rows.num_rows, positions)

    def _sliced(self, cut: op.SliceRows, needed: set[str]) -> Iterator[Frame]:
        most = max_result_rows(cut, self.execution.evaluator)
        if isinstance(cut.input, op.SortRows):
            frames = self._sorted(cut.input, needed, most)
        else:
            frames = self.of(cut.input, needed)
        seen = 0
        for frame in frames:
            start, stop = slice_bounds(cut, seen + frame.rows, self.execution.evaluator)
            yield frame.take(slice(max(0, start - seen), max(0, stop - seen)))
            seen += frame.rows
            if most is not None and seen >= most:
                return


def batches_of_rows(
    execution: Execution, operator: op.RowOperator, needed: set[str]
) -> Iterator[Frame]:
    """Yield the rows of an operator some at a time; at least one frame."""
    return RowBatches(execution).of(operator, needed)


def value_tables(
    frame: Frame, make: Callable[[Frame], pa.Table], budget: QueryBudget, operator: str
) -> Iterator[tuple[Frame, pa.Table]]:
    """Yield the values of rows, of as many at once as take half the memory of a batch."""
    at, size = 0, VALUE_ROWS
    while at < frame.rows or not at:
        budget.check(operator)
        part = frame.take(slice(at, at + size))
        rows = make(part)
        yield part, rows
        at += max(1, part.rows)
        width = max(1, rows.nbytes // max(1, part.rows))
        size = max(1, min(4 * size, budget.step_memory // 2 // width, MAX_BATCH_ROWS))


def _batched_input(operator: op.RowOperator) -> op.RowOperator:
    """Return the operator whose rows an operator is given in parts.

    A filter takes a cross product with it, and a check the step that closes a cycle with it: their
    rows are not all made.
    """
    match operator:
        case op.Cross(left=left) | op.Filter(input=op.Cross(left=left)):
            return left
        case op.SemiJoin(input=op.Expand(input=source)):
            return source
        case op.Scan() | op.OuterRow() | op.Union():
            raise AssertionError("rows of a leaf are not made from others")
        case _:
            return operator.input


def _own_variables(operator: op.RowOperator) -> set[str]:
    """Return the variables that an operator needs of the rows below it."""
    match operator:
        case op.SemiJoin(src=src, dst=dst, input=source):
            step = _own_variables(source) if isinstance(source, op.Expand) else set()
            return {src, dst} | step
        case op.Expand(src=src):
            return {src}
        case op.Filter(predicate=predicate):
            return set(predicate_variables(predicate))
        case op.AntiJoin() | op.ExistsJoin() | op.OptionalJoin():
            return outer_variables_used(operator.inner)
        case _:
            return set()
