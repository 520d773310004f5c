"""Write the rows of a query as a table, JSON, CSV, Arrow or Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import IO, Any

from omnigraph.query.result import Result, ResultStream

RESULT_FORMATS = ("table", "json", "jsonl", "csv", "kv", "arrow", "parquet")
MAX_WIDTH = 80
_LEAST_WIDTH = 8


@dataclass(frozen=True, slots=True)
class TableStyle:
    """The maximum width of table cells, and whether longer ones are truncated or wrapped."""

    width: int = MAX_WIDTH
    wraps: bool = False


def write_result(
    result: ResultStream | Result,
    target: Mapping[str, str | None],
    format_: str,
    file: IO[bytes],
    style: TableStyle | None = None,
) -> None:
    """Write a result to a file in one of the formats, streaming where the format allows."""
    if format_ in ("arrow", "parquet"):
        result.write(file, format_)
        return
    if format_ in _LINES:
        for line in _LINES[format_](result, target):
            file.write(line.encode())
        return
    facts = {
        "query_name": result.name,
        "target": dict(target),
        "row_count": len(result),
        "columns": result.columns,
        "rows": list(result),
        "graph_commit_id": result.graph_commit_id,
    }
    if format_ == "table":
        file.write(_table(facts, style or TableStyle()).encode())
        return
    file.write(_TEXTS[format_](facts).encode())


def _json(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"


def _jsonl(result: ResultStream | Result, target: Mapping[str, str | None]) -> Iterator[str]:
    about = {"query_name": result.name, "target": dict(target), "row_count": len(result)}
    yield _compact({"kind": "metadata", **about}) + "\n"
    for row in result:
        yield _compact(row) + "\n"


def _csv(result: ResultStream | Result, _: Mapping[str, str | None]) -> Iterator[str]:
    columns = result.columns
    yield _csv_line(columns)
    for row in result:
        yield _csv_line([_cell(row.get(name)) for name in columns])


def _csv_line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _table(facts: Mapping[str, Any], style: TableStyle) -> str:
    columns: Sequence[str] = facts["columns"]
    if not columns:
        return f"{_head(facts)}\n(no rows)\n"
    cells = [
        [_cell(row.get(name)).replace("\n", "\\n") for name in columns] for row in facts["rows"]
    ]
    most = max(style.width, _LEAST_WIDTH)
    widths = [
        min(most, max(len(name), *(len(row[i]) for row in cells), 0))
        for i, name in enumerate(columns)
    ]
    lines = [_head(facts), _line(columns, widths), "-+-".join("-" * width for width in widths)]
    for row in cells:
        parts = _wrapped(row, widths) if style.wraps else [row]
        lines += [_line(part, widths) for part in parts]
    return "\n".join(lines) + "\n"


def _wrapped(row: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """Return the lines of a row with wrapped cells."""
    pieces = [
        [cell[at : at + width] for at in range(0, len(cell), width)] or [""]
        for cell, width in zip(row, widths, strict=True)
    ]
    return [list(line) for line in zip_longest(*pieces, fillvalue="")]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    shown = (_cut(cell, width).ljust(width) for cell, width in zip(cells, widths, strict=True))
    return " | ".join(shown).rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _kv(facts: Mapping[str, Any]) -> str:
    blocks = [
        "\n".join([f"row {number}", *(f"{name}: {_cell(row[name])}" for name in row)])
        for number, row in enumerate(facts["rows"], 1)
    ]
    return "\n\n".join([_head(facts), *(blocks or ["(no rows)"])]) + "\n"


def _head(facts: Mapping[str, Any]) -> str:
    target = facts["target"]
    where = f"snapshot {target['snapshot']}" if target["snapshot"] else f"branch {target['branch']}"
    return f"{facts['row_count']} rows from {where} via {facts['query_name']}"


def _cell(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return value if isinstance(value, str) else _compact(value)


def _compact(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_LINES = {"jsonl": _jsonl, "csv": _csv}
_TEXTS = {"json": _json, "kv": _kv}
