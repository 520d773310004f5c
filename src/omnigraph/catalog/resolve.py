"""This module turns a catalog into an accepted schema, by giving or keeping stable identities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from omnigraph.catalog.accepted import AcceptedSchema
from omnigraph.catalog.accepted_type import AcceptedType
from omnigraph.catalog.identity import (
    IdentityAllocator,
    IdentityError,
    IncarnationId,
    PropertyId,
    TypeId,
    identity_text,
)
from omnigraph.catalog.model import Catalog, Definition, TypeKind, definition_kind
from omnigraph.catalog.rename import Matches, TypeKey, match_accepted, report_inert_hints
from omnigraph.lang import Report, SchemaError

_KeyT = TypeVar("_KeyT")


def accept(
    catalog: Catalog, *, allocator: IdentityAllocator, domain: str, report: Report | None = None
) -> AcceptedSchema:
    """Return the first accepted schema of a graph; rename hints have no effect and are told."""
    if report is not None:
        report_inert_hints(catalog, report)
    return _identified(catalog, Matches(), domain, _Fresh(allocator, frozenset()))


def resolve(
    catalog: Catalog, accepted: AcceptedSchema, *, allocator: IdentityAllocator, report: Report
) -> AcceptedSchema:
    """Return the schema a catalog becomes on top of an accepted one, keeping identities.

    Raises SchemaError with everything in the report when a rename hint cannot be followed.
    """
    matches = match_accepted(catalog, accepted, report)
    if report.errors:
        raise SchemaError(report.in_order())
    used = frozenset(identity for identity, _ in accepted.identities())
    return _identified(catalog, matches, accepted.domain, _Fresh(allocator, used))


@dataclass(frozen=True, slots=True)
class _Fresh:
    """Gives new identities in runs, and makes sure that they are new."""

    allocator: IdentityAllocator
    used: frozenset[int]

    def give(self, keys: Iterable[_KeyT]) -> dict[_KeyT, int]:
        wanted = list(keys)
        if not wanted:
            return {}
        first = self.allocator.allocate(len(wanted))
        given = dict(zip(wanted, range(first, first + len(wanted)), strict=True))
        taken = self.used.intersection(given.values())
        if taken:
            raise IdentityError(f"identity {identity_text(min(taken))} is in use already")
        return given


def _identified(catalog: Catalog, matches: Matches, domain: str, fresh: _Fresh) -> AcceptedSchema:
    """Give identities in three runs: types, then properties, then incarnations."""
    definitions: dict[TypeKey, Definition] = {
        (definition_kind(d), d.name): d for d in catalog.definitions()
    }
    type_ids: dict[TypeKey, TypeId] = {key: t.id for key, t in matches.types.items()}
    new_types = fresh.give(key for key in definitions if key not in type_ids)
    type_ids |= {key: TypeId(given) for key, given in new_types.items()}
    by_id: Sequence[TypeKey] = sorted(definitions, key=lambda key: type_ids[key])

    property_ids = {key: dict(matches.properties.get(key, {})) for key in by_id}
    new_properties = fresh.give(
        (key, name)
        for key in by_id
        for name in sorted(definitions[key].properties)
        if name not in property_ids[key]
    )
    for (key, name), given in new_properties.items():
        property_ids[key][name] = PropertyId(given)

    incarnations = {key: t.incarnation for key, t in matches.types.items()}
    stored = (key for key in by_id if key in new_types and key[0] is not TypeKind.INTERFACE)
    incarnations |= {key: IncarnationId(given) for key, given in fresh.give(stored).items()}

    types = (
        AcceptedType(
            id=type_ids[key],
            incarnation=incarnations.get(key),
            definition=definition,
            property_ids=property_ids[key],
        )
        for key, definition in definitions.items()
    )
    return AcceptedSchema(domain, tuple(types))
