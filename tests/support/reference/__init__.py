"""A naive interpreter of read queries, written from the language page: plain dicts and loops.

It shares the parser, the type checker and the binding of parameters with the product, and nothing
that answers a query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnigraph.lang import parse_queries
from omnigraph.plan import ReadPlan, bind_parameters, compile_query
from tests.support.reference.model import (
    Answer,
    Edge,
    Inexact,
    OutOfRangeError,
    PlainGraph,
    RefusedError,
    World,
)
from tests.support.reference.result import interpret

__all__ = [
    "Answer",
    "Edge",
    "Inexact",
    "OutOfRangeError",
    "PlainGraph",
    "RefusedError",
    "World",
    "ask",
    "interpret",
]


def ask(
    world: World, source: str, params: Mapping[str, Any] | None = None, name: str | None = None
) -> Answer:
    """Check a query as the product does, and answer it."""
    plan = compile_query(world.catalog, source, name)
    assert isinstance(plan, ReadPlan)
    bound = bind_parameters(plan.parameters, params)
    declared = {parameter.name: bound[parameter.name] for parameter in plan.parameters}
    types = {parameter.name: parameter.type for parameter in plan.parameters}
    query = next(q for q in parse_queries(source).queries if q.name.text == plan.name)
    return interpret(query, replace(world, parameters=declared, parameter_types=types))
