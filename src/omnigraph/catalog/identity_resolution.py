"""Turn a catalog into an accepted schema, by allocating or keeping stable identities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from omnigraph.catalog.accepted_schema import AcceptedSchema
from omnigraph.catalog.identity import (
    IdentityAllocator,
    IdentityError,
    IncarnationId,
    PropertyId,
    TypeId,
    identity_text,
)
from omnigraph.catalog.model import (
    AcceptedType,
    Catalog,
    Definition,
    EdgeType,
    InterfaceType,
    Property,
    TypeKind,
    definition_kind,
)
from omnigraph.lang import Code, DiagnosticReport, SchemaError, did_you_mean

# ----------------------------------------------------------------------
# Matching declarations with accepted types and properties: the same, renamed, or new
#
# A type with an accepted name is that type. One with an unknown name and `@rename_from` is the type
# of the old name. Anything else is new. Properties likewise, under the type that owns them.


TypeKey = tuple[TypeKind, str]


@dataclass(frozen=True, slots=True)
class SchemaMatches:
    """The accepted counterparts of a catalog's types and properties, by present name."""

    types: dict[TypeKey, AcceptedType] = field(default_factory=dict)
    properties: dict[TypeKey, dict[str, PropertyId]] = field(default_factory=dict)


def report_ineffective_rename_hints(catalog: Catalog, report: DiagnosticReport) -> None:
    """Warn about each `@rename_from` of a first schema: there is nothing to rename."""
    for definition in catalog.definitions():
        place = f"{definition_kind(definition)} {definition.name}"
        if not isinstance(definition, InterfaceType) and definition.rename_from is not None:
            message = f"@rename_from on {place} has no effect on the first schema of a graph"
            report.add(Code.INERT_INITIALIZATION_RENAME_HINT, message, definition.span)
        for property_ in definition.properties.values():
            if property_.rename_from is not None and property_.declared_directly:
                message = (
                    f"@rename_from on {definition.name}.{property_.name} has no effect "
                    "on the first schema of a graph"
                )
                report.add(Code.INERT_INITIALIZATION_RENAME_HINT, message, property_.span)


@dataclass(frozen=True, slots=True)
class _SchemaMatcher:
    """Matches a catalog with the accepted schema; reports every hint that cannot be followed."""

    accepted: AcceptedSchema
    report: DiagnosticReport
    matches: SchemaMatches = field(default_factory=SchemaMatches)
    unresolved: set[TypeKey] = field(default_factory=set)
    """Types with an invalid hint: their properties cannot be matched."""

    def match(self, catalog: Catalog) -> SchemaMatches:
        definitions = {(definition_kind(d), d.name): d for d in catalog.definitions()}
        self._match_types(definitions)
        for key, definition in definitions.items():
            if key in self.unresolved:
                continue
            owner = self.matches.types.get(key)
            if owner is None:
                self._refuse_hints_of_new_owner(definition)
            else:
                self.matches.properties[key] = self._match_properties(definition, owner)
        return self.matches

    def _match_types(self, definitions: Mapping[TypeKey, Definition]) -> None:
        claimed: set[TypeId] = set()
        for key in definitions:
            exact = self.accepted.find(*key)
            if exact is not None:
                self.matches.types[key] = exact
                claimed.add(exact.id)
        for key, definition in definitions.items():
            if isinstance(definition, InterfaceType) or definition.rename_from is None:
                continue
            if key in self.matches.types:
                message = f"{key[0]} {key[1]} is already accepted under that name"
                self._ignored(message, definition)
                continue
            origin = self._type_origin(definition, definition.rename_from, claimed)
            if origin is None:
                self.unresolved.add(key)
            else:
                self.matches.types[key] = origin
                claimed.add(origin.id)

    def _type_origin(
        self, definition: Definition, old: str, claimed: set[TypeId]
    ) -> AcceptedType | None:
        kind = definition_kind(definition)
        place = f"@rename_from({old}) on {kind} {definition.name}"
        origin = self.accepted.find(kind, old)
        if origin is None:
            others = [k for k in TypeKind if self.accepted.find(k, old) is not None]
            if others:
                message = (
                    f"{place} points across declaration kinds: {old} is an accepted {others[0]}"
                )
                self.report.add(Code.RENAME_ACROSS_KINDS, message, definition.span)
            else:
                message = f"{place}: no accepted declaration has that name"
                names = [type_.name for type_ in self.accepted.of_kind(kind)]
                hint = did_you_mean(old, names)
                self.report.add(Code.RENAME_UNKNOWN, message, definition.span, hint=hint)
            return None
        if origin.id in claimed:
            message = f"{place}: {old} is consumed by more than one desired declaration"
            self.report.add(Code.RENAME_CONSUMED_TWICE, message, definition.span)
            return None
        return origin

    def _match_properties(
        self, definition: Definition, owner: AcceptedType
    ) -> dict[str, PropertyId]:
        ids = owner.property_ids
        kept = {name: ids[name] for name in definition.properties if name in ids}
        claimed = set(kept)
        # A hint that came with an interface is overridden by one written on the type itself.
        for property_ in sorted(
            definition.properties.values(), key=lambda p: not p.declared_directly
        ):
            old = property_.rename_from
            if old is None:
                continue
            if property_.name in kept:
                if property_.declared_directly:
                    place = f"property {definition.name}.{property_.name}"
                    self._ignored(f"{place} is already accepted under that name", property_)
            elif old in ids and old not in claimed:
                kept[property_.name] = ids[old]
                claimed.add(old)
            elif property_.declared_directly:
                self._refuse_property_hint(property_, old, definition, owner)
        return kept

    def _refuse_property_hint(
        self, property_: Property, old: str, definition: Definition, owner: AcceptedType
    ) -> None:
        place = f"@rename_from({old}) on {definition.name}.{property_.name}"
        if old in owner.property_ids:
            message = f"{place}: {old} is consumed by more than one desired declaration"
            self.report.add(Code.RENAME_CONSUMED_TWICE, message, property_.span)
            return
        others = [type_ for type_ in self.accepted.types if old in type_.property_ids]
        if others:
            message = (
                f"{place}: {old} is a property of {others[0].name}; "
                "moves across owners are unsupported"
            )
            self.report.add(Code.RENAME_ACROSS_OWNERS, message, property_.span)
            return
        message = f"{place}: no accepted declaration has that name"
        hint = did_you_mean(old, owner.property_ids)
        self.report.add(Code.RENAME_UNKNOWN, message, property_.span, hint=hint)

    def _refuse_hints_of_new_owner(self, definition: Definition) -> None:
        for property_ in definition.properties.values():
            if property_.rename_from is not None and property_.declared_directly:
                message = (
                    f"@rename_from({property_.rename_from}) on {definition.name}.{property_.name}: "
                    f"{definition.name} is new and cannot import the identity of a property"
                )
                self.report.add(Code.RENAME_INTO_NEW_OWNER, message, property_.span)

    def _ignored(self, message: str, thing: Definition | Property) -> None:
        code = Code.IGNORED_EXACT_MATCH_RENAME_HINT
        self.report.add(code, f"@rename_from is ignored: {message}", thing.span)


