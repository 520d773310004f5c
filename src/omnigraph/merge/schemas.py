"""This module merges schemas: declarations by name, members by name, three ways like entities.

What only one side declared, changed or took away is taken from it. The result is a text like any
other; what it names keeps the identity it has on the side it comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.catalog import AcceptedSchema, AcceptedType, Catalog, TypeKind, read_catalog
from omnigraph.commit.model import Snapshot
from omnigraph.lang import Code, admit, parse_schema, print_schema
from omnigraph.lang.schema_tree import (
    Declaration,
    EdgeDecl,
    InterfaceDecl,
    Member,
    NodeDecl,
    PropertyDecl,
    SchemaTree,
)
from omnigraph.merge.conflicts import Conflict, ConflictKind


@dataclass(frozen=True, slots=True)
class MergedSchema:
    """A schema both sides can live with, and its text."""

    accepted: AcceptedSchema
    text: str


class SchemaConflicts(Exception):
    """Two schemas do not go together."""

    def __init__(self, conflicts: list[Conflict]) -> None:
        super().__init__(f"{len(conflicts)} conflicts")
        self.conflicts = conflicts


def merge_schemas(base: Snapshot, source: Snapshot, target: Snapshot) -> MergedSchema:
    """Return the schema of a merge; raise SchemaConflicts when there is none."""
    hashes = [snapshot.head.schema_hash for snapshot in (base, source, target)]
    if hashes[1] in (hashes[0], hashes[2]):
        return MergedSchema(target.schema, target.schema_source)
    if hashes[2] == hashes[0]:
        return MergedSchema(source.schema, source.schema_source)
    trees = [parse_schema(s.schema_source) for s in (base, source, target)]
    merge = _Merge()
    tree = merge.trees(*trees)
    if not merge.conflicts:
        text = print_schema(tree)
        report = admit(text, "<merged schema>", Code.SCHEMA_UNREADABLE)
        catalog = read_catalog(report)
        merge.conflicts += [_conflict(d.message) for d in report.errors]
        if not report.errors:
            accepted = merge.accepted(catalog, source.schema, target.schema)
            if accepted is not None:
                return MergedSchema(accepted, text)
    raise SchemaConflicts(merge.conflicts)


def _conflict(message: str, name: str | None = None) -> Conflict:
    return Conflict(kind=ConflictKind.SCHEMA_CONFLICT, message=message, type=name)


class _Merge:
    def __init__(self) -> None:
        self.conflicts: list[Conflict] = []

    # --- text ----------------------------------------------------------------------------------

    def trees(self, base: SchemaTree, source: SchemaTree, target: SchemaTree) -> SchemaTree:
        """Merge declarations."""
        sides = [{_name(d): d for d in tree.declarations} for tree in (base, source, target)]
        merged = []
        for key in dict.fromkeys([*sides[2], *sides[1]]):
            base_, source_, target_ = (side.get(key) for side in sides)
            found = self._one(key[1], base_, source_, target_)
            if found is not None:
                merged.append(found)
        return SchemaTree(tuple(merged))

    def _one(
        self,
        name: str,
        base: Declaration | None,
        source: Declaration | None,
        target: Declaration | None,
    ) -> Declaration | None:
        """Merge one declaration; None means that it is gone."""
        decided, found = _three_way(base, source, target)
        if decided:
            declaration: Declaration | None = found
            return declaration
        if base is None or source is None or target is None:
            what = "added it differently" if base is None else "dropped it, the other changed it"
            self._torn(name, f"one side {what}" if base is not None else f"both sides {what}")
            return target
        parts: dict[str, Any] = {
            field: self._field(base, source, target, field, name) for field in _HEADS[type(target)]
        }
        parts["members"] = self._members(base, source, target, name)
        return replace(target, **parts)

    def _field(self, base: Any, source: Any, target: Any, field: str, name: str) -> Any:  # noqa: ANN401
        """Merge what stands before the braces."""
        values = (getattr(side, field) for side in (base, source, target))
        decided, found = _three_way(*values)
        if not decided:
            self._torn(name, f"both sides changed its {field}")
        return found if decided else getattr(target, field)

    def _members(
        self, base: Declaration, source: Declaration, target: Declaration, name: str
    ) -> tuple[Member, ...]:
        sides = [_by_key(side.members) for side in (base, source, target)]
        merged = []
        for key in dict.fromkeys([*sides[2], *sides[1]]):
            values = [side.get(key) for side in sides]
            decided, found = _three_way(*values)
            if not decided:
                self._torn(name, f"both sides changed {key[1]}")
            if found is not None:
                merged.append(found)
        return tuple(merged)

    def _torn(self, name: str, message: str) -> None:
        self.conflicts.append(_conflict(f"{name}: {message}", name))

    # --- identities ----------------------------------------------------------------------------

    def accepted(
        self, catalog: Catalog, source: AcceptedSchema, target: AcceptedSchema
    ) -> AcceptedSchema | None:
        """Give everything the identity it has on the side it comes from."""
        types = []
        for kind, definitions in (
            (TypeKind.INTERFACE, catalog.interfaces),
            (TypeKind.NODE, catalog.nodes),
            (TypeKind.EDGE, catalog.edges),
        ):
            for name, definition in definitions.items():
                ours, theirs = source.find(kind, name), target.find(kind, name)
                home = theirs or ours
                assert home is not None, "a declaration comes from one of the sides"
                if ours is not None and theirs is not None and ours.id != theirs.id:
                    self._torn(name, "both sides added it; drop one of them first")
                ids = self._property_ids(name, definition.properties, ours, theirs)
                types.append(
                    AcceptedType(
                        id=home.id,
                        incarnation=home.incarnation,
                        definition=definition,
                        property_ids=ids,
                    )
                )
        return None if self.conflicts else AcceptedSchema(target.domain, tuple(types))

    def _property_ids(
        self,
        type_name: str,
        names: Iterable[str],
        ours: AcceptedType | None,
        theirs: AcceptedType | None,
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in sorted(names):
            ids = [side.property_ids.get(name) for side in (theirs, ours) if side is not None]
            known = [id_ for id_ in ids if id_ is not None]
            if len(set(known)) > 1:
                message = f"both sides added {name}; drop or rename it on one of them first"
                self._torn(type_name, message)
            found[name] = known[0]
        return found


_HEADS: Mapping[type, tuple[str, ...]] = {
    InterfaceDecl: (),
    NodeDecl: ("annotations", "implements"),
    EdgeDecl: ("src", "dst", "cardinality", "annotations"),
}


def _name(declaration: Declaration) -> tuple[str, str]:
    return type(declaration).__name__, declaration.name.text


def _by_key(members: Iterable[Member]) -> dict[tuple[str, str], Any]:
    """Return properties by name; a constraint is what it says."""
    return {
        ("property", m.name.text) if isinstance(m, PropertyDecl) else ("constraint", repr(m)): m
        for m in members
    }


def _three_way(base: Any, source: Any, target: Any) -> tuple[bool, Any]:  # noqa: ANN401
    """Return whether the sides go together, and what they come to."""
    if source in (target, base):
        return True, target
    if target == base:
        return True, source
    return False, target
