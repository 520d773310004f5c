"""This module lists what differs between two states of a graph, entity by entity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from omnigraph.catalog import AcceptedType, TypeKind
from omnigraph.changes.delta import Delta, Side, compare_type
from omnigraph.changes.model import Change, Image, Op, Scope
from omnigraph.changes.steps import Steps
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.types.column import to_json

_KINDS = (TypeKind.NODE, TypeKind.EDGE)


def diff(
    manifest: Manifest, old: Snapshot, new: Snapshot, scope: Scope | None = None
) -> Iterator[Change]:
    """Yield what happened to each entity between two states: nodes before edges, by type and id.

    A renamed type is the same type; one that was dropped and added again is another. What a schema
    change does to entities by itself, such as giving them a property, is no change of them.
    """
    scope, steps = scope or Scope(), Steps(manifest, (old, new))
    for one, other in paired(old, new):
        if any(scope.covers(side.type.kind, side.type.name) for side in (one, other) if side):
            for delta in compare_type(manifest, one, other, steps):
                yield from (c for c in changes_of(delta, one, other) if scope.wants(c.op))


def paired(old: Snapshot, new: Snapshot) -> list[tuple[Side | None, Side | None]]:
    """Return the types of two states side by side, by identity."""
    before, after = _sides(old), _sides(new)
    pairs = [(before.get(key), after.get(key)) for key in dict.fromkeys([*before, *after])]
    return sorted(pairs, key=_order)


def _sides(snapshot: Snapshot) -> dict[Any, Side]:
    types = (type_ for kind in _KINDS for type_ in snapshot.schema.of_kind(kind))
    return {(type_.id, type_.incarnation): Side.of(snapshot, type_) for type_ in types}


def _order(pair: tuple[Side | None, Side | None]) -> tuple[bool, str, bool]:
    side = pair[1] or pair[0]
    assert side is not None, "a pair has at least one side"
    return side.type.kind is TypeKind.EDGE, side.type.name, pair[1] is not None


def changes_of(delta: Delta, old: Side | None, new: Side | None) -> Iterator[Change]:
    """Yield the changes of some entities in the order of their ids."""
    before = {} if old is None else dict(images(delta.before, old.type))
    after = {} if new is None else dict(images(delta.after, new.type))
    side = new or old
    assert side is not None, "a change has a type"
    type_ = side.type
    for id_ in sorted({*before, *after}, key=str.encode):
        one, other = before.get(id_), after.get(id_)
        op = Op.INSERT if one is None else Op.DELETE if other is None else Op.UPDATE
        yield Change(kind=type_.kind, type=type_.name, id=id_, op=op, before=one, after=other)


def images(rows: pa.Table, type_: AcceptedType) -> Iterator[tuple[str, Image]]:
    """Yield entities by id, with JSON values."""
    properties = type_.definition.properties
    columns = [to_json(rows[name], p.type) for name, p in properties.items()]
    values: Iterable[Sequence[Any]] = zip(*columns, strict=True) if columns else [()] * len(rows)
    ends: Iterable[tuple[str, str] | None] = [None] * rows.num_rows
    if type_.kind is TypeKind.EDGE:
        ends = zip(rows["src"].to_pylist(), rows["dst"].to_pylist(), strict=True)
    for id_, end, row in zip(rows["id"].to_pylist(), ends, values, strict=True):
        yield id_, Image(dict(zip(properties, row, strict=True)), end)