_KeyT = TypeVar("_KeyT")


def accept_schema(
    catalog: Catalog,
    *,
    allocator: IdentityAllocator,
    domain: str,
    report: DiagnosticReport | None = None,
) -> AcceptedSchema:
    """Return the first accepted schema of a graph; rename hints have no effect and are reported."""
    if report is not None:
        report_ineffective_rename_hints(catalog, report)
    return _assign_identities(
        catalog, SchemaMatches(), domain, _NewIdentities(allocator, frozenset())
    )


def resolve_schema(
    catalog: Catalog,
    accepted: AcceptedSchema,
    *,
    allocator: IdentityAllocator,
    report: DiagnosticReport,
) -> AcceptedSchema:
    """Return the schema of a catalog based on an accepted one, keeping identities.

    Raises SchemaError with everything in the report when a rename hint cannot be followed.
    """
    matches = _SchemaMatcher(accepted, report).match(catalog)
    report.raise_errors(SchemaError)
    used = frozenset(identity for identity, _ in accepted.identities())
    return _assign_identities(catalog, matches, accepted.domain, _NewIdentities(allocator, used))


@dataclass(frozen=True, slots=True)
class _NewIdentities:
    """Gives new identities in runs, and makes sure that they are new."""

    allocator: IdentityAllocator
    used: frozenset[int]

    def allocate(self, keys: Iterable[_KeyT]) -> dict[_KeyT, int]:
        names = list(keys)
        if not names:
            return {}
        first = self.allocator.allocate(len(names))
        identities = dict(zip(names, range(first, first + len(names)), strict=True))
        taken = self.used.intersection(identities.values())
        if taken:
            raise IdentityError(f"identity {identity_text(min(taken))} is in use already")
        return identities


def _assign_identities(
    catalog: Catalog, matches: SchemaMatches, domain: str, fresh: _NewIdentities
) -> AcceptedSchema:
    """Give identities in three runs: types, then properties, then incarnations."""
    definitions: dict[TypeKey, Definition] = {
        (definition_kind(d), d.name): d for d in catalog.definitions()
    }
    type_ids: dict[TypeKey, TypeId] = {key: t.id for key, t in matches.types.items()}
    new_types = fresh.allocate(key for key in definitions if key not in type_ids)
    type_ids |= {key: TypeId(new_ids) for key, new_ids in new_types.items()}
    by_id: Sequence[TypeKey] = sorted(definitions, key=lambda key: type_ids[key])

    property_ids = {key: dict(matches.properties.get(key, {})) for key in by_id}
    new_properties = fresh.allocate(
        (key, name)
        for key in by_id
        for name in sorted(definitions[key].properties)
        if name not in property_ids[key]
    )
    for (key, name), new_ids in new_properties.items():
        property_ids[key][name] = PropertyId(new_ids)

    incarnations = {key: t.incarnation for key, t in matches.types.items()}
    stored = (
        key
        for key in by_id
        if (key in new_types and key[0] is not TypeKind.INTERFACE)
        or _has_new_key(definitions[key], property_ids[key], matches.types.get(key))
    )
    incarnations |= {key: IncarnationId(new_ids) for key, new_ids in fresh.allocate(stored).items()}

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


def _has_new_key(
    definition: Definition, property_ids: Mapping[str, PropertyId], accepted: AcceptedType | None
) -> bool:
    """Return whether an accepted edge type gets a key, or another one: all its IDs change.

    Edges of a type that loses its key keep their IDs.
    """
    if accepted is None or not isinstance(definition, EdgeType) or not definition.key:
        return False
    members = {property_ids.get(name, name) for name in definition.key}
    return members != set(accepted.key_identity)
