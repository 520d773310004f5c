"""Describe what a query returns, reads and writes, without running it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, assert_never

from omnigraph.catalog.model import Catalog, TypeKind
from omnigraph.plan.expressions import EdgePath, EntityKind, subexpressions
from omnigraph.plan.operators import (
    Expand,
    PlanOperator,
    Scan,
    SemiJoin,
    operator_expressions,
    operator_inputs,
)
from omnigraph.plan.query_plan import (
    Delete,
    InsertEdge,
    InsertNode,
    PlannedStatement,
    QueryPlan,
    ReadPlan,
    Update,
    describe_type,
)

TypeAccess: TypeAlias = tuple[TypeKind, str]
"""A type a query touches: its kind and name."""


def describe_operation(plan: QueryPlan, catalog: Catalog) -> dict[str, Any]:
    """Return the wire descriptor of a plan: result, reads and writes."""
    if isinstance(plan, ReadPlan):
        result = [{"name": c.name, **describe_type(c.type)} for c in plan.columns]
        return {
            "result": result,
            "reads": _accesses_to_json(_read_accesses(plan.root, catalog)),
            "writes": [],
        }
    reads: set[TypeAccess] = set()
    writes: set[TypeAccess] = set()
    for statement in plan.statements:
        touched = set(_written_accesses(statement, catalog))
        writes |= touched
        reads |= touched
        if isinstance(statement, InsertEdge):
            reads |= set(_edge_accesses(statement.type_name, catalog))
    return {"result": [], "reads": _accesses_to_json(reads), "writes": _accesses_to_json(writes)}


def _read_accesses(operator: PlanOperator, catalog: Catalog) -> set[TypeAccess]:
    accesses: set[TypeAccess] = set()
    match operator:
        case Scan(binding=binding):
            accesses.add((TypeKind.NODE, binding.type_name))
        case Expand(edge=edge) | SemiJoin(edge=edge):
            accesses |= set(_edge_accesses(edge, catalog))
        case _:
            pass
    for expression in operator_expressions(operator):
        for part in subexpressions(expression):
            if isinstance(part, EdgePath):
                accesses |= set(_edge_accesses(part.edge, catalog))
    for source in operator_inputs(operator):
        accesses |= _read_accesses(source, catalog)
    return accesses


def _written_accesses(statement: PlannedStatement, catalog: Catalog) -> Iterator[TypeAccess]:
    match statement:
        case InsertNode(type_name=name):
            yield (TypeKind.NODE, name)
        case InsertEdge(type_name=name) | Delete(kind=EntityKind.EDGE, type_name=name):
            yield (TypeKind.EDGE, name)
        case Update(kind=kind, type_name=name):
            yield (TypeKind(kind), name)
        case Delete(type_name=name):
            yield (TypeKind.NODE, name)
            for edge in catalog.incident_edges(name):
                yield (TypeKind.EDGE, edge.name)
        case _ as unreachable:
            assert_never(unreachable)


def _edge_accesses(name: str, catalog: Catalog) -> Iterator[TypeAccess]:
    """Yield an edge type and the node types at its ends."""
    edge = catalog.edges[name]
    yield (TypeKind.EDGE, name)
    yield (TypeKind.NODE, edge.src)
    yield (TypeKind.NODE, edge.dst)


def _accesses_to_json(accesses: set[TypeAccess]) -> list[dict[str, str]]:
    """List nodes before edges, by name."""
    ordered = sorted(accesses, key=lambda access: (access[0] is not TypeKind.NODE, access[1]))
    return [{"kind": str(kind), "type_name": name} for kind, name in ordered]
