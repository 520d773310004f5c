"""Reject queries that Spark cannot answer exactly, before they run."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.errors import InvalidInput
from omnigraph.pipeline.query.rows import predicates_of
from omnigraph.plan import ReadPlan
from omnigraph.plan import operators as op
from omnigraph.plan.expressions import (
    FunctionCall,
    PropertyRef,
    predicate_operands,
    subexpressions,
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
    expressions = list(op.operator_expressions(operator))
    for predicate in predicates_of(operator):
        expressions += predicate_operands(predicate)
    for expression in expressions:
        for part in subexpressions(expression):
            if isinstance(part, FunctionCall):
                yield part
