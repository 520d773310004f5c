"""This module defines one accepted type: what was declared, and the identities it was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from omnigraph.catalog.identity import IncarnationId, PropertyId, TypeId
from omnigraph.catalog.model import (
    Definition,
    InterfaceType,
    Property,
    TypeKind,
    definition_kind,
)
from omnigraph.errors import Category, OmniError
from omnigraph.lang.source import NO_SPAN

KIND_ORDER: Mapping[TypeKind, int] = {kind: order for order, kind in enumerate(TypeKind)}


class SchemaCorrupt(OmniError):
    """An accepted schema contradicts itself."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"the accepted schema is corrupt: {message}",
            code="schema_corrupt",
            category=Category.INTERNAL,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedType:
    """A type with its identities; an interface stores nothing, so it has no incarnation.

    The definition is kept without source places and rename hints, its properties by name.
    """

    id: TypeId
    incarnation: IncarnationId | None
    definition: Definition
    property_ids: Mapping[str, PropertyId]

    def __post_init__(self) -> None:
        object.__setattr__(self, "definition", _settled(self.definition))
        if (self.incarnation is None) != (self.kind is TypeKind.INTERFACE):
            raise SchemaCorrupt(f"{self.entity} has the wrong kind of incarnation")
        if set(self.property_ids) != set(self.definition.properties):
            raise SchemaCorrupt(f"{self.entity} does not give each property one identity")

    @property
    def kind(self) -> TypeKind:
        """What kind of declaration this is."""
        return definition_kind(self.definition)

    @property
    def name(self) -> str:
        """The name the type has now."""
        return self.definition.name

    @property
    def entity(self) -> str:
        """The spelling of this type in refusals: `node:Ship`."""
        return f"{self.kind}:{self.name}"

    @property
    def order(self) -> tuple[int, str]:
        """Where this type stands among all: interfaces, nodes, edges, each by name."""
        return KIND_ORDER[self.kind], self.name


def _settled(definition: Definition) -> Definition:
    properties = {name: _bare(p) for name, p in sorted(definition.properties.items())}
    if isinstance(definition, InterfaceType):
        return replace(definition, properties=properties, span=NO_SPAN)
    return replace(definition, properties=properties, rename_from=None, span=NO_SPAN)


def _bare(property_: Property) -> Property:
    return replace(property_, rename_from=None, span=NO_SPAN)
