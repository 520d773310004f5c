"""The operators of a read plan.

Each operator names its input, says which bindings (`variables`) or columns it yields, and refuses
in its constructor whatever could not be executed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from omnigraph.plan.expressions import (
    ONE_HOP,
    Binding,
    Direction,
    EntityKind,
    Expression,
    Hops,
    ParameterRef,
    Predicate,
    is_call,
    predicate_variables,
    property_refs,
)
from omnigraph.plan.functions import FunctionKind
from omnigraph.types import PropertyType


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One named column of a result and its expression."""

    name: str
    expression: Expression

    @property
    def type(self) -> PropertyType:
        """The type of its values."""
        return self.expression.type


# --- rows of bindings --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scan:
    """All nodes of a type that satisfy the predicates."""

    binding: Binding
    predicates: tuple[Predicate, ...] = ()

    def __post_init__(self) -> None:
        if self.binding.kind is not EntityKind.NODE:
            raise ValueError("only nodes are scanned")
        _require_bound_variables(self.predicates, self.variables, "scan")

    @property
    def variables(self) -> dict[str, Binding]:
        """The bindings of each row."""
        return {self.binding.name: self.binding}


@dataclass(frozen=True, slots=True)
class OuterRow:
    """The one row of the enclosing pattern that a block is evaluated for."""

    bindings: tuple[Binding, ...]

    @property
    def variables(self) -> dict[str, Binding]:
        """The bindings of each row."""
        return {binding.name: binding for binding in self.bindings}


