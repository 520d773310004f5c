"""What the tests of loading share: a schema with every type of value, and ways to look at rows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import omnigraph.graph as og
from omnigraph.catalog import (
    AcceptedSchema,
    SequentialAllocator,
    TypeKind,
    accept_schema,
    load_catalog,
)
from omnigraph.types.arrow import to_json
from omnigraph.write.change_set import INPUT_POSITION, find_row_schema
from omnigraph.write.inputs.ndjson_reader import read_ndjson
from omnigraph.write.progress import ProgressMeter
from omnigraph.write.row_builder import RowBuilder
from omnigraph.write.spilling import SpillManager

SCHEMA = """
node Thing {
    slug: String @key
    title: String?
    flag: Bool?
    small: I32?
    large: I64?
    count: U32?
    huge: U64?
    single: F32?
    double: F64?
    day: Date?
    moment: DateTime?
    tags: [String]?
    sizes: [I64]?
    days: [Date]?
    spot: Vector(2)?
    file: Blob?
}
node Note { text: String }
edge Near: Thing -> Thing {
    since: Date?
    weight: F32?
}
edge About: Note -> Thing
"""

_FRESH = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


def accepted() -> AcceptedSchema:
    """Return the schema with identities, without a graph."""
    return accept_schema(load_catalog(SCHEMA), allocator=SequentialAllocator(), domain="0" * 26)


def ndjson(*lines: object) -> bytes:
    """Return lines of JSON; text stands as it is."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    return "\n".join(texts).encode()


def thing(slug: str = "a", **data: Any) -> dict[str, Any]:
    """Return the line of a thing."""
    return {"type": "Thing", "data": {"slug": slug, **data}}


def taken(text: bytes, *, fast: bool) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the rows that lines give by type, in order, and what is wrong, in order.

    Ids that were made up read `fresh`, because they differ each time.
    """
    with SpillManager() as spill:
        intake = RowBuilder(accepted(), spill)
        read_ndjson(text, intake, ProgressMeter(), fast=fast)
        changes = intake.finish(strict=False, replace=False)
        rows = {}
        for key, change in sorted(changes.types.items()):
            [batch] = change.batches
            properties = change.shape.properties
            names = change.shape.schema.names
            columns = [_cells(batch.rows[name], properties.get(name)) for name in names]
            columns[0] = [_FRESH.sub("fresh", id_) for id_ in columns[0]]
            places = batch.rows[INPUT_POSITION].to_pylist()
            rows[key] = [list(cells) for cells in zip(places, *columns, strict=True)]
        found = sorted(str(violation) for violation in changes.findings.listed)
    return {key: cells for key, cells in rows.items() if cells}, found


def _cells(column: Any, property_: Any) -> list[Any]:
    return list(column.to_pylist()) if property_ is None else to_json(column, property_.type)


def entity(graph: og.Graph, type_name: str, id_: str) -> dict[str, Any] | None:
    """Return one entity as it is stored."""
    return graph.entity_at(type_name, id_)


def all_rows(graph: og.Graph, table_key: str, at: str = "main") -> list[Mapping[str, Any]]:
    """Return all entities of a type as JSON values, by id."""
    snapshot = graph.snapshot(at)
    kind, _, name = table_key.partition(":")
    shape = find_row_schema(snapshot.schema, TypeKind(kind), name)
    with graph._manifest.reading(table_key, snapshot.entry(table_key)) as handle:
        rows = handle.to_table(blob_handling="all_binary").sort_by("id")
    columns = {name: _cells(rows[name], shape.properties.get(name)) for name in shape.schema.names}
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
