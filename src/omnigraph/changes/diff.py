"""List the differences between two states of a graph, entity by entity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.catalog import AcceptedType, TypeKind
from omnigraph.changes.model import Change, ChangeFilter, ChangeOp, EntityImage
from omnigraph.changes.type_delta import TypeDelta, compare_type
from omnigraph.changes.version_history import VersionHistory
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Snapshot
from omnigraph.dataset_view import DatasetView
from omnigraph.types.arrow import to_json


def diff(
    manifest: Manifest, old: Snapshot, new: Snapshot, scope: ChangeFilter | None = None
) -> Iterator[Change]:
    """Yield what happened to each entity between two states: nodes before edges, by type and id.

    A renamed type is the same type; one that was dropped and added again is another. What a schema
    change does to entities, such as adding a property, does not count as a change of them.
    """
    scope, steps = scope or ChangeFilter(), VersionHistory(manifest, (old, new))
    for one, other in pair_types(manifest, old, new):
        if any(scope.covers(side.type.kind, side.type.name) for side in (one, other) if side):
            for delta in compare_type(one, other, steps):
                yield from (c for c in delta_changes(delta, one, other) if scope.wants(c.op))


def pair_types(
    manifest: Manifest, old: Snapshot, new: Snapshot
) -> list[tuple[DatasetView | None, DatasetView | None]]:
    """Return the types of two states side by side, by identity.

    A type that only one of the states shows, though both have it, is left out: its entities are
    hidden, not deleted.
    """
    before, after = _types_by_identity(manifest, old), _types_by_identity(manifest, new)
    hidden = _hidden_types(old) | _hidden_types(new)
    keys = [key for key in dict.fromkeys([*before, *after]) if key not in hidden]
    return sorted(((before.get(key), after.get(key)) for key in keys), key=_type_order)


def _types_by_identity(manifest: Manifest, snapshot: Snapshot) -> dict[Any, DatasetView]:
    types = snapshot.types()
    return {(t.id, t.incarnation): DatasetView.of(manifest, snapshot, t) for t in types}


def _hidden_types(snapshot: Snapshot) -> set[Any]:
    """Return the identities of the types that a state has, and does not show."""
    if snapshot.whole is None:
        return set()
    types = (((t.id, t.incarnation) for t in s.types()) for s in (snapshot.whole, snapshot))
    whole, shown = map(set, types)
    return whole - shown


def _type_order(pair: tuple[DatasetView | None, DatasetView | None]) -> tuple[bool, str, bool]:
    side = pair[1] or pair[0]
    assert side is not None, "a pair has at least one side"
    return side.type.kind is TypeKind.EDGE, side.type.name, pair[1] is not None


def delta_changes(
    delta: TypeDelta, old: DatasetView | None, new: DatasetView | None
) -> Iterator[Change]:
    """Yield the changes of some entities in the order of their ids."""
    before = {} if old is None else dict(entity_images(delta.before, old.type))
    after = {} if new is None else dict(entity_images(delta.after, new.type))
    side = new or old
    assert side is not None, "a change has a type"
    type_ = side.type
    for id_ in sorted({*before, *after}, key=str.encode):
        one, other = before.get(id_), after.get(id_)
        op = (
            ChangeOp.INSERT
            if one is None
            else ChangeOp.DELETE
            if other is None
            else ChangeOp.UPDATE
        )
        yield Change(kind=type_.kind, type=type_.name, id=id_, op=op, before=one, after=other)


def entity_images(rows: pa.Table, type_: AcceptedType) -> Iterator[tuple[str, EntityImage]]:
    """Yield entities by id, with JSON values."""
    properties = type_.definition.properties
    columns = [to_json(rows[name], p.type) for name, p in properties.items()]
    values: Iterable[Sequence[Any]] = zip(*columns, strict=True) if columns else [()] * len(rows)
    ends: Iterable[tuple[str, str] | None] = [None] * rows.num_rows
    if type_.kind is TypeKind.EDGE:
        ends = zip(rows["src"].to_pylist(), rows["dst"].to_pylist(), strict=True)
    for id_, end, row in zip(rows["id"].to_pylist(), ends, values, strict=True):
        yield id_, EntityImage(dict(zip(properties, row, strict=True)), end)


# ----------------------------------------------------------------------
# Totals of changes, and the wire form of a difference.


@dataclass(slots=True)
class ChangeTotals:
    """How many entities of each type were inserted, updated and deleted."""

    types: dict[tuple[TypeKind, str], Counter[ChangeOp]] = field(default_factory=dict)

    def counting(self, changes: Iterable[Change]) -> Iterator[Change]:
        """Yield changes and count them."""
        for change in changes:
            self.types.setdefault((change.kind, change.type), Counter())[change.op] += 1
            yield change

    def total(self, op: ChangeOp) -> int:
        """Return how many changes of one sort there were."""
        return sum(counts[op] for counts in self.types.values())

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "inserts": self.total(ChangeOp.INSERT),
            "updates": self.total(ChangeOp.UPDATE),
            "deletes": self.total(ChangeOp.DELETE),
            "types_affected": sorted({name for _, name in self.types}),
        }


def comparison_json(old: Snapshot, new: Snapshot) -> dict[str, Any]:
    """Return the wire form of what was compared."""
    return {
        "from_graph_commit_id": old.commit_id,
        "to_graph_commit_id": new.commit_id,
        "from_graph_manifest_version": old.manifest_version,
        "to_graph_manifest_version": new.manifest_version,
        "graph_branch": None if new.branch == MAIN else new.branch,
    }


def change_json(change: Change, old: Snapshot, new: Snapshot) -> dict[str, Any]:
    """Return the wire form of a change between two states."""
    key = f"{change.kind}:{change.type}"
    entry = new.entries().get(key)
    if change.after is None or entry is None:
        before = old.entries().get(key)
        # Another type may have the name of one that is gone.
        if before is not None and all(before.key != e.key for e in new.entries().values()):
            entry = before
    assert entry is not None, "one of the states has the type of a change"
    version = entry.version
    image = change.after or change.before
    assert image is not None, "a change has at least one image"
    ends = {}
    if image.endpoints is not None:
        ends = {"endpoints": dict(zip(("src", "dst"), image.endpoints, strict=True))}
    return {
        "kind": str(change.kind),
        "type_name": change.type,
        "id": change.id,
        "op": str(change.op),
        "published_dataset_version": version,
        **ends,
        **change.images_json(),
    }
