"""This module says what a query returns, reads and writes, without running it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, assert_never

from omnigraph.catalog.model import Catalog, TypeKind
from omnigraph.plan.expressions import EntityKind, edge_paths
from omnigraph.plan.operators import Close, Expand, Operator, Scan, expressions, inputs
from omnigraph.plan.query import (
    Delete,
    InsertEdge,
    InsertNode,
    QueryPlan,
    ReadPlan,
    Statement,
    Update,
    describe_type,
)


class Access(NamedTuple):
    """One type a query touches."""

    kind: TypeKind
    type_name: str


def describe_operation(plan: QueryPlan, catalog: Catalog) -> dict[str, Any]:
    """Return the wire descriptor of a plan: result, reads and writes."""
    if isinstance(plan, ReadPlan):
        result = [{"name": c.name, **describe_type(c.type)} for c in plan.columns]
        return {"result": result, "reads": _wire(_reads(plan.root, catalog)), "writes": []}
    reads: set[Access] = set()
    writes: set[Access] = set()
    for statement in plan.statements:
        touched = set(_written(statement, catalog))
        writes |= touched
        reads |= touched
        if isinstance(statement, InsertEdge):
            reads |= set(_edge(statement.type_name, catalog))
    return {"result": [], "reads": _wire(reads), "writes": _wire(writes)}


def _reads(operator: Operator, catalog: Catalog) -> set[Access]:
    found: set[Access] = set()
    match operator:
        case Scan(binding=binding):
            found.add(Access(TypeKind.NODE, binding.type_name))
        case Expand(edge=edge) | Close(edge=edge):
            found |= set(_edge(edge, catalog))
        case _:
            pass
    for expression in expressions(operator):
        for path in edge_paths(expression):
            found |= set(_edge(path.edge, catalog))
    for source in inputs(operator):
        found |= _reads(source, catalog)
    return found


def _written(statement: Statement, catalog: Catalog) -> Iterator[Access]:
    match statement:
        case InsertNode(type_name=name):
            yield Access(TypeKind.NODE, name)
        case InsertEdge(type_name=name) | Delete(kind=EntityKind.EDGE, type_name=name):
            yield Access(TypeKind.EDGE, name)
        case Update(kind=kind, type_name=name):
            yield Access(TypeKind(kind), name)
        case Delete(type_name=name):
            yield Access(TypeKind.NODE, name)
            for edge in catalog.incident_edges(name):
                yield Access(TypeKind.EDGE, edge.name)
        case _ as unreachable:
            assert_never(unreachable)


def _edge(name: str, catalog: Catalog) -> Iterator[Access]:
    """Yield an edge type and the node types at its ends."""
    edge = catalog.edges[name]
    yield Access(TypeKind.EDGE, name)
    yield Access(TypeKind.NODE, edge.src)
    yield Access(TypeKind.NODE, edge.dst)


def _wire(accesses: set[Access]) -> list[dict[str, str]]:
    """List nodes before edges, by name."""
    ordered = sorted(accesses, key=lambda a: (a.kind is not TypeKind.NODE, a.type_name))
    return [{"kind": str(a.kind), "type_name": a.type_name} for a in ordered]
