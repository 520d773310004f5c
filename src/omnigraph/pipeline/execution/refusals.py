"""Reject queries that Spark cannot answer exactly, before they run."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.errors import InvalidInput
from omnigraph.plan import ReadPlan
from omnigraph.plan import operators as op
from omnigraph.plan.expressions import (
    And,
    Expression,
    FunctionCall,
    Or,
    Predicate,
    PredicateCall,
    PropertyRef,
)
from omnigraph.plan.functions import FunctionArgumentKind, Unsupported


def check_supported(plan: ReadPlan) -> None:
    """Raise InvalidInput naming everything in a plan that Spark cannot do."""
    found: dict[str, str] = {}
    for _, operator in op.walk_operators(plan.root):
        for call in _calls(operator):
            why = _reason(call)
            if why is not None:
                found[call.function.name] = why
    if not found:
        return
    reasons = "; ".join(f"{name}(): {why}" for name, why in found.items())
    message = f"query '{plan.name}' cannot run on Spark: {reasons}. Run it with engine='local'"
    raise InvalidInput(message, code="engine_unsupported", query=plan.name, functions=list(found))


def _reason(call: FunctionCall) -> str | None:
    if isinstance(call.function.spark, Unsupported):
        return call.function.spark.reason
    for declared, argument in zip(call.function.arguments, call.arguments, strict=False):
        embeds = declared.kind is FunctionArgumentKind.VECTOR_OR_TEXT
        if embeds and isinstance(argument, PropertyRef) and argument.type.text:
            return "it would have to embed a text of every row"
    return None


def _calls(operator: op.PlanOperator) -> Iterator[FunctionCall]:
    for expression in op.operator_expressions(operator):
        yield from _calls_in(expression)
    match operator:
        case op.Scan(predicates=predicates) | op.Expand(predicates=predicates):
            for predicate in predicates:
                yield from _predicate_calls(predicate)
        case op.Filter(predicate=predicate):
            yield from _predicate_calls(predicate)
        case _:
            return


def _predicate_calls(predicate: Predicate) -> Iterator[FunctionCall]:
    match predicate:
        case PredicateCall(call=call):
            yield call
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from _predicate_calls(part)
        case _:
            return


def _calls_in(expression: Expression) -> Iterator[FunctionCall]:
    if isinstance(expression, FunctionCall):
        yield expression
        for argument in expression.arguments:
            yield from _calls_in(argument)
