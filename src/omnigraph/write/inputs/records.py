"""This module reads rows that are given as dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa

from omnigraph.catalog import TypeKind
from omnigraph.catalog.ends import ends_meant
from omnigraph.types import json_kind
from omnigraph.write.inputs.grammar import check_member
from omnigraph.write.intake import Intake, Raw
from omnigraph.write.progress import Meter
from omnigraph.write.shape import Shape
from omnigraph.write.violations import Rule

SLICE_ROWS = 16_384
"""Rows that are taken in at a time."""


def read_records(
    rows: Iterable[Any], name: str, shape: Shape, intake: Intake, meter: Meter
) -> None:
    """Read dictionaries: properties by name, `id`, and the ends of an edge."""
    base = intake.open_file(name, "row")
    intake.touch(shape)
    reading = enumerate(rows, start=base + 1)
    while part := list(islice(reading, SLICE_ROWS)):
        read = [(at, row) for at, raw in part if (row := _row(raw, at, shape, intake)) is not None]
        columns = {name: [row.get(name) for _, row in read] for name in shape.schema.names}
        at = pa.array([at for at, _ in read], pa.int64())
        given = [frozenset(row) for _, row in read]
        intake.add(shape, [Raw(columns, at, given=given)])
        meter.took(len(part))


def _row(raw: Any, at: int, shape: Shape, intake: Intake) -> Mapping[str, Any] | None:  # noqa: ANN401
    """Return a row by the names of a change; report what it should not have."""
    if not isinstance(raw, Mapping):
        message = f"{shape.name}: expected a dictionary, got {json_kind(raw)}"
        intake.problem(Rule.SYNTAX, message, at, shape)
        return None
    ends = ends_meant(raw, shape.properties) if shape.kind is TypeKind.EDGE else {}
    row = {ends.get(name, str(name)): value for name, value in raw.items()}
    for name in row:
        if name not in shape.schema.names:
            message = f"{shape.name}: {check_member(name, TypeKind.NODE)}"
            intake.problem(Rule.UNKNOWN_PROPERTY, message, at, shape, property=name[:80])
    return row