@dataclass(frozen=True, slots=True)
class _RowStep:
    """An operator whose rows have the bindings of its input."""

    input: RowOperator

    @property
    def variables(self) -> dict[str, Binding]:
        """The bindings of each row."""
        return self.input.variables


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traversal(_RowStep):
    """An operator that follows edges of one type from a bound node."""

    src: str
    edge: str
    direction: Direction
    hops: Hops = ONE_HOP
    edge_binding: Binding | None = None

    @property
    def variables(self) -> dict[str, Binding]:
        """The bindings of each row."""
        return {**self.input.variables, **{b.name: b for b in self.new_bindings}}

    @property
    def new_bindings(self) -> tuple[Binding, ...]:
        """The bindings that rows of the input do not have."""
        return () if self.edge_binding is None else (self.edge_binding,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expand(_Traversal):
    """Follow edges from a bound node to new nodes, which must satisfy the predicates.

    Without an edge binding each destination appears once per incoming row. `is_reversed`: the text
    has the traversal the other way round.
    """

    dst: Binding
    predicates: tuple[Predicate, ...] = ()
    is_reversed: bool = False

    def __post_init__(self) -> None:
        bound = self.input.variables
        if self.src not in bound:
            raise ValueError(f"expand starts at unbound ${self.src}")
        if any(binding.name in bound for binding in self.new_bindings):
            raise ValueError("expand binds a variable that is bound already")
        if self.edge_binding is not None and not self.hops.is_single:
            raise ValueError("an edge binding needs a single hop")
        _require_bound_variables(self.predicates, self.variables, "expand")

    @property
    def new_bindings(self) -> tuple[Binding, ...]:
        """The bindings that rows of the input do not have."""
        return (self.dst,) if self.edge_binding is None else (self.dst, self.edge_binding)


@dataclass(frozen=True, slots=True, kw_only=True)
class SemiJoin(_Traversal):
    """Keep rows whose two bound nodes are connected; an edge binding yields a row per edge."""

    dst: str

    def __post_init__(self) -> None:
        bound = self.input.variables
        if self.src not in bound or self.dst not in bound:
            raise ValueError("close needs two bound endpoints")
        if self.edge_binding is not None and self.edge_binding.name in bound:
            raise ValueError("close binds a variable that is bound already")


@dataclass(frozen=True, slots=True)
class Cross:
    """Every row of the left with every row of the right."""

    left: RowOperator
    right: RowOperator

    def __post_init__(self) -> None:
        if set(self.left.variables) & set(self.right.variables):
            raise ValueError("the two sides of a cross product share a variable")

    @property
    def variables(self) -> dict[str, Binding]:
        """The bindings of each row."""
        return {**self.left.variables, **self.right.variables}


@dataclass(frozen=True, slots=True)
class Filter(_RowStep):
    """Rows that satisfy a predicate."""

    predicate: Predicate

    def __post_init__(self) -> None:
        _require_bound_variables((self.predicate,), self.input.variables, "filter")


@dataclass(frozen=True, slots=True)
class _PatternJoin(_RowStep):
    """An operator that evaluates an inner pattern, started at an `OuterRow`, for each row."""

    inner: RowOperator

    def __post_init__(self) -> None:
        missing = set(outer_variables(self.inner)) - set(self.input.variables)
        if missing:
            raise ValueError(f"a block refers to unbound {sorted(missing)}")


@dataclass(frozen=True, slots=True)
class AntiJoin(_PatternJoin):
    """Rows for which the inner pattern finds nothing."""


@dataclass(frozen=True, slots=True)
class ExistsJoin(_PatternJoin):
    """Rows for which the inner pattern finds something."""


@dataclass(frozen=True, slots=True)
class OptionalJoin(_PatternJoin):
    """Each row with all that the inner pattern finds for it, once without if that is nothing."""

    @property
    def variables(self) -> dict[str, Binding]:
        """The bindings of each row."""
        return {**self.input.variables, **{b.name: b for b in self.new_bindings}}

    @property
    def new_bindings(self) -> tuple[Binding, ...]:
        """The bindings that the inner pattern introduces; a row may have no entity for them."""
        known = self.input.variables
        return tuple(b for name, b in self.inner.variables.items() if name not in known)


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of all inputs, which bind the same variables, some of them to other types."""

    inputs: tuple[RowOperator, ...]

    def __post_init__(self) -> None:
        first, *others = (
            {b.name: b.kind for b in source.variables.values() if b.is_named}
            for source in self.inputs
        )
        if any(other != first for other in others):
            raise ValueError("the inputs of a union bind different variables")

    @property
    def variables(self) -> dict[str, Binding]:
        """The named bindings of each row, with the types of the first input."""
        return {name: b for name, b in self.inputs[0].variables.items() if b.is_named}

    @property
    def polymorphic(self) -> tuple[str, ...]:
        """The variables that have several types."""
        return tuple(
            name
            for name in self.variables
            if len({source.variables[name].type_name for source in self.inputs}) > 1
        )


@dataclass(frozen=True, slots=True)
class SortKey:
    """An expression to order rows by; nulls sort lowest. Rankings put the best match first."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class SortRows(_RowStep):
    """Rows in order; ties break by the ids of `tie_break` bindings, ascending."""

    keys: tuple[SortKey, ...]
    tie_break: tuple[str, ...]

    def __post_init__(self) -> None:
        bound = self.input.variables
        for key in self.keys:
            unknown = {r.variable for r in property_refs(key.expression)} - set(bound)
            if unknown:
                raise ValueError(f"order refers to unbound {sorted(unknown)}")
            if not key.expression.type.orderable:
                raise ValueError(f"{key.expression.type} has no order")
        if set(self.tie_break) - set(bound):
            raise ValueError("ties break by bound variables")


SliceBound: TypeAlias = int | ParameterRef


@dataclass(frozen=True, slots=True)
class SliceRows(_RowStep):
    """Skip `offset` rows, then keep at most `limit`."""

    limit: SliceBound | None
    offset: SliceBound | None


RowOperator: TypeAlias = (
    Scan
    | OuterRow
    | Expand
    | SemiJoin
    | Cross
    | Filter
    | AntiJoin
    | ExistsJoin
    | OptionalJoin
    | Union
    | SortRows
    | SliceRows
)


# --- result ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Project:
    """The result columns of each row."""

    input: RowOperator
    columns: tuple[OutputColumn, ...]

    def __post_init__(self) -> None:
        _require_columns(self.columns, self.input.variables)

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One result row per group; without keys, exactly one."""

    input: RowOperator
    keys: tuple[OutputColumn, ...]
    measures: tuple[OutputColumn, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _require_columns((*self.keys, *self.measures), self.input.variables)
        if not all(is_call(m.expression, FunctionKind.AGGREGATE) for m in self.measures):
            raise ValueError("a measure is an aggregate")
        if any(is_call(k.expression, FunctionKind.AGGREGATE) for k in self.keys):
            raise ValueError("a group key cannot be an aggregate")
        if set(self.names) != {column.name for column in (*self.keys, *self.measures)}:
            raise ValueError("names list every key and measure once")


@dataclass(frozen=True, slots=True)
class _ResultStep:
    """An operator whose rows have the columns of its input."""

    input: ResultOperator

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return self.input.names


@dataclass(frozen=True, slots=True)
class Distinct(_ResultStep):
    """Each result row once."""

    def __post_init__(self) -> None:
        if not isinstance(self.input, Project):
            raise ValueError("only projected rows are made distinct")


@dataclass(frozen=True, slots=True)
class ColumnSortKey:
    """A result column to order by."""

    name: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class SortColumns(_ResultStep):
    """Result rows in order; ties break by the columns of `tie_break`, ascending."""

    keys: tuple[ColumnSortKey, ...]
    tie_break: tuple[str, ...]

    def __post_init__(self) -> None:
        unknown = {*(key.name for key in self.keys), *self.tie_break} - set(self.input.names)
        if unknown:
            raise ValueError(f"order refers to unknown columns {sorted(unknown)}")


@dataclass(frozen=True, slots=True)
class SliceColumns(_ResultStep):
    """Skip `offset` result rows, then keep at most `limit`."""

    limit: SliceBound | None
    offset: SliceBound | None


ResultOperator: TypeAlias = Project | Aggregate | Distinct | SortColumns | SliceColumns
PlanOperator: TypeAlias = RowOperator | ResultOperator


def operator_inputs(operator: PlanOperator) -> tuple[PlanOperator, ...]:
    """Return the operators an operator reads from, the pattern of a block included."""
    match operator:
        case Scan() | OuterRow():
            return ()
        case Cross(left=left, right=right):
            return (left, right)
        case AntiJoin() | ExistsJoin() | OptionalJoin():
            return (operator.input, operator.inner)
        case Union(inputs=inputs):
            return inputs
        case _:
            return (operator.input,)


def operator_expressions(operator: PlanOperator) -> tuple[Expression, ...]:
    """Return the expressions an operator computes for a result or an order."""
    match operator:
        case Project(columns=columns):
            return tuple(column.expression for column in columns)
        case Aggregate(keys=keys, measures=measures):
            return tuple(column.expression for column in (*keys, *measures))
        case SortRows(keys=keys):
            return tuple(key.expression for key in keys)
        case _:
            return ()


def walk_operators(operator: PlanOperator, depth: int = 0) -> Iterator[tuple[int, PlanOperator]]:
    """Yield an operator and those below it, each with its depth."""
    yield depth, operator
    for source in operator_inputs(operator):
        yield from walk_operators(source, depth + 1)


def outer_variables(operator: PlanOperator) -> dict[str, Binding]:
    """Return the bindings of the OuterRow at the root of the pattern of a block."""
    if isinstance(operator, OuterRow):
        return operator.variables
    first = operator_inputs(operator)
    return outer_variables(first[0]) if first else {}


def used_variables(operator: PlanOperator) -> set[str]:
    """Return every variable an operator or one below it looks at."""
    used: set[str] = set()
    match operator:
        case Expand(src=src, predicates=predicates):
            used = {src}.union(*map(predicate_variables, predicates))
        case SemiJoin(src=src, dst=dst):
            used = {src, dst}
        case Filter(predicate=predicate):
            used = set(predicate_variables(predicate))
        case Scan(predicates=predicates):
            used = set().union(*map(predicate_variables, predicates))
        case _:
            pass
    for source in operator_inputs(operator):
        used |= used_variables(source)
    return used


def narrow_outer(inner: RowOperator, bound: Collection[str]) -> RowOperator:
    """Return the pattern of a block for outer rows that bind fewer variables."""
    missing = set(outer_variables(inner)) - set(bound)
    return _without_outer(inner, missing) if missing else inner


def _without_outer(rows: RowOperator, missing: set[str]) -> RowOperator:
    match rows:
        case OuterRow(bindings=bindings):
            return OuterRow(tuple(b for b in bindings if b.name not in missing))
        case Scan():
            return rows
        case Cross(left=left, right=right):
            return Cross(_without_outer(left, missing), _without_outer(right, missing))
        case AntiJoin() | ExistsJoin() | OptionalJoin():
            narrowed = _without_outer(rows.input, missing), _without_outer(rows.inner, missing)
            return type(rows)(*narrowed)
        case Union(inputs=inputs):
            return Union(tuple(_without_outer(source, missing) for source in inputs))
        case _:
            return replace(rows, input=_without_outer(rows.input, missing))


def _require_bound_variables(
    predicates: tuple[Predicate, ...], bound: Mapping[str, Binding], where: str
) -> None:
    for predicate in predicates:
        unknown = predicate_variables(predicate) - set(bound)
        if unknown:
            raise ValueError(f"{where} refers to unbound {sorted(unknown)}")


def _require_columns(columns: tuple[OutputColumn, ...], bound: Mapping[str, Binding]) -> None:
    names = [column.name for column in columns]
    if len(set(names)) != len(names):
        raise ValueError("result columns have different names")
    for column in columns:
        unknown = {r.variable for r in property_refs(column.expression)} - set(bound)
        if unknown:
            raise ValueError(f"column {column.name} refers to unbound {sorted(unknown)}")
