"""The difference of two states in its plainest form: dictionaries beside each other."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from omnigraph.catalog import Catalog, TypeKind
from omnigraph.changes import Change, ChangeOp, EntityImage
from tests.support.changes import State

_ENDS = ("src", "dst")


def difference(catalog: Catalog, old: State, new: State) -> list[dict[str, Any]]:
    """Return what became of each entity as JSON: nodes before edges, by type, then by id."""
    found: list[dict[str, Any]] = []
    for kind, names in ((TypeKind.NODE, catalog.nodes), (TypeKind.EDGE, catalog.edges)):
        for name in sorted(names):
            one, other = old[name], new[name]
            for id_ in sorted({*one, *other}, key=str.encode):
                before, after = one.get(id_), other.get(id_)
                if exactly(before) != exactly(after):
                    found.append(_change(kind, name, id_, before, after).to_json())
    return found


def _change(kind: TypeKind, name: str, id_: str, before: Any, after: Any) -> Change:
    op = (
        ChangeOp.INSERT if before is None else ChangeOp.DELETE if after is None else ChangeOp.UPDATE
    )
    images = {"before": _image(before), "after": _image(after)}
    return Change(kind=kind, type=name, id=id_, op=op, **images)


def _image(row: dict[str, Any] | None) -> EntityImage | None:
    if row is None:
        return None
    ends = (row["src"], row["dst"]) if "src" in row else None
    return EntityImage({name: value for name, value in row.items() if name not in _ENDS}, ends)


def exactly(value: Any) -> str:
    """Return text that is the same for the same values only: zeros have signs."""
    return json.dumps(value, sort_keys=True)


def apply(state: State, changes: Iterable[Change]) -> None:
    """Do what changes tell, each against exactly what it says was there."""
    for change in changes:
        rows = state.setdefault(change.type, {})
        expected = None if change.before is None else row_of(change.before)
        assert exactly(rows.get(change.id)) == exactly(expected), change
        if change.after is None:
            del rows[change.id]
        else:
            rows[change.id] = row_of(change.after)


def row_of(image: EntityImage) -> dict[str, Any]:
    """Return an entity as a state holds it."""
    return {**dict(zip(_ENDS, image.endpoints or (), strict=False)), **image.properties}


def read_lines(lines: Iterable[str], catalog: Catalog) -> State:
    """Return the state that exported lines tell."""
    state: State = {name: {} for name in (*catalog.nodes, *catalog.edges)}
    for record in map(json.loads, lines):
        row = record["data"]
        id_ = row.pop("id")
        if "edge" in record:
            row = {"src": record["from"], "dst": record["to"], **row}
        state[record["edge"] if "edge" in record else record["type"]][id_] = row
    return state
