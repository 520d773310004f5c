"""What data frames of a graph should hold, told by its export."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame

import omnigraph.graph as og
from omnigraph.commit.snapshot import SnapshotRef


def exported(graph: og.Graph, type_name: str, at: SnapshotRef | None = None) -> dict[str, Any]:
    """Return the entities of a type by id, as export tells them."""
    found = {}
    for record in map(json.loads, graph.export(at, types=[type_name])):
        ends = {end: record[end] for end in ("from", "to") if end in record}
        found[record["data"]["id"]] = {**ends, **record["data"]}
    return found


def told(frame: DataFrame) -> dict[str, Any]:
    """Return the rows of a data frame by id, as export would tell them; an id comes once."""
    rows = [{k: _told(v) for k, v in row.items()} for row in frame.toArrow().to_pylist()]
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows), "an id came twice"
    return found


def _told(value: Any) -> Any:
    match value:
        case list():
            return [_told(item) for item in value]
        case Decimal():
            return int(value)
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case _:
            return value
