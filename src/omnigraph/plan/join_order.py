"""Choose where a pattern starts, and in which order its steps are taken.

A pattern is split into components: variables that steps connect. For each component every
variable is tried as the root, and the cheapest order of steps from there is searched with a beam.
The written order is kept unless another one is clearly cheaper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log2
from typing import TypeAlias

from omnigraph.plan import operators as op
from omnigraph.plan.cardinality import Estimator
from omnigraph.plan.expressions import (
    Binding,
    EntityKind,
    PatternStep,
    Predicate,
    predicate_variables,
)

KEEP_WRITTEN = 1.1
"""The written order is kept while it costs at most this many times the cheapest one."""
FEW_STEPS, MAX_STEPS = 8, 32
"""Steps up to which orders are searched widely, and beyond which the written order is kept."""
WIDE_BEAM, NARROW_BEAM = 32, 2
"""Sets of bound variables that are followed at once, for few steps and for more."""
MAX_ROOTS = 4
"""Roots that are tried where there are many steps: those with the fewest rows."""

# Costs count rows and edges that are looked at.
SCANNED_ROW, TESTED_ROW = 0.05, 0.1
"""The cost of a node of a scan, and of each test of it."""
INPUT_ROW, FOLLOWED_EDGE, TESTED_NODE = 0.2, 1.0, 0.5
"""The cost of a row that is expanded, of an edge that is followed, and of testing its end."""
PROBED_PAIR = 0.3
"""The cost of each comparison when two bound nodes are checked for an edge."""
FIRST_ROWS = 4_096
"""Nodes of a scan that are looked at even when fewer rows are wanted."""

Move: TypeAlias = Binding | PatternStep
"""Scan the nodes of a variable, or follow the edges of a step from what is bound."""


@dataclass(frozen=True, slots=True)
class JoinChoice:
    """Where a component starts, and what the alternatives were estimated to cost."""

    written: str
    chosen: str
    costs: Mapping[str, float]
    """The cost of the cheapest order from each root; the written order counts as it is."""
    reason: str


@dataclass(frozen=True, slots=True)
class Region:
    """Scans and steps that may be taken in any order, and the tests of their rows."""

    outer: op.OuterRow | None
    moves: tuple[Move, ...]
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class _State:
    """Moves that were made, the rows they give, and what they cost; `scan` is the root's part."""

    moves: tuple[Move, ...]
    bound: frozenset[str]
    rows: float
    cost: float
    scan: float = 0.0
    taken: frozenset[PatternStep] = frozenset()


def split_region(rows: op.RowOperator) -> Region | None:
    """Return the scans, steps and tests of an operator tree; None if it has other operators."""
    match rows:
        case op.OuterRow():
            return Region(rows, (), ())
        case op.Scan(binding=binding, predicates=predicates):
            return Region(None, (binding,), predicates)
        case op.Filter(input=source, predicate=predicate):
            return _extended(source, (), (predicate,))
        case op.Expand(input=source, predicates=predicates):
            return _extended(source, (_step(rows),), predicates)
        case op.SemiJoin(input=source):
            return _extended(source, (_step(rows),), ())
        case op.Cross(left=left, right=right):
            second = split_region(right)
            return second and _extended(left, second.moves, second.predicates)
        case _:
            return None


def _extended(
    source: op.RowOperator, moves: tuple[Move, ...], predicates: tuple[Predicate, ...]
) -> Region | None:
    region = split_region(source)
    if region is None:
        return None
    return Region(region.outer, (*region.moves, *moves), (*region.predicates, *predicates))


def _step(rows: op.Expand | op.SemiJoin) -> PatternStep:
    """Return the step an operator takes, in the direction in which it was written."""
    is_reversed = isinstance(rows, op.Expand) and rows.is_reversed
    step = PatternStep(
        src=rows.input.variables[rows.src],
        edge=rows.edge,
        dst=rows.variables[rows.dst] if isinstance(rows, op.SemiJoin) else rows.dst,
        direction=rows.direction,
        hops=rows.hops,
        edge_binding=rows.edge_binding,
        is_reversed=is_reversed,
    )
    return step.reversed if is_reversed else step


