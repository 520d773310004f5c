"""This module holds changes against what an actor may change and see, type by type.

It looks at what is written of the schema and the change, never at entities: whether something is
refused tells nothing about what is in types that may not be seen.
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.catalog import Catalog, TypeKind
from omnigraph.catalog.model import DST, ID, SRC
from omnigraph.commit.model import Snapshot
from omnigraph.plan.expressions import EntityKind, predicate_refs
from omnigraph.plan.query import Delete, MutationPlan, Update
from omnigraph.policy import PolicyDenied
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.request import Request

_SYSTEM = frozenset(property_.name for property_ in (ID, SRC, DST))


def check_plan(plan: MutationPlan, request: Request, shown: Catalog) -> None:
    """Refuse a mutation that asks about what may not be read; `shown` is what may be.

    How many entities an update or a delete finds tells something about what it looks for.
    """
    if request.rights.read.is_everything:
        return
    unread = set[str]()
    for statement in plan.statements:
        if isinstance(statement, Update | Delete):
            is_node, name = statement.kind is EntityKind.NODE, statement.type_name
            found = shown.nodes.get(name) if is_node else shown.edges.get(name)
            asked = [ref.property for test in statement.tests for ref in predicate_refs(test)]
            if found is None:
                unread.add(name)
            else:
                known = found.properties.keys() | _SYSTEM
                unread |= {f"{name}.{property_}" for property_ in asked if property_ not in known}
    if unread:
        _refuse(request, f"look for {', '.join(sorted(unread))}")


def check_changes(changes: ChangeSet, request: Request, snapshot: Snapshot) -> None:
    """Refuse a change of types that may not be changed; deleted nodes may take edges with them."""
    if request.rights.change.is_everything:
        return
    touched = set[str]()
    for change in changes.types.values():
        if not change.is_empty:
            touched.add(change.shape.name)
        if change.shape.kind is TypeKind.NODE and (change.deleted or change.replace):
            edges = snapshot.catalog.incident_edges(change.shape.name)
            touched |= {edge.name for edge in edges}
    check_touched(touched, request)


def check_touched(names: Iterable[str], request: Request, *, seen: bool = False) -> None:
    """Refuse to change types; with `seen`, also those of which something may not be seen."""
    rights = request.rights
    refused = {
        name
        for name in names
        if not rights.change.covers(name) or (seen and not rights.read.shows_all(name))
    }
    told = sorted(name for name in refused if rights.named.covers(name))
    if refused:
        others = [] if len(told) == len(refused) else ["types that it may not see"]
        _refuse(request, f"change {', '.join([*told, *others])}")


def check_one_schema(hashes: Iterable[str], request: Request) -> None:
    """Refuse to bring changes across schemas to who may not see or change all of them."""
    if not request.rights.is_everything and len(set(hashes)) > 1:
        _refuse(request, "bring changes of the schema")


def _refuse(request: Request, what: str) -> None:
    message = f"policy does not let actor '{request.actor}' {what} on branch '{request.branch}'"
    raise PolicyDenied(message, actor=request.actor, branch=request.branch)
