"""Compare data frames of a graph with its export."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame

import omnigraph.graph as og
from omnigraph.commit.snapshot import SnapshotRef


def exported(graph: og.Graph, type_name: str, at: SnapshotRef | None = None) -> dict[str, Any]:
    """Return the entities of a type by id, as exported."""
    found = {}
    for record in map(json.loads, graph.export(at, types=[type_name])):
        ends = {end: record[end] for end in ("from", "to") if end in record}
        found[record["data"]["id"]] = {**ends, **record["data"]}
    return found


def rows_by_id(frame: DataFrame) -> dict[str, Any]:
    """Return the rows of a data frame by id, as exported; every id is unique."""
    rows = [{k: _exported_value(v) for k, v in row.items()} for row in frame.toArrow().to_pylist()]
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows), "an id is not unique"
    return found


def _exported_value(value: Any) -> Any:
    match value:
        case list():
            return [_exported_value(item) for item in value]
        case Decimal():
            return int(value)
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case _:
            return value
