"""This module reads single entities as a snapshot shows them."""

from __future__ import annotations

from typing import Any

from omnigraph.catalog import AcceptedType, TypeKind
from omnigraph.catalog.model import DST, SRC
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang import did_you_mean
from omnigraph.storage.layout import physical_columns
from omnigraph.storage.read import EXTERNAL, find_row
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.column import to_values


def find_type(snapshot: Snapshot, name: str) -> AcceptedType:
    """Return a node or edge type by name; `node:T` and `edge:T` tell two of one name apart."""
    found = find_types(snapshot, name)
    if len(found) > 1:
        message = f"'{name}' is a node and an edge type: write `node:{name}` or `edge:{name}`"
        raise InvalidInput(message, code="ambiguous_type", type=name)
    return found[0]


def find_types(snapshot: Snapshot, name: str) -> list[AcceptedType]:
    """Return the node type, the edge type or both that a name means."""
    kind, colon, bare = name.partition(":")
    kinds = [TypeKind(kind)] if colon and kind in ("node", "edge") else list(_KINDS)
    wanted = bare if colon else name
    found = [t for k in kinds if (t := snapshot.schema.find(k, wanted)) is not None]
    if not found:
        known = {*snapshot.catalog.nodes, *snapshot.catalog.edges}
        hint = did_you_mean(wanted, known)
        message = f"unknown type '{name}'" + (f": {hint}" if hint else "")
        raise NotFound(message, code="unknown_type", type=name)
    return found


_KINDS = (TypeKind.NODE, TypeKind.EDGE)


def read_entity(
    manifest: Manifest, snapshot: Snapshot, type_name: str, id_: str
) -> dict[str, Any] | None:
    """Return one entity under logical names, or None; of a blob only where it is and its size."""
    type_ = find_type(snapshot, type_name)
    types = {p.name: p.type for p in type_.definition.properties.values()}
    ends = (SRC.name, DST.name) if type_.kind is TypeKind.EDGE else ()
    with manifest.reading(type_.entity, snapshot.entry(type_.entity)) as handle:
        columns = physical_columns(handle.schema)
        physical = {name: columns[type_.property_ids[name]] for name in types}
        found = find_row(handle, id_, ["id", *ends, *physical.values()])
    if not found.num_rows:
        return None
    entity = {name: found[name][0].as_py() for name in ("id", *ends)}
    for name, column in physical.items():
        [value] = to_values(found[column], types[name])
        entity[name] = _shown_blob(value, types[name])
    return entity


def _shown_blob(value: Any, type_: PropertyType) -> Any:  # noqa: ANN401 - a value of any type
    if type_.scalar is not Scalar.BLOB or value is None:
        return value
    if value["kind"] == EXTERNAL:
        return {"kind": "external", "uri": value["blob_uri"]}
    return {"kind": "managed", "size": value["size"]}
