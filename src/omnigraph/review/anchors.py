"""What comments are about: types and properties by identity, so that they survive renames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """The schemas of a proposal's branches, as they are and as an actor sees them."""

    whole: Sequence[AcceptedSchema]
    shown: Sequence[AcceptedSchema]
    is_everything: bool

    @classmethod
    def of(cls, manifest: Manifest, snapshots: Sequence[tuple[Snapshot, TypeScope]]) -> AnchorView:
        """Return the schemas of some states; the first has the names that are shown."""
        return cls(
            [snapshot.schema for snapshot, _ in snapshots],
            [apply_scope(manifest, snapshot, scope).schema for snapshot, scope in snapshots],
            bool(snapshots) and all(scope.is_everything for _, scope in snapshots),
        )

    def shows(self, payload: Mapping[str, Any]) -> bool:
        """Return whether an event may be seen: it is about no hidden type or property."""
        on = payload.get("on")
        if on is None or self.is_everything:
            return True
        type_ = _by_id(self.shown, on)
        return type_ is not None and ("property" not in on or _property(type_, on) is not None)

    def shows_type(self, table_key: str) -> bool:
        """Return whether a type, given as `node:T` or `edge:E`, may be seen."""
        kind, _, name = table_key.partition(":")
        return self.is_everything or any(s.find(TypeKind(kind), name) for s in self.shown)

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
    found = _by_name(view.shown, type_name, kind)
    if found is None:
        names = {t.name for s in view.shown for k in ENTITY_KINDS for t in s.of_kind(k)}
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
        if name not in found.property_ids:
            message = f"{found.name} has no property `{name[:80]}`"
            raise InvalidInput(message, code="unknown_property", property=name[:80])
        anchor |= {"property": name, "property_id": f"{found.property_ids[name]:016x}"}
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


def _by_name(schemas: Sequence[AcceptedSchema], name: str, kind: str | None) -> AcceptedType | None:
    kinds = [k for k in ENTITY_KINDS if kind in (None, str(k))]
    found = (schema.find(k, name) for schema in schemas for k in kinds)
    return next((type_ for type_ in found if type_ is not None), None)


def _by_id(schemas: Sequence[AcceptedSchema], on: Mapping[str, Any]) -> AcceptedType | None:
    wanted = int(on["type_id"], 16)
    found = (t for s in schemas for k in ENTITY_KINDS for t in s.of_kind(k) if t.id == wanted)
    return next(found, None)


def _property(type_: AcceptedType, on: Mapping[str, Any]) -> str | None:
    wanted = int(on["property_id"], 16)
    return next((name for name, id_ in type_.property_ids.items() if id_ == wanted), None)
