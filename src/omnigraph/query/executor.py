"""Execute the operators of a read plan, bottom up, over one snapshot.

Rows are positions of entities; properties are fetched only where they are used, and
variables that are no longer needed are dropped early.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

import numpy as np

from omnigraph.catalog import TypeKind
from omnigraph.commit.model import Snapshot
from omnigraph.plan import operators as op
from omnigraph.plan.expressions import (
    Binding,
    Direction,
    Expression,
    Predicate,
    has_predicate_call,
    is_row_value,
    predicate_refs,
    predicate_variables,
    property_refs,
)
from omnigraph.query.column_cache import ColumnCache, TypeTable
from omnigraph.query.comparison import Mask
from omnigraph.query.exact_integers import Weights
from omnigraph.query.expansion import EdgeExpansion, ExpandMode
from omnigraph.query.expressions import Constants, Evaluator
from omnigraph.query.frame import NO_ENTITY, OUTER_ROW, Frame
from omnigraph.query.limits import QueryBudget, chunk_slices, run_large
from omnigraph.query.pushdown import key_lookup, scan_filter
from omnigraph.query.sorting import sort_rows
from omnigraph.query.topology import TopologyCache
from omnigraph.storage.columns import Positions

DENSE_NODE_RATIO = 8
"""Share of nodes from which on all edges are followed at once."""
MERGED_ROWS = 4_096
"""Rows from which on equal ones are counted before edges are followed from each."""
STEP_ROWS = 262_144
"""Rows that are made or tested before the clock is looked at."""
CHECKED_ROWS = 65_536
"""Rows of which values are made to see how much memory those of all rows take."""


@dataclass(frozen=True, slots=True)
class OperatorStats:
    """What an operator really did with all below it: rows it gave, time, and reads of storage."""

    rows: int
    seconds: float
    reads: int
    ways: tuple[str, ...] = ()
    """How edges were followed."""
    examined: int = 0
    """Rows and edges that the operator itself looked at."""

    def extended(self, more: OperatorStats) -> OperatorStats:
        """Return what this and one more run did; `ways` and `examined` are of both already."""
        return replace(
            more,
            rows=self.rows + more.rows,
            seconds=self.seconds + more.seconds,
            reads=self.reads + more.reads,
        )


RowSource: TypeAlias = Callable[["Execution", op.RowOperator, set[str]], Iterator[Frame]]
"""Yields the rows of an operator with the variables that are needed, some at a time."""


@dataclass(slots=True, kw_only=True)
class Execution:
    """One run of a plan: what it reads from, and what it may take."""

    snapshot: Snapshot
    store: ColumnCache
    topologies: TopologyCache
    evaluator: Evaluator
    budget: QueryBudget
    batches: RowSource
    """Makes the rows of an operator some at a time."""
    mode: ExpandMode = ExpandMode.AUTO
    tables: dict[str, TypeTable] = field(default_factory=dict)
    trace: dict[int, OperatorStats] | None = None
    given: dict[int, Frame] = field(default_factory=dict)
    """Rows that take the place of an operator, by its id, while those above it run in parts."""
    used_expansions: dict[int, set[ExpandMode]] = field(default_factory=dict)
    """How operators followed edges."""
    examined: dict[int, int] = field(default_factory=dict)
    """How many rows and edges operators looked at."""
    outer: Frame | None = None
    """Of a negated pattern: the rows of the enclosing one, with their numbers."""

    in_batches: bool = False
    """Whether operators run more than once, each time for some rows."""

    def begin_batches(self) -> None:
        """Begin again, in batches, after the rows of an operator did not fit memory."""
        self.budget.begin_batches()
        self.in_batches = True
        for kept in (self.given, self.used_expansions, self.examined, self.trace or {}):
            kept.clear()
        self.evaluator.forget()

    # --- rows ----------------------------------------------------------------------------------

    def rows(
        self,
        operator: op.RowOperator,
        needed: set[str],
        *,
        weigh: bool = False,
        most: int | None = None,
    ) -> Frame:
        """Return the rows of an operator with the variables that are needed.

        With `weigh`, rows that differ only in what is not needed may be counted instead of made.
        With `most`, a sort may leave out rows after that number.
        """
        if isinstance(operator, op.OuterRow):
            assert self.outer is not None, "a block starts from the rows of the outer query"
            return self.outer
        given = self.given.get(id(operator))
        begun = self.now()
        if given is not None:
            if not self.in_batches:
                self.note(operator, given.rows, begun)
            return given.only(needed)
        self.budget.check(type(operator).__name__)
        frame = self._executed(operator, needed, weigh=weigh, most=most)
        if self.trace is not None:
            self.note(operator, frame.total, begun)
        return frame.only(needed)

    def _executed(
        self, operator: op.RowOperator, needed: set[str], *, weigh: bool, most: int | None
    ) -> Frame:
        match operator:
            case op.Scan():
                return self._scan(operator)
            case op.Expand():
                return self._expand(operator, needed, weigh=weigh)
            case op.SemiJoin():
                return self._close(operator, needed, weigh=weigh)
            case op.Cross():
                return self._cross(operator, needed, weigh=weigh)
            case op.Union():
                return self._union(operator, needed)
            case op.Filter(input=source, predicate=predicate):
                used = needed | predicate_variables(predicate)
                if isinstance(source, op.Cross) and not has_predicate_call(predicate):
                    return self._filtered_cross(source, used, predicate, weigh=weigh)
                return self._filtered(self.rows(source, used, weigh=weigh), (predicate,))
            case op.AntiJoin() | op.ExistsJoin():
                return self._tested(operator, needed, weigh=weigh)
            case op.OptionalJoin():
                return self._optional(operator, needed, weigh=weigh)
            case op.SortRows():
                return self._sort(operator, needed, most)
            case op.SliceRows():
                return self._slice(operator, needed)
            case op.OuterRow():
                raise AssertionError("there is nothing to execute")
            case _ as unreachable:
                assert_never(unreachable)

    def now(self) -> tuple[float, int]:
        """Return the time, and how often storage was read."""
        return time.perf_counter(), self.store.reads

    def note(self, operator: op.PlanOperator, rows: int, begun: tuple[float, int]) -> None:
        """Note what an operator did since it began."""
        if self.trace is not None:
            seconds, reads = self.now()
            ways = tuple(sorted(self.used_expansions.get(id(operator), ())))
            examined = self.examined.get(id(operator), 0)
            before = self.trace.get(id(operator)) if self.in_batches else None
            stats = OperatorStats(rows, seconds - begun[0], reads - begun[1], ways, examined)
            self.trace[id(operator)] = stats if before is None else before.extended(stats)

    def examine(self, operator: op.PlanOperator, count: int) -> None:
        """Note that an operator looked at more rows or edges."""
        self.examined[id(operator)] = self.examined.get(id(operator), 0) + count

    def check_values(self, operator: str, expressions: Iterable[Expression], frame: Frame) -> None:
        """Refuse values that would not fit, judging by those of the first rows."""
        plain = [expression for expression in expressions if is_row_value(expression)]
        references = [ref for expression in plain for ref in property_refs(expression)]
        count = self.evaluator.rows_at_once(references, CHECKED_ROWS)
        if frame.rows <= count:
            return
        some = frame.take(np.arange(count))
        self.evaluator.fetch(plain, some)
        size = sum(self.evaluator.column(expression, some).nbytes for expression in plain)
        self.budget.check_bytes(operator, size * frame.rows // count)

    def tick(self) -> None:
        """Raise QueryLimit when time is up while rows are sorted."""
        self.budget.check("Sort")

    def bind(self, binding: Binding) -> TypeTable:
        """Return the table of a variable, and remember it for expressions."""
        table = self.tables.get(binding.name)
        if table is None or table.type.name != binding.type_name:
            table = self.store.table(self.snapshot, TypeKind(binding.kind), binding.type_name)
            self.tables[binding.name] = table
        return table

    # --- operators -----------------------------------------------------------------------------

    def _scan(self, scan: op.Scan) -> Frame:
        table, name = self.bind(scan.binding), scan.binding.name
        by_key = key_lookup(scan.predicates, table, self.evaluator)
        if by_key is not None:
            positions = table.position_of(by_key[0])
            self.examine(scan, len(positions))
            return self._filtered(Frame(len(positions), {name: positions}), by_key[1])
        condition, left = scan_filter(scan.predicates, table, self.evaluator)
        if condition is None:
            positions = table.everything
        else:
            positions = run_large("Scan", table.rows, lambda: table.positions(condition))
        self.examine(scan, table.rows)
        return self._filtered(Frame(len(positions), {name: positions}), left)

    def _filtered(self, frame: Frame, predicates: Iterable[Predicate]) -> Frame:
        for predicate in predicates:
            if frame.rows:
                frame = frame.take(self._mask(predicate, frame))
        return frame

    def _mask(self, predicate: Predicate, frame: Frame) -> Mask:
        """Return for which rows a predicate holds, looking at the clock where that takes steps."""
        references = list(predicate_refs(predicate))
        at_hand = self.evaluator.is_at_hand(references)
        rows_at_once = self.evaluator.rows_at_once(references, STEP_ROWS)
        # Texts are searched for all rows at once.
        if frame.rows <= rows_at_once or has_predicate_call(predicate) or not at_hand:
            return self.evaluator.mask(predicate, frame)
        mask = np.empty(frame.rows, np.bool_)
        for part in chunk_slices(frame.rows, rows_at_once):
            self.budget.check("Filter")
            mask[part] = self.evaluator.mask(predicate, frame.take(part))
        return mask

    def _expand(self, expand: op.Expand, needed: set[str], *, weigh: bool) -> Frame:
        self.bind(expand.dst)
        source = self.rows(expand.input, needed | {expand.src}, weigh=weigh)
        source = self._with_entities(source, expand.src)
        expansion = self.expansion(expand.edge, expand.direction)
        self.used_expansions[id(expand)] = expansion.used
        weighed = None
        if weigh and expand.edge_binding is None:
            weighed = self._weighed(expand, source, expansion, needed)
        if weighed is not None:
            self.examine(expand, source.rows + weighed.rows)
            return self._filtered(weighed, expand.predicates)
        left_out = set(expand.input.variables) - set(source.positions)
        if weigh and left_out and source.rows > MERGED_ROWS:
            source = source.merged()
        starts = source.positions[expand.src]
        if expand.edge_binding is not None:
            self.bind(expand.edge_binding)
            rows, nodes, edges = expansion.edges(starts, len(source.positions) + 3)
            new = {expand.dst.name: nodes, expand.edge_binding.name: edges}
        else:
            rows, nodes = expansion.reach(starts, expand.hops, is_reversed=expand.is_reversed)
            new = {expand.dst.name: nodes}
        self.budget.check("Expand", len(rows), len(source.positions) + len(new))
        self.examine(expand, source.rows + len(rows))
        frame = run_large("Expand", len(rows), lambda: source.take(rows)).with_columns(new)
        return self._filtered(frame, expand.predicates)

    def _weighed(
        self, expand: op.Expand, source: Frame, expansion: EdgeExpansion, needed: set[str]
    ) -> Frame | None:
        """Count what a step reaches instead of making a row for each path."""
        if not expand.hops.is_single:
            return None
        name, starts = expand.dst.name, source.positions[expand.src]
        if name not in needed and not expand.predicates:
            degrees = expansion.degrees(starts)
            return None if degrees is None else source.weighed(degrees)
        if needed & set(source.positions) or OUTER_ROW in source.positions:
            return None
        # Only the node that is reached matters: a row for each, however many paths lead there.
        nodes = expansion.near_nodes.rows
        weights = source.sums_by(starts, nodes) if source.rows * DENSE_NODE_RATIO > nodes else None
        totals = None if weights is None else expansion.propagate_weights(weights)
        if totals is None:
            return None
        reached = np.flatnonzero(totals)
        return Frame(len(reached), {name: reached}, totals[reached])

    def _close(self, close: op.SemiJoin, needed: set[str], *, weigh: bool) -> Frame:
        counted = self._closed_by_count(close, needed) if weigh else None
        if counted is not None:
            return counted
        source = self.rows(close.input, needed | {close.src, close.dst}, weigh=weigh)
        source = self._with_entities(source, close.src, close.dst)
        expansion = self.expansion(close.edge, close.direction)
        self.used_expansions[id(close)] = expansion.used
        here, there = source.positions[close.src], source.positions[close.dst]
        self.examine(close, source.rows)
        if close.edge_binding is None:
            return source.take(expansion.connects(here, there, close.hops))
        self.bind(close.edge_binding)
        rows, edges = expansion.edges_between(here, there)
        self.budget.check("SemiJoin", len(rows), len(source.positions) + 2)
        return source.take(rows).with_columns({close.edge_binding.name: edges})

    def _closed_by_count(self, close: op.SemiJoin, needed: set[str]) -> Frame | None:
        """Count the nodes by which a step and a check close a cycle, without making a row for each.

        That is when they are not needed, and both follow one edge of any kind.
        """
        step = close.input
        if not isinstance(step, op.Expand) or step.predicates or step.dst.name in needed:
            return None
        if {step.edge_binding, close.edge_binding} != {None} or close.src == close.dst:
            return None
        if not (step.hops.is_single and close.hops.is_single):
            return None
        ends = {close.src: close.direction, close.dst: close.direction.reversed}
        if ends.pop(step.dst.name, None) is None:
            return None
        [(other, direction)] = ends.items()
        if Direction.BOTH in (step.direction, direction) or self.mode is ExpandMode.INDEXED:
            return None
        self.bind(step.dst)
        source = self.rows(step.input, needed | {step.src, other}, weigh=True)
        source = self._with_entities(source, step.src, other)
        expansion, back = (
            self.expansion(step.edge, step.direction),
            self.expansion(close.edge, direction),
        )
        counts = expansion.common(source.positions[step.src], back, source.positions[other])
        return None if counts is None else source.weighed(counts)

    def expansion(self, edge_name: str, direction: Direction) -> EdgeExpansion:
        """Return what follows the edges of a type in a direction."""
        edge_type = self.snapshot.catalog.edges[edge_name]
        tables = {
            "edge": self.store.table(self.snapshot, TypeKind.EDGE, edge_name),
            "src": self.store.table(self.snapshot, TypeKind.NODE, edge_type.src),
            "dst": self.store.table(self.snapshot, TypeKind.NODE, edge_type.dst),
        }
        return EdgeExpansion(
            **tables,
            direction=direction,
            topologies=self.topologies,
            budget=self.budget,
            mode=self.mode,
        )

    def _cross(self, cross: op.Cross, needed: set[str], *, weigh: bool) -> Frame:
        """Return every row of one side with every row of the other, made a part at a time."""
        left, right = (self.rows(side, needed, weigh=weigh) for side in (cross.left, cross.right))
        for side, other in ((right, left), (left, right)) if weigh else ():
            if not side.positions:  # Only the number of its rows matters.
                self.examine(cross, other.rows)
                return other.repeated(side.total)
        total, names = left.rows * right.rows, [*left.positions, *right.positions]
        # Two columns more say which row of each side a row is made of.
        self.budget.check("Cross", total, len(names) + 2)
        self.examine(cross, total)
        columns = {name: np.empty(total, np.int64) for name in names}
        weights: list[Weights] = []
        for part in chunk_slices(total, STEP_ROWS):
            self.budget.check("Cross")
            rows = _cross_product_rows(left, right, part)
            for name, values in rows.positions.items():
                columns[name][part] = values
            weights += [] if rows.weights is None else [rows.weights]
        return Frame(total, columns, np.concatenate(weights) if weights else None)

    def _filtered_cross(
        self, cross: op.Cross, needed: set[str], test: Predicate, *, weigh: bool
    ) -> Frame:
        """Return the rows of a cross product that pass a test; others are not kept."""
        begun = self.now()
        left, right = (self.rows(side, needed, weigh=weigh) for side in (cross.left, cross.right))
        total, size = left.rows * right.rows, 0
        frames = [_cross_product_rows(left, right, slice(0, 0))]
        for part in chunk_slices(total, STEP_ROWS):
            self.budget.check("Filter", size, len(frames[0].positions))
            frames.append(self._filtered(_cross_product_rows(left, right, part), (test,)))
            size += frames[-1].rows
        self.budget.check("Filter", size, len(frames[0].positions))
        self.examine(cross, total)
        self.note(cross, total, begun)
        return Frame.joined(frames)

    def _union(self, union: op.Union, needed: set[str]) -> Frame:
        """Return the rows of all inputs; positions count on from the table of one to the next."""
        frames: list[Frame] = []
        tables: dict[str, dict[str, TypeTable]] = {name: {} for name in union.polymorphic}
        for source in union.inputs:
            self.evaluator.unions.clear()
            frame = self.rows(source, needed)
            shifted = dict(frame.positions)
            for name, known in tables.items():
                table = self.bind(source.variables[name])
                known.setdefault(table.type.name, table)
                if name in shifted:
                    shifted[name] = _shifted(shifted[name], known, table.type.name)
            frames.append(Frame(frame.rows, shifted))
            self.budget.check("Union", sum(f.rows for f in frames), len(shifted))
        self.evaluator.indirect.update(tables)
        self.evaluator.unions.update({n: list(known.values()) for n, known in tables.items()})
        return Frame.joined(frames)

    def _sort(self, sort: op.SortRows, needed: set[str], most: int | None) -> Frame:
        named = {ref.variable for key in sort.keys for ref in property_refs(key.expression)}
        source = self.rows(sort.input, needed | named | set(sort.tie_break))
        self._check_wide_keys(sort, source)
        return source.take(sort_rows(sort, source, self.evaluator, self.tick, most))

    def _check_wide_keys(self, sort: op.SortRows, frame: Frame) -> None:
        """Refuse to sort by the values of wide columns when those of all rows would not fit."""
        keys = [ref for key in sort.keys for ref in property_refs(key.expression)]
        if self.evaluator.rows_at_once(keys, CHECKED_ROWS) < min(frame.rows, CHECKED_ROWS):
            self.check_values("Sort", [key.expression for key in sort.keys], frame)

    def _slice(self, cut: op.SliceRows, needed: set[str]) -> Frame:
        most = max_result_rows(cut, self.evaluator)
        if most is None or isinstance(cut.input, op.SortRows):
            source = self.rows(cut.input, needed, most=most)
        else:
            source = self._some(cut.input, needed, most)
        start, stop = slice_bounds(cut, source.rows, self.evaluator)
        return source.take(np.arange(start, stop))

    def _some(self, operator: op.RowOperator, needed: set[str], most: int) -> Frame:
        """Return at least that many rows if they exist, from ever larger parts of the input."""
        given, frames, size = dict(self.given), list[Frame](), 0
        try:
            for frame in self.batches(self, operator, needed):
                frames.append(frame)
                size += frame.rows
                if size >= most:
                    break
        finally:
            self.given.clear()
            self.given.update(given)
        return Frame.joined(frames)

    # --- blocks --------------------------------------------------------------------------------

    def _with_entities(self, frame: Frame, *names: str) -> Frame:
        """Return the rows that have entities for variables; nothing leads on from others."""
        for name in self.evaluator.indirect.intersection(names):
            frame = frame.take(frame.positions[name] != NO_ENTITY)
        return frame

    def _tested(self, test: op.AntiJoin | op.ExistsJoin, needed: set[str], *, weigh: bool) -> Frame:
        """Keep rows for which a block finds nothing, or for which it finds something."""
        used = outer_variables_used(test.inner)
        source = self.rows(test.input, needed | used, weigh=weigh)
        if not source.rows:
            return source
        matches = self._matches(test.inner, source.only(used), set(), weigh=True)
        found = np.zeros(source.rows, np.bool_)
        found[matches.positions[OUTER_ROW]] = True
        return source.take(found if isinstance(test, op.ExistsJoin) else ~found)

    def _optional(self, join: op.OptionalJoin, needed: set[str], *, weigh: bool) -> Frame:
        """Extend each row by what a block finds for it; one it finds nothing for stays."""
        used = outer_variables_used(join.inner)
        source = self.rows(join.input, needed | used, weigh=weigh)
        new = [binding.name for binding in join.new_bindings if binding.name in needed]
        matches = self._matches(join.inner, source.only(used), set(new), weigh=False)
        self.evaluator.indirect.update(binding.name for binding in join.new_bindings)
        owners = matches.positions[OUTER_ROW]
        is_alone = np.ones(source.rows, np.bool_)
        is_alone[owners] = False
        alone = np.flatnonzero(is_alone)
        rows = np.concatenate([owners, alone])
        self.budget.check("OptionalJoin", len(rows), len(source.positions) + len(new))
        unmatched = np.full(len(alone), NO_ENTITY)
        columns = {name: np.concatenate([matches.positions[name], unmatched]) for name in new}
        order = np.argsort(rows, kind="stable")
        return source.take(rows).with_columns(columns).take(order)

    def _matches(
        self, inner: op.RowOperator, outer: Frame, needed: set[str], *, weigh: bool
    ) -> Frame:
        """Return what a block finds, with the number of the outer row."""
        numbered = outer.with_columns({OUTER_ROW: np.arange(outer.rows)})
        block = replace(
            self, outer=Frame(outer.rows, numbered.positions), given={}, used_expansions={}
        )
        return block.rows(inner, needed, weigh=weigh)


def _shifted(positions: Positions, tables: Mapping[str, TypeTable], name: str) -> Positions:
    """Return positions that count on from the tables before; no entity stays none."""
    names = list(tables)
    start = sum(tables[other].rows for other in names[: names.index(name)])
    return np.where(positions == NO_ENTITY, NO_ENTITY, positions + start)


def _cross_product_rows(left: Frame, right: Frame, part: slice) -> Frame:
    """Return a range of the rows of a cross product."""
    ours, theirs = np.divmod(np.arange(part.start, part.stop), max(right.rows, 1))
    other = right.take(theirs)
    rows = left.take(ours).with_columns(other.positions)
    return rows if other.weights is None else rows.weighed(other.weights)


def outer_variables_used(inner: op.RowOperator) -> set[str]:
    """Return the variables of the enclosing rows that the pattern of a block looks at."""
    return op.used_variables(inner) & set(op.outer_variables(inner))


def slice_bounds(
    cut: op.SliceRows | op.SliceColumns, rows: int, constants: Constants
) -> tuple[int, int]:
    """Return the first row kept and the one after the last."""
    start = constants.count(cut.offset, "offset") or 0
    limit = constants.count(cut.limit, "limit")
    stop = rows if limit is None else min(rows, start + limit)
    return min(start, rows), max(stop, min(start, rows))


def max_result_rows(root: op.PlanOperator, constants: Constants) -> int | None:
    """Return how many rows a result may show at most, skipped ones included."""
    if isinstance(root, op.SliceRows | op.SliceColumns):
        limit = constants.count(root.limit, "limit")
        return None if limit is None else limit + (constants.count(root.offset, "offset") or 0)
    below = op.operator_inputs(root)
    return max_result_rows(below[0], constants) if len(below) == 1 else None