def build_rows(start: op.RowOperator | None, moves: Sequence[Move]) -> op.RowOperator:
    """Return the operators that make some moves, without tests."""
    rows = start
    for move in moves:
        if isinstance(move, Binding):
            rows = op.Scan(move) if rows is None else op.Cross(rows, op.Scan(move))
            continue
        assert rows is not None, "the first move is a scan"
        rows = apply_step(rows, move)
    assert rows is not None, "a region binds something"
    return rows


def apply_step(rows: op.RowOperator, step: PatternStep) -> op.RowOperator:
    """Follow the edges of a step from the end that is bound, or check both if both are."""
    bound = rows.variables
    if step.src.name in bound and step.dst.name in bound:
        return op.SemiJoin(
            rows,
            src=step.src.name,
            edge=step.edge,
            direction=step.direction,
            hops=step.hops,
            edge_binding=step.edge_binding,
            dst=step.dst.name,
        )
    away = step if step.src.name in bound else step.reversed
    return op.Expand(
        rows,
        src=away.src.name,
        edge=away.edge,
        direction=away.direction,
        hops=away.hops,
        edge_binding=away.edge_binding,
        dst=away.dst,
        is_reversed=away.is_reversed,
    )


@dataclass(frozen=True)
class JoinOrder:
    """Orders the moves of one region."""

    region: Region
    estimator: Estimator
    wanted: int | None = None
    """How many rows are enough, when any will do."""

    def chosen(self) -> tuple[op.RowOperator, tuple[JoinChoice, ...]]:
        """Return the operators of the best order, tests on top, and how it was chosen."""
        choices: list[JoinChoice] = []
        outer, parts = self.region.outer, list[_State]()
        rows: op.RowOperator | None = outer
        for component in self._components:
            is_outer = outer is not None and self._touches_outer(component)
            state, choice = self._best(component, is_outer=is_outer)
            choices += [choice] if choice else []
            if is_outer:
                rows = build_rows(rows, state.moves)
            else:
                parts.append(state)
        for part in self._crossed(parts):
            right = build_rows(None, part.moves)
            rows = right if rows is None else op.Cross(rows, right)
        assert rows is not None, "a region binds something"
        for predicate in self.region.predicates:
            rows = op.Filter(rows, predicate)
        return rows, tuple(choices)

    # --- components ----------------------------------------------------------------------------

    @cached_property
    def bindings(self) -> dict[str, Binding]:
        """Every variable of the region."""
        outer = {} if self.region.outer is None else dict(self.region.outer.variables)
        for move in self.region.moves:
            ends = (move,) if isinstance(move, Binding) else (move.src, move.dst, move.edge_binding)
            outer.update({b.name: b for b in ends if b is not None})
        return outer

    @cached_property
    def _outer_names(self) -> frozenset[str]:
        return frozenset(() if self.region.outer is None else self.region.outer.variables)

    def _touches_outer(self, component: tuple[Move, ...]) -> bool:
        return any(_names(move) & self._outer_names for move in component)

    @cached_property
    def _components(self) -> list[tuple[Move, ...]]:
        """The moves of each component, in the order in which they were written."""
        groups: list[tuple[set[str], list[int]]] = []
        if self._outer_names:
            groups.append((set(self._outer_names), []))
        for number, move in enumerate(self.region.moves):
            names = set(_names(move))
            touching = [group for group in groups if group[0] & names]
            others = [group for group in groups if not group[0] & names]
            merged = (names.union(*(g[0] for g in touching)), [number])
            for group in touching:
                merged[1].extend(group[1])
            place = groups.index(touching[0]) if touching else len(others)
            groups = [*others[:place], merged, *others[place:]]
        return [tuple(self.region.moves[n] for n in sorted(ns)) for _, ns in groups if ns]

    def _crossed(self, parts: list[_State]) -> list[_State]:
        """Return components in the order in which crossing them makes the fewest rows."""
        if len(parts) < 3:
            return parts
        order, left = list[_State](), list(parts)
        bound, rows = self._outer_names, 1.0
        while left:
            sizes = [rows * p.rows * self._share(bound, bound | p.bound, p.bound) for p in left]
            least = min(sizes)
            place = next(n for n, size in enumerate(sizes) if size <= least * KEEP_WRITTEN)
            part = left.pop(place)
            order.append(part)
            bound, rows = bound | part.bound, sizes[place]
        return order

    # --- one component -------------------------------------------------------------------------

    def _best(
        self, component: tuple[Move, ...], *, is_outer: bool
    ) -> tuple[_State, JoinChoice | None]:
        # A step without an edge variable that is written twice is one step.
        steps = tuple(dict.fromkeys(m for m in component if isinstance(m, PatternStep)))
        written = self._made(component, is_outer=is_outer)
        if not steps or len(steps) > MAX_STEPS:
            return written, None
        if is_outer:
            start = _State((), self._outer_names, 1.0, 0.0)
            best = self._searched(start, steps)
            chosen = written if written.cost <= best.cost * KEEP_WRITTEN else best
            return chosen, None
        first = component[0]
        assert isinstance(first, Binding), "a component starts with a scan"
        found = {root.name: self._searched(self._scan(root), steps) for root in self._roots(steps)}
        costs = {name: self._total(state) for name, state in found.items()}
        costs[first.name] = min(self._total(written), costs.get(first.name, self._total(written)))
        return self._decided(written, found, costs, first.name)

    def _decided(
        self, written: _State, found: Mapping[str, _State], costs: dict[str, float], first: str
    ) -> tuple[_State, JoinChoice]:
        name = min(costs, key=lambda root: costs[root])
        least = costs[name]
        if self._total(written) <= least * KEEP_WRITTEN:
            reason = "the written order is the cheapest"
            if self._total(written) > least:
                reason = f"the written order costs less than {KEEP_WRITTEN:g} times the cheapest"
            return written, JoinChoice(first, first, costs, reason)
        if costs[first] <= least * KEEP_WRITTEN:
            name = first
        times = self._total(written) / max(least, 1e-9)
        reason = f"the written order costs {times:,.1f} times as much"
        return found[name], JoinChoice(first, name, costs, reason)

    def _roots(self, steps: Sequence[PatternStep]) -> list[Binding]:
        ends = {b.name: b for step in steps for b in (step.src, step.dst)}
        roots = list(ends.values())
        if len(steps) > FEW_STEPS:
            roots = sorted(roots, key=lambda root: self._scan(root).rows)[:MAX_ROOTS]
        return roots

    def _total(self, state: _State) -> float:
        """Return the cost of a whole component, less what a limit makes unnecessary."""
        if self.wanted is None or not state.moves or not isinstance(state.moves[0], Binding):
            return state.cost
        scanned = self._scan(state.moves[0]).rows
        needed = max(self.wanted / max(state.rows, 1e-9), FIRST_ROWS / max(scanned, 1.0))
        return state.scan + min(1.0, needed) * (state.cost - state.scan)

    def _searched(self, start: _State, steps: Sequence[PatternStep]) -> _State:
        """Return the cheapest order of all steps from a start."""
        width = WIDE_BEAM if len(steps) <= FEW_STEPS else NARROW_BEAM
        beam = {start.bound: self._closed(start, steps)}
        while any(len(state.taken) < len(steps) for state in beam.values()):
            following: dict[frozenset[str], _State] = {}
            for state in beam.values():
                for move in self._next(state, steps):
                    made = self._closed(self._advanced(state, move), steps)
                    known = following.get(made.bound)
                    if known is None or made.cost < known.cost * 0.999:
                        following[made.bound] = made
            kept = sorted(following.values(), key=lambda state: state.cost)[:width]
            beam = {state.bound: state for state in kept}
        return min(beam.values(), key=lambda state: state.cost)

    def _next(self, state: _State, steps: Sequence[PatternStep]) -> list[Move]:
        """Return the moves that bind one more node: a step, or a look-up by key."""
        moves: list[Move] = []
        for step in steps:
            ends = {step.src.name: step.src, step.dst.name: step.dst}
            new = [binding for name, binding in ends.items() if name not in state.bound]
            if step in state.taken or len(new) != 1 or len(ends) == 1:
                continue
            moves.append(step)
            if self._is_looked_up(new[0], state, steps) and new[0] not in moves:
                moves.append(new[0])
        return moves

    def _is_looked_up(self, binding: Binding, state: _State, steps: Sequence[PatternStep]) -> bool:
        """Return whether one node is found by key, to check the steps that lead to it."""
        closing = [
            step
            for step in steps
            if binding.name in (step.src.name, step.dst.name)
            and {step.src.name, step.dst.name} <= state.bound | {binding.name}
        ]
        is_plain = all(s.hops.is_single and s.edge_binding is None for s in closing)
        return is_plain and self.estimator.key_predicates(self.region.predicates, binding)

    def _closed(self, state: _State, steps: Sequence[PatternStep]) -> _State:
        """Take every step both ends of which are bound."""
        for step in steps:
            if step not in state.taken and {step.src.name, step.dst.name} <= state.bound:
                state = self._advanced(state, step)
        return state

    def _made(self, moves: Iterable[Move], *, is_outer: bool) -> _State:
        """Return what moves cost as they are written."""
        state = _State((), self._outer_names if is_outer else frozenset(), 1.0, 0.0)
        for move in moves:
            state = self._advanced(state, move)
        return state

    # --- costs ---------------------------------------------------------------------------------

    def _scan(self, binding: Binding) -> _State:
        return self._advanced(_State((), frozenset(), 1.0, 0.0), binding)

    def _advanced(self, state: _State, move: Move) -> _State:
        """Return the state after one more move."""
        bound = state.bound | _names(move)
        if isinstance(move, Binding):
            return self._scanned(state, move, bound)
        if {move.src.name, move.dst.name} <= state.bound:
            return self._checked(state, move, bound)
        away = move if move.src.name in state.bound else move.reversed
        edges = self.estimator.visited(away.edge, away.direction, away.hops)
        reached = state.rows * self.estimator.fan_out(away.edge, away.direction, away.hops)
        share = self._share(state.bound, bound, frozenset())
        tests = TESTED_NODE * reached if share < 1.0 else 0.0
        cost = state.rows * INPUT_ROW + state.rows * edges * FOLLOWED_EDGE + tests
        return self._with(state, move, bound, reached * share, cost)

    def _scanned(self, state: _State, binding: Binding, bound: frozenset[str]) -> _State:
        nodes = self.estimator.nodes(binding.type_name)
        tests = self._tests(state.bound, bound)
        if self.estimator.key_predicates(self.region.predicates, binding):
            cost, rows = 1.0, 1.0
        else:
            cost = nodes * (SCANNED_ROW + TESTED_ROW * len(tests))
            rows = nodes * self.estimator.share(tests, self.bindings)
        made = self._with(state, binding, bound, state.rows * rows, cost)
        if not state.moves:
            return replace(made, scan=cost)
        return replace(made, cost=made.cost + made.rows)

    def _checked(self, state: _State, step: PatternStep, bound: frozenset[str]) -> _State:
        degree = self.estimator.visited(step.edge, step.direction, step.hops)
        looks = 1 + PROBED_PAIR * log2(1 + degree) if step.hops.is_single else degree
        if step.edge_binding is not None:
            looks = max(looks, degree)
        share = self.estimator.connected(step.edge, step.direction, step.hops)
        share *= self._share(state.bound, bound, frozenset())
        return self._with(state, step, bound, state.rows * share, state.rows * looks)

    @staticmethod
    def _with(state: _State, move: Move, bound: frozenset[str], rows: float, cost: float) -> _State:
        taken = state.taken | {move} if isinstance(move, PatternStep) else state.taken
        return _State((*state.moves, move), bound, rows, state.cost + cost, state.scan, taken)

    @cached_property
    def _tested(self) -> list[tuple[frozenset[str], Predicate]]:
        return [(predicate_variables(p), p) for p in self.region.predicates]

    def _tests(self, before: frozenset[str], after: frozenset[str]) -> list[Predicate]:
        """Return the tests that can be made once more variables are bound."""
        return [p for names, p in self._tested if names <= after and not names <= before]

    def _share(self, before: frozenset[str], after: frozenset[str], alone: frozenset[str]) -> float:
        """Return the share of rows that pass the tests that become possible; not those of one."""
        tests = [p for p in self._tests(before, after) if not predicate_variables(p) <= alone]
        return self.estimator.share(tests, self.bindings)


def _names(move: Move) -> frozenset[str]:
    if isinstance(move, Binding):
        assert move.kind is EntityKind.NODE, "only nodes are scanned"
        return frozenset((move.name,))
    edge = () if move.edge_binding is None else (move.edge_binding.name,)
    return frozenset((move.src.name, move.dst.name, *edge))
