"""Write rejected rows as lines of a graph batch, which can be mended and loaded again."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from omnigraph.catalog import TypeKind
from omnigraph.dataset_view import blob_properties
from omnigraph.write.change_set import RowSchema
from omnigraph.write.coercion import parse_text_value


def to_record(shape: RowSchema, cells: Mapping[str, Any], *, text: bool = False) -> dict[str, Any]:
    """Return a row as the line of a graph batch has it.

    `text` says that cells are text; those that are not a valid value of their property stay text.
    """
    data = {}
    for name, cell in cells.items():
        property_ = shape.properties.get(name)
        is_key = name == "id" and shape.key
        if cell is None or is_key or (property_ is None and name != "id"):
            continue
        value = cell
        if text and property_ is not None and isinstance(cell, str):
            try:
                value = parse_text_value(property_.type, cell)
            except ValueError:
                value = cell
        data[name] = to_json_value(value)
    if shape.kind is TypeKind.NODE:
        return {"type": shape.name, "data": data}
    ends = {"from": to_json_value(cells.get("src")), "to": to_json_value(cells.get("dst"))}
    return {"edge": shape.name, **ends, "data": data}


def readable_columns(shape: RowSchema) -> list[str]:
    """Return the columns of a staged row that a record has; blobs are kept elsewhere."""
    blobs = blob_properties(shape.type)
    return [name for name in shape.schema.names if name not in blobs]


def records_by_position(shape: RowSchema, rows: pa.Table, at: Any) -> dict[int, dict[str, Any]]:  # noqa: ANN401
    """Return rows as records by their positions; `at` gives one for each row."""
    readable = rows.select([name for name in readable_columns(shape) if name in rows.column_names])
    return {
        position: to_record(shape, row)
        for position, row in zip(at, readable.to_pylist(), strict=True)
    }


def cell_value(cells: Any, row: int) -> Any:  # noqa: ANN401 - a column of any kind, and its value
    """Return one cell; text that is not UTF-8 shows its bytes as `\\xNN`.

    An instant that no calendar of Python holds is its text.
    """
    if not isinstance(cells, pa.Array):
        return cells[row]
    try:
        return cells[row].as_py()
    except UnicodeDecodeError:
        return cells.view(pa.binary())[row].as_py().decode("utf-8", "backslashreplace")
    except (ValueError, OverflowError, pa.ArrowException):
        return " ".join(cells.slice(row, 1).to_string(indent=0).split())[1:-1].strip()


_MAX_LEVELS = 100
"""How deeply a value may be nested that is written as it is; no valid one is nested so deeply."""


def to_json_value(value: Any, levels: int = _MAX_LEVELS) -> Any:  # noqa: ANN401 - any value
    """Return a value as JSON has it; numbers that JSON does not know become text.

    What is nested more deeply than `levels` becomes `…`.
    """
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case bytes():
            return f"base64:{b64encode(value).decode()}"
        case datetime():
            moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return moment.isoformat(timespec="milliseconds") + "Z"
        case date():
            return value.isoformat()
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case list() | tuple() | dict() if not levels:
            return "…"
        case list() | tuple():
            return [to_json_value(item, levels - 1) for item in value]
        case dict():
            return {str(name): to_json_value(item, levels - 1) for name, item in value.items()}
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def to_json_line(document: Mapping[str, Any]) -> bytes:
    """Return a document as one line of valid JSON."""
    values = to_json_value(dict(document))
    try:
        return json.dumps(values, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(values, allow_nan=False).encode() + b"\n"
