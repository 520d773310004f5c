"""Render a plan as text, one operator per line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime

from omnigraph.lang.tokens import encode_string
from omnigraph.plan import operators as op
from omnigraph.plan.expressions import (
    And,
    Binding,
    Case,
    Compare,
    Constant,
    Direction,
    EdgePath,
    Expression,
    FunctionCall,
    Hops,
    IsIn,
    IsNull,
    Or,
    ParameterRef,
    Predicate,
    PredicateCall,
    PropertyRef,
)
from omnigraph.plan.query_plan import Delete, InsertEdge, InsertNode, MutationPlan, ReadPlan, Update

_ARROWS = {Direction.OUT: "-{}->", Direction.IN: "<-{}-", Direction.BOTH: "-{}-"}


def explain(plan: ReadPlan | MutationPlan) -> str:
    """Return the operator tree of a plan as indented text."""
    if isinstance(plan, MutationPlan):
        return "\n".join(_statement(statement) for statement in plan.statements)
    return "\n".join(
        "  " * depth + describe_operator(o) for depth, o in op.walk_operators(plan.root)
    )


def describe_operator(operator: op.PlanOperator) -> str:
    """Return one operator as a line of text."""
    match operator:
        case op.Scan(binding=binding, predicates=predicates):
            return f"Scan ${binding.name}: {binding.type_name}{_where(predicates)}"
        case op.OuterRow(bindings=bindings):
            return f"OuterRow {', '.join('$' + b.name for b in bindings)}"
        case op.Expand(src=src, dst=dst, predicates=predicates):
            edge = _edge(operator.edge, operator.direction, operator.hops, operator.edge_binding)
            return f"Expand ${src} {edge} ${dst.name}: {dst.type_name}{_where(predicates)}"
        case op.SemiJoin(src=src, dst=dst):
            edge = _edge(operator.edge, operator.direction, operator.hops, operator.edge_binding)
            return f"SemiJoin ${src} {edge} ${dst}"
        case op.Cross() | op.Union() | op.AntiJoin() | op.ExistsJoin() | op.Distinct():
            return type(operator).__name__
        case op.Filter(predicate=predicate):
            return f"Filter {show_predicate(predicate)}"
        case op.OptionalJoin(new_bindings=bindings):
            new = ", ".join(f"${b.name}" for b in bindings if b.is_named)
            return f"OptionalJoin {new}".rstrip()
        case op.Project(columns=columns):
            return f"Project {_columns(columns)}"
        case op.Aggregate(keys=keys, measures=measures):
            by = f" by {_columns(keys)}" if keys else ""
            return f"Aggregate {_columns(measures)}{by}"
        case op.SortRows(keys=keys, tie_break=ties):
            shown = [_direction(show_expression(k.expression), k.descending) for k in keys]
            return f"Sort {', '.join([*shown, *(f'${name}.id' for name in ties)])}"
        case op.SortColumns(keys=keys, tie_break=ties):
            shown = [_direction(k.name, k.descending) for k in keys]
            return f"Sort {', '.join([*shown, *ties])}"
        case op.SliceRows(limit=limit, offset=offset) | op.SliceColumns(limit=limit, offset=offset):
            parts = [f"limit {_count(limit)}"] if limit is not None else []
            parts += [f"offset {_count(offset)}"] if offset is not None else []
            return f"Slice {' '.join(parts)}"


def _edge(edge: str, direction: Direction, hops: Hops, binding: Binding | None) -> str:
    name = f"${binding.name}:{edge}" if binding is not None else edge
    bounds = "" if hops.is_single else str(hops)
    return _ARROWS[direction].format(f"[{name}{bounds}]")


def _where(predicates: tuple[Predicate, ...]) -> str:
    return f" where {' and '.join(show_predicate(p) for p in predicates)}" if predicates else ""


def _columns(columns: tuple[op.OutputColumn, ...]) -> str:
    return ", ".join(
        column.name
        if show_expression(column.expression) == f"${column.name}"
        else f"{show_expression(column.expression)} as {column.name}"
        for column in columns
    )


def _direction(text: str, descending: bool) -> str:
    return f"{text} desc" if descending else text


def _count(count: op.SliceBound) -> str:
    return f"${count.name}" if isinstance(count, ParameterRef) else str(count)


def show_expression(expression: Expression) -> str:
    """Return an expression as text."""
    match expression:
        case Constant(value=value):
            return _literal(value)
        case ParameterRef(name=name):
            return f"${name}"
        case PropertyRef(variable=variable, property=name):
            return f"${variable}.{name}"
        case EdgePath(edge=edge, direction=direction, hops=hops):
            return _edge(edge, direction, hops, None)
        case FunctionCall(function=function, arguments=(left, right)) if (
            not function.name.isidentifier()
        ):
            return f"({show_expression(left)} {function.name} {show_expression(right)})"
        case Case(branches=branches, otherwise=otherwise):
            parts = [f"when {show_predicate(c)} then {show_expression(v)}" for c, v in branches]
            parts += [f"else {show_expression(otherwise)}"] if otherwise is not None else []
            return f"case {' '.join(parts)} end"
        case FunctionCall(function=function, arguments=arguments, distinct=distinct):
            inner = ", ".join(show_expression(argument) for argument in arguments)
            return f"{function.name}({'distinct ' if distinct else ''}{inner})"


def _literal(value: object) -> str:
    """Return a constant as a query would write it, always on one line."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return encode_string(value)
        case datetime():
            return f'datetime("{value.isoformat().replace("+00:00", "Z")}")'
        case date():
            return f'date("{value.isoformat()}")'
        case list():
            return f"[{', '.join(_literal(item) for item in value)}]"
        case _:
            return repr(value)


def show_predicate(predicate: Predicate) -> str:
    """Return a predicate as text."""
    match predicate:
        case Compare(left=left, operator=operator, right=right):
            return f"{show_expression(left)} {operator} {show_expression(right)}"
        case IsNull(operand=operand, negated=negated):
            return f"{show_expression(operand)} is {'not ' if negated else ''}null"
        case IsIn(operand=operand, choices=choices):
            return f"{show_expression(operand)} in {show_expression(choices)}"
        case PredicateCall(call=call):
            return show_expression(call)
        case And(parts=parts):
            return f"({' and '.join(show_predicate(part) for part in parts)})"
        case Or(parts=parts):
            return f"({' or '.join(show_predicate(part) for part in parts)})"


def _statement(statement: InsertNode | InsertEdge | Update | Delete) -> str:
    match statement:
        case InsertNode(type_name=name, values=values, keyed=keyed):
            return f"{'Upsert' if keyed else 'Insert'} node {name} {_values(values)}"
        case InsertEdge(type_name=name, src=src, dst=dst, values=values, keyed=keyed):
            ends = f"{show_expression(src)} -> {show_expression(dst)}"
            return f"{'Upsert' if keyed else 'Insert'} edge {name} {ends} {_values(values)}"
        case Update(kind=kind, type_name=name, values=values, tests=tests):
            return f"Update {kind} {name} {_values(values)}{_where(tests)}"
        case Delete(kind=kind, type_name=name, tests=tests):
            return f"Delete {kind} {name}{_where(tests)}"


def _values(values: Mapping[str, Expression]) -> str:
    shown = ", ".join(f"{name}: {show_expression(value)}" for name, value in values.items())
    return f"{{ {shown} }}" if shown else "{ }"
