"""What comments are about: types and properties by identity, so that they survive renames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog import AcceptedSchema, AcceptedType, TypeKind
from omnigraph.changes.model import ENTITY_KINDS
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.commit.snapshot import apply_scope
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang import did_you_mean
from omnigraph.policy import TypeScope
from omnigraph.review.model import CommentAnchor

MAX_ID = 4_096
"""Characters of an entity's ID in a comment."""


@dataclass(frozen=True, slots=True)
class AnchorView:
    """The schemas of a proposal's branches, each as it is and as an actor sees it.

    A type is visible if every branch that has it shows it: a comment on an entity is about both.
    """

    schemas: Sequence[tuple[AcceptedSchema, AcceptedSchema]]
    is_everything: bool

    @classmethod
    def of(cls, manifest: Manifest, snapshots: Sequence[tuple[Snapshot, TypeScope]]) -> AnchorView:
        """Return the schemas of some states; the first has the names that are shown."""
        return cls(
            [(s.schema, apply_scope(manifest, s, scope).schema) for s, scope in snapshots],
            bool(snapshots) and all(scope.is_everything for _, scope in snapshots),
        )

    def shows(self, payload: Mapping[str, Any]) -> bool:
        """Return whether an event may be seen: it is about no hidden type or property."""
        on = payload.get("on")
        return on is None or self.is_everything or self._is_visible(lambda s: _entity_of(s, on))

    def shows_type(self, table_key: str) -> bool:
        """Return whether a type, given as `node:T` or `edge:E`, may be seen."""
        kind, _, name = table_key.partition(":")
        return self.is_everything or self._is_visible(lambda s: s.find(TypeKind(kind), name))

    def shows_whole_type(self, table_key: str) -> bool:
        """Return whether a type may be seen with all its properties."""
        kind, _, name = table_key.partition(":")
        pairs = (
            (w.find(TypeKind(kind), name), s.find(TypeKind(kind), name)) for w, s in self.schemas
        )
        return self.shows_type(table_key) and all(
            whole is None or (shown is not None and whole.property_ids == shown.property_ids)
            for whole, shown in pairs
        )

    def _is_visible(self, find: Callable[[AcceptedSchema], object | None]) -> bool:
        """Return whether all states that have something show it, and at least one has it."""
        there = [shown for whole, shown in self.schemas if find(whole) is not None]
        return bool(there) and all(find(shown) is not None for shown in there)

    @property
    def shown(self) -> Sequence[AcceptedSchema]:
        """What the actor sees."""
        return [shown for _, shown in self.schemas]

    def decode(self, on: Mapping[str, Any] | None) -> CommentAnchor | None:
        """Return what a comment is about, by the names of today."""
        if on is None:
            return None
        type_ = _by_id(self.shown, on)
        name = None if type_ is None or "property" not in on else _property(type_, on)
        gone = type_ is None or ("property" in on and name is None)
        return CommentAnchor(
            kind=on["kind"],
            type=on["type"] if type_ is None else type_.name,
            id=on.get("id"),
            property=name or on.get("property"),
            outdated=gone,
        )


def encode_anchor(view: AnchorView, on: object) -> dict[str, Any]:
    """Return the stored form of `(type, id, property)`, or of an object with these members."""
    type_name, id_, name, kind = _members(on)
    kind, type_name = (type_name.split(":", 1)) if ":" in type_name else (kind, type_name)
    found = _by_name(view, type_name, kind)
    if found is None:
        types = (t for s in view.shown for k in ENTITY_KINDS for t in s.of_kind(k))
        names = {t.name for t in types if view.shows_type(t.entity)}
        hint = did_you_mean(type_name, sorted(names))
        message = f"unknown type '{type_name[:80]}'" + (f": {hint}" if hint else "")
        raise NotFound(message, code="unknown_type", type=type_name[:80])
    anchor: dict[str, Any] = {
        "kind": str(found.kind),
        "type": found.name,
        "type_id": f"{found.id:016x}",
    }
    if id_ is not None:
        anchor["id"] = id_
    if name is not None:
        property_id = found.property_ids.get(name)
        anchor |= {"property": name, "property_id": f"{property_id or 0:016x}"}
        if property_id is None or not view.shows({"on": anchor}):
            message = f"{found.name} has no property `{name[:80]}`"
            raise InvalidInput(message, code="unknown_property", property=name[:80])
    return anchor


def _members(on: object) -> tuple[str, str | None, str | None, str | None]:
    """Return the type, the ID, the property and the kind that a caller gives."""
    names = ("type", "id", "property", "kind")
    if isinstance(on, str):
        on = (on,)
    if isinstance(on, Mapping):
        given = dict(on)
    elif isinstance(on, list | tuple) and 1 <= len(on) <= 3:
        given = dict(zip(names, on, strict=False))
    else:
        given = {"": None}
    texts = [given.get(name) for name in names]
    is_valid = set(given) <= {*names, "outdated"} and isinstance(texts[0], str)
    if not is_valid or not all(
        t is None or (isinstance(t, str) and len(t) <= MAX_ID) for t in texts
    ):
        message = (
            "a comment is about `(type, id, property)`, of which id and property may be absent"
        )
        raise InvalidInput(message, code="proposal_invalid", problems=[message])
    return str(texts[0]), texts[1], texts[2], texts[3]


def _by_name(view: AnchorView, name: str, kind: str | None) -> AcceptedType | None:
    kinds = [k for k in ENTITY_KINDS if kind in (None, str(k))]
    types = (schema.find(k, name) for schema in view.shown for k in kinds)
    return next((t for t in types if t is not None and view.shows_type(t.entity)), None)


def _entity_of(schema: AcceptedSchema, on: Mapping[str, Any]) -> object | None:
    """Return the type, or the property, that a comment is about."""
    type_ = _by_id([schema], on)
    return type_ if type_ is None or "property" not in on else _property(type_, on)


def _by_id(schemas: Sequence[AcceptedSchema], on: Mapping[str, Any]) -> AcceptedType | None:
    wanted = int(on["type_id"], 16)
    found = (t for s in schemas for k in ENTITY_KINDS for t in s.of_kind(k) if t.id == wanted)
    return next(found, None)


def _property(type_: AcceptedType, on: Mapping[str, Any]) -> str | None:
    wanted = int(on["property_id"], 16)
    return next((name for name, id_ in type_.property_ids.items() if id_ == wanted), None)
