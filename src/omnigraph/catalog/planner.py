"""This module lists the steps from one accepted schema to another, or says what refuses.

Things are compared by identity, never by name, so a rename is one step wherever the name is used.
The planner looks at schemas only: whether entities exist makes no difference to its answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.catalog.accepted import AcceptedSchema
from omnigraph.catalog.difference import type_steps
from omnigraph.catalog.identity import IdentityError, identity_text
from omnigraph.catalog.model import TypeKind
from omnigraph.catalog.steps import (
    AddType,
    DropType,
    MigrationPlan,
    Step,
    UnsupportedChange,
)


def plan_migration(accepted: AcceptedSchema, desired: AcceptedSchema) -> MigrationPlan:
    """Return the steps that lead from the accepted to the desired schema.

    Raises IdentityError when the two cannot belong to one history.
    """
    _check_history(accepted, desired)
    steps = tuple(step for kind in TypeKind for step in _kind_steps(kind, accepted, desired))
    if not steps and accepted != desired:
        steps = (UnsupportedChange("schema", "the schemas differ in a way no step describes"),)
    return MigrationPlan(steps)


def _kind_steps(
    kind: TypeKind, accepted: AcceptedSchema, desired: AcceptedSchema
) -> Iterator[Step]:
    for new in desired.of_kind(kind):
        old = accepted.by_id(new.id)
        if old is None:
            yield AddType(kind, new.name)
        else:
            yield from type_steps(old, new, accepted, desired)
    for old in accepted.of_kind(kind):
        if desired.by_id(old.id) is not None:
            continue
        if kind is TypeKind.INTERFACE:
            yield UnsupportedChange(old.entity, "removing an interface is not supported")
        else:
            yield DropType(kind, old.name)


def _check_history(accepted: AcceptedSchema, desired: AcceptedSchema) -> None:
    """Refuse schemas whose identities cannot come from one graph."""
    if accepted.domain != desired.domain:
        raise IdentityError(
            f"the schemas belong to different graphs: {accepted.domain} and {desired.domain}"
        )
    owners = dict(_identity_roles(accepted))
    for identity, role in _identity_roles(desired):
        before = owners.get(identity, role)
        if before != role:
            raise IdentityError(
                f"identity {identity_text(identity)} was the {before} and cannot be the {role}"
            )
    for new in desired.types:
        old = accepted.by_id(new.id)
        if old is not None and old.incarnation != new.incarnation:
            raise IdentityError(f"{new.entity} changed its incarnation but kept its identity")


def _identity_roles(schema: AcceptedSchema) -> Iterator[tuple[int, str]]:
    """Yield each identity with what it must stay for ever."""
    for type_ in schema.types:
        yield type_.id, f"identity of some {type_.kind} type"
        if type_.incarnation is not None:
            yield type_.incarnation, f"incarnation of type {identity_text(type_.id)}"
        for property_id in type_.property_ids.values():
            yield property_id, f"identity of a property of type {identity_text(type_.id)}"
