"""Lower a checked read query to operators.

Bindings joined by traversals form components. Each component starts at its first declared binding
(or, when none is declared, at the first endpoint written), then follows its traversals as soon as
one endpoint is bound; when both are, the step only checks that they are connected. Components are
crossed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from omnigraph.plan.check_read import CheckedResult
from omnigraph.plan.expressions import (
    Binding,
    Expression,
    FunctionCall,
    MatchPattern,
    PatternStep,
    PropertyRef,
    is_call,
)
from omnigraph.plan.functions import FunctionKind
from omnigraph.plan.operators import (
    Aggregate,
    AntiJoin,
    ColumnSortKey,
    Cross,
    Distinct,
    ExistsJoin,
    Expand,
    Filter,
    OptionalJoin,
    OuterRow,
    OutputColumn,
    Project,
    ResultOperator,
    RowOperator,
    Scan,
    SemiJoin,
    SliceColumns,
    SliceRows,
    SortColumns,
    SortKey,
    SortRows,
    Union,
)


def lower_read(patterns: Sequence[MatchPattern], result: CheckedResult) -> ResultOperator:
    """Return the operators that compute a result from the rows of all patterns."""
    inputs = tuple(map(lower_pattern, patterns))
    rows = inputs[0] if len(inputs) == 1 else Union(inputs)
    if result.is_aggregate:
        return _lower_columns(_lower_aggregate(rows, result.columns), result)
    if result.distinct:
        return _lower_columns(Distinct(Project(rows, result.columns)), result)
    if result.sort:
        rows = SortRows(rows, result.sort, _tie_break(rows, result.sort))
    if result.limit is not None or result.offset is not None:
        rows = SliceRows(rows, result.limit, result.offset)
    return Project(rows, result.columns)


def _tie_break(rows: RowOperator, keys: Sequence[SortKey]) -> tuple[str, ...]:
    """Return every named binding, ranked ones first so that their rows stay together."""
    ranked = {variable for key in keys for variable in _ranked_variables(key.expression)}
    named = (binding.name for binding in rows.variables.values() if binding.is_named)
    return tuple(sorted(named, key=lambda name: (name not in ranked, name)))


def _ranked_variables(expression: Expression) -> Iterator[str]:
    """Yield the variables whose nodes a ranking ranks, not those of what it compares with."""
    if isinstance(expression, FunctionCall) and is_call(expression, FunctionKind.RANK):
        for argument in expression.arguments:
            yield from _ranked_variables(argument)
        first = expression.arguments[0]
        if isinstance(first, PropertyRef):
            yield first.variable


def _lower_aggregate(rows: RowOperator, columns: Sequence[OutputColumn]) -> Aggregate:
    measures = tuple(c for c in columns if is_call(c.expression, FunctionKind.AGGREGATE))
    keys = tuple(c for c in columns if not is_call(c.expression, FunctionKind.AGGREGATE))
    return Aggregate(rows, keys, measures, tuple(c.name for c in columns))


def _lower_columns(source: Aggregate | Distinct, result: CheckedResult) -> ResultOperator:
    ordered: Aggregate | Distinct | SortColumns = source
    if result.sort:
        names = [
            next(c.name for c in result.columns if c.expression == key.expression)
            for key in result.sort
        ]
        keys = tuple(
            ColumnSortKey(name, key.descending)
            for name, key in zip(names, result.sort, strict=True)
        )
        ties = source.names
        if isinstance(source, Aggregate):
            ties = tuple(key.name for key in source.keys)
        ordered = SortColumns(source, keys, tuple(name for name in ties if name not in names))
    if result.limit is None and result.offset is None:
        return ordered
    return SliceColumns(ordered, result.limit, result.offset)


def lower_pattern(pattern: MatchPattern, outer: Sequence[Binding] = ()) -> RowOperator:
    """Return the operators that find a pattern; inside a block, for one outer row."""
    rows: RowOperator | None = OuterRow(tuple(outer)) if outer else None
    bound = {binding.name for binding in outer}
    steps = list(pattern.steps)
    rows, steps = _apply_reachable_steps(rows, bound, steps) if rows is not None else (None, steps)
    # Components start at declared bindings first, then at first endpoints.
    for root in (*pattern.declared, *(step.src for step in pattern.steps)):
        if root.name in bound:
            continue
        scan = Scan(root)
        # A component starts as its own input, so that it is planned before it is multiplied.
        component, steps = _apply_reachable_steps(scan, {root.name}, steps)
        bound |= set(component.variables)
        rows = component if rows is None else Cross(rows, component)
    assert rows is not None, "the type checker refuses a match that binds nothing"
    assert not steps, "every step belongs to a component with a root"
    for optional in pattern.optionals:
        rows = OptionalJoin(rows, lower_pattern(optional, tuple(rows.variables.values())))
    for predicate in pattern.filters:
        rows = Filter(rows, predicate)
    for existence in pattern.existences:
        rows = ExistsJoin(rows, lower_pattern(existence, tuple(rows.variables.values())))
    for negation in pattern.negations:
        rows = AntiJoin(rows, lower_pattern(negation, tuple(rows.variables.values())))
    return rows


def _apply_reachable_steps(
    rows: RowOperator, bound: set[str], steps: list[PatternStep]
) -> tuple[RowOperator, list[PatternStep]]:
    """Apply every step that can be reached from what is bound; return those that cannot."""
    waiting = steps
    progress = True
    while progress:
        progress = False
        later: list[PatternStep] = []
        for step in waiting:
            if step.src.name in bound and step.dst.name in bound:
                rows = SemiJoin(**_traversal(rows, step), dst=step.dst.name)
            elif step.src.name in bound:
                rows = _expand(rows, step)
            elif step.dst.name in bound:
                rows = _expand(rows, step.reversed)
            else:
                later.append(step)
                continue
            bound |= set(rows.variables)
            progress = True
        waiting = later
    return rows, waiting


def _expand(rows: RowOperator, step: PatternStep) -> Expand:
    return Expand(**_traversal(rows, step), dst=step.dst, is_reversed=step.is_reversed)


def _traversal(rows: RowOperator, step: PatternStep) -> dict[str, Any]:
    """Return what `Expand` and `SemiJoin` have in common."""
    return {
        "input": rows,
        "src": step.src.name,
        "edge": step.edge,
        "direction": step.direction,
        "hops": step.hops,
        "edge_binding": step.edge_binding,
    }
