"""Merge schemas three ways, by identity: types, properties, and each of their parts.

What only one side added, changed, renamed or dropped is taken from it. What both changed
differently is a conflict, and so is what one side dropped while the other changed or uses it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from omnigraph.catalog import AcceptedSchema, AcceptedType, Catalog, read_catalog
from omnigraph.catalog.identity import IncarnationId, TypeId
from omnigraph.catalog.model import Definition, definition_kind
from omnigraph.commit.model import Snapshot
from omnigraph.lang import Code, parse_schema, print_schema, report_for_text
from omnigraph.merge.conflicts import Conflict, ConflictKind
from omnigraph.merge.schema_by_identity import (
    ANNOTATION,
    CONSTRAINT,
    KIND,
    NAME,
    PROPERTY,
    TYPE,
    SchemaAssembler,
    SchemaParts,
    split_schema,
)


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


def merge_schemas(bases: Sequence[Snapshot], source: Snapshot, target: Snapshot) -> MergedSchema:
    """Return the schema of a merge; raise SchemaConflicts when there is none.

    Of several bases the first that has a type or property says what it was.
    """
    before = {base.head.schema_hash for base in bases}
    ours, theirs = source.head.schema_hash, target.head.schema_hash
    if ours == theirs or before == {ours}:
        return MergedSchema(target.schema, target.schema_source)
    if before == {theirs}:
        return MergedSchema(source.schema, source.schema_source)
    merge = _SchemaMerge([base.schema for base in bases], source.schema, target.schema)
    base = reduce(_union_parts, [_schema_parts(snapshot) for snapshot in bases])
    sides = [_schema_parts(snapshot) for snapshot in (source, target)]
    merged = merge.parts(base, *sides)
    for parts, side in ((sides[1], target), (sides[0], source)):
        if merged == parts and not merge.conflicts and merge.keeps_incarnations(side.schema):
            # Its text is the author's, with comments.
            return MergedSchema(side.schema, side.schema_source)
    schema = merge.assembled(merged)
    if schema is None:
        raise SchemaConflicts(merge.conflicts)
    return schema


def _schema_parts(snapshot: Snapshot) -> SchemaParts:
    return split_schema(parse_schema(snapshot.schema_source), snapshot.schema)


def _union_parts(one: SchemaParts, other: SchemaParts) -> SchemaParts:
    """Return parts with those that only another state has."""
    union = {**other, **one}
    for key in one.keys() & other.keys():
        if isinstance(one[key], dict) and isinstance(other[key], dict):
            union[key] = _union_parts(one[key], other[key])
    return union


def _three_way(base: Any, source: Any, target: Any) -> tuple[bool, Any]:  # noqa: ANN401
    """Return whether the sides go together, and the result."""
    if source in (target, base):
        return True, target
    if target == base:
        return True, source
    return False, target


class _SchemaMerge:
    """One merge of schemas."""

    def __init__(
        self, bases: Sequence[AcceptedSchema], source: AcceptedSchema, target: AcceptedSchema
    ) -> None:
        self.bases, self.source, self.target = bases, source, target
        self.conflicts: list[Conflict] = []
        self._disputed: set[int] = set()

    def _conflict(self, type_name: str, message: str) -> None:
        self.conflicts.append(
            Conflict(
                kind=ConflictKind.SCHEMA_CONFLICT,
                message=f"{type_name}: {message}",
                type=type_name,
            )
        )

    # --- parts ---------------------------------------------------------------------------------

    def parts(self, base: SchemaParts, source: SchemaParts, target: SchemaParts) -> SchemaParts:
        """Merge the parts of all types."""
        return self._mapping((), base, source, target)

    def _mapping(
        self, path: tuple[Any, ...], base: SchemaParts, source: SchemaParts, target: SchemaParts
    ) -> SchemaParts:
        merged = {}
        for key in dict.fromkeys([*target, *source]):
            sides = (base.get(key), source.get(key), target.get(key))
            value = self._part((*path, key), *sides)
            if value is not None:
                merged[key] = value
        return merged

    def _part(self, path: tuple[Any, ...], base: Any, source: Any, target: Any) -> Any:  # noqa: ANN401
        """Merge one part; None means that it is absent."""
        decided, value = _three_way(base, source, target)
        if decided:
            return value
        if isinstance(source, dict) and isinstance(target, dict):
            return self._mapping(path, base if isinstance(base, dict) else {}, source, target)
        type_name = self._name(path[0])
        self._disputed |= {path[0]} if len(path) == 1 else {path[1][1]}
        self._conflict(type_name, self._message(path[1:], base, source, target))
        return None if source is None else target

    def _message(self, path: tuple[Any, ...], base: Any, source: Any, target: Any) -> str:  # noqa: ANN401
        """Return what both sides did to one part."""
        what, part = "it", path
        if path and path[0][0] == PROPERTY:
            what, part = self._name(path[0][1]), path[1:]
        if source is None or target is None:
            dropped, did = _describe_drop(what, part), _describe_change(base, source, target)
            return f"one side dropped {dropped}, the other {did}"
        if part == (NAME,):
            return f"both sides renamed {what}, to {source} and {target}"
        verb = "added" if base is None else "changed"
        return f"both sides {verb} {self._part_name(what, part)} differently"

    def _part_name(self, what: str, part: tuple[Any, ...]) -> str:
        match part[0]:
            case str() as word:
                return f"the {word} of {what}" if what != "it" else f"its {word}"
            case (kind, word, columns) if kind == CONSTRAINT:
                names = ", ".join(self._name(int(c[1:])) if c[0] == "#" else c for c in columns)
                return f"@{word}({names})"
            case (kind, word, _) if kind == ANNOTATION:
                return f"@{word} of {what}" if what != "it" else f"its @{word}"
            case _:
                return what

    def _name(self, identity: int) -> str:
        """Return a name of a type or property: the one of the base, else of a side."""
        for schema in (*self.bases, self.source, self.target):
            for type_ in schema.types:
                if type_.id == identity:
                    return type_.name
                for name, id_ in type_.property_ids.items():
                    if id_ == identity:
                        return name
        raise AssertionError("an identity belongs to one of the sides")

    # --- together again ------------------------------------------------------------------------

    def assembled(self, merged: SchemaParts) -> MergedSchema | None:
        """Return the schema that merged parts make; None after a conflict."""
        names = {id_: self._property_names(id_, parts) for id_, parts in merged.items()}
        self._check_names(merged, names)
        flat = {f"#{id_}": name for one in names.values() for id_, name in one.items()}
        assembly = SchemaAssembler(flat | {f"#{id_}": parts[NAME] for id_, parts in merged.items()})
        tree = assembly.tree(merged)
        for owner, use, reference in dict.fromkeys(assembly.dangling):
            identity = int(reference[1:])
            if identity not in self._disputed:
                lost = self._name(identity)
                self._conflict(owner, f"one side dropped {lost}, on the other {owner} {use} it")
        if self.conflicts:
            return None
        text = print_schema(tree)
        report = report_for_text(text, "<merged schema>", Code.SCHEMA_UNREADABLE)
        catalog = read_catalog(report, persisted=True)
        for diagnostic in report.errors:
            kind = ConflictKind.SCHEMA_CONFLICT
            self.conflicts.append(Conflict(kind=kind, message=diagnostic.message))
        if self.conflicts:
            return None
        accepted = self._accepted(catalog, merged, names)
        return None if self.conflicts else MergedSchema(accepted, text)

    def _sides(self, type_id: int) -> list[AcceptedType | None]:
        """Return a type of the base, of the source and of the target."""
        schemas = (*self.bases, self.source, self.target)
        *bases, source, target = (schema.by_id(TypeId(type_id)) for schema in schemas)
        return [next((type_ for type_ in bases if type_ is not None), None), source, target]

    def _incarnation(self, type_id: int) -> IncarnationId | None:
        """Return the incarnation of a type by then: that of the side which changed its key."""
        sides = self._sides(type_id)
        incarnations = (None if side is None else side.incarnation for side in sides)
        chosen: IncarnationId | None = _three_way(*incarnations)[1]
        existing = (side.incarnation for side in reversed(sides) if side is not None)
        return next(existing, None) if chosen is None else chosen

    def keeps_incarnations(self, schema: AcceptedSchema) -> bool:
        """Return whether all types of a side have the incarnation they have after the merge."""
        return all(type_.incarnation == self._incarnation(type_.id) for type_ in schema.types)

    def _property_names(self, type_id: int, parts: SchemaParts) -> dict[int, str]:
        """Return the properties a type has by then, those of its interfaces included."""
        names = {key[1]: value[NAME] for key, value in parts.items() if key[0] == PROPERTY}
        sides = [
            {} if side is None else {id_: name for name, id_ in side.property_ids.items()}
            for side in self._sides(type_id)
        ]
        for id_ in dict.fromkeys([*sides[2], *sides[1]]):
            name = _three_way(*(side.get(id_) for side in sides))[1]
            if name is not None and self._is_injected(type_id, id_):
                names[id_] = name
        return names

    def _is_injected(self, type_id: int, property_id: int) -> bool:
        """Return whether a property stands on its type only because of interfaces."""
        return all(
            not property_.declared_directly
            for side in self._sides(type_id)
            if side is not None
            for name, property_ in side.definition.properties.items()
            if side.property_ids[name] == property_id
        )

    def _check_names(self, merged: SchemaParts, names: Mapping[int, Mapping[int, str]]) -> None:
        """Report names that mean two different things."""
        taken = Counter((parts[KIND], parts[NAME]) for parts in merged.values())
        advice = "rename or drop it on one of them first"
        for (kind, name), number in taken.items():
            if number > 1:
                self._conflict(name, f"both sides added a {kind} of this name; {advice}")
        for id_, properties in names.items():
            for name, number in Counter(properties.values()).items():
                if number > 1:
                    owner = merged[id_][NAME]
                    self._conflict(owner, f"both sides added a property {name}; {advice}")

    def _accepted(
        self, catalog: Catalog, merged: SchemaParts, names: Mapping[int, Mapping[int, str]]
    ) -> AcceptedSchema:
        """Give everything the identity it has on the side it comes from."""
        ids = {(parts[KIND], parts[NAME]): id_ for id_, parts in merged.items()}
        types = []
        for definition in catalog.definitions():
            type_id = ids[definition_kind(definition), definition.name]
            home = next(s for s in reversed(self._sides(type_id)) if s is not None)
            by_name = {name: id_ for id_, name in names[type_id].items()}
            if self._reshaped_by_interface(definition, home):
                message = "it implements an interface the other side changed; add it after a merge"
                self._conflict(definition.name, message)
                continue
            ordered = sorted(definition.properties)
            property_ids: dict[str, Any] = {name: by_name[name] for name in ordered}
            types.append(
                AcceptedType(
                    id=home.id,
                    incarnation=self._incarnation(type_id),
                    definition=definition,
                    property_ids=property_ids,
                )
            )
        return AcceptedSchema(self.target.domain, () if self.conflicts else tuple(types))

    def _reshaped_by_interface(self, definition: Definition, home: AcceptedType) -> bool:
        """Return whether a type one side added would not fit the entities it has there."""
        if sum(side is not None for side in self._sides(home.id)) > 1:
            return False
        here, there = (
            {name: property_.type for name, property_ in one.properties.items()}
            for one in (definition, home.definition)
        )
        return here != there


def _describe_drop(what: str, part: tuple[Any, ...]) -> str:
    """Return what was dropped: a type or property, or something it had."""
    if not part or part[0] in (NAME, TYPE):
        return what
    return f"@{part[0][1]}" if part[0][0] in (ANNOTATION, CONSTRAINT) else str(part[0])


def _describe_change(base: Any, source: Any, target: Any) -> str:  # noqa: ANN401 - parts of any kind
    """Return what the side that kept something did to it."""
    kept = target if source is None else source
    is_named = isinstance(kept, dict) and isinstance(base, dict) and NAME in kept
    if is_named and base[NAME] != kept[NAME]:
        return f"renamed it to {kept[NAME]}"
    return "changed it"
