"""This module prints the rows of a query in the formats people and programs want."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import IO, Any

from omnigraph.query.result import Result

FORMATS = ("table", "json", "jsonl", "csv", "kv", "arrow", "parquet")
MAX_WIDTH = 80


def write_result(
    result: Result, target: Mapping[str, str | None], format_: str, file: IO[bytes]
) -> None:
    """Write a result to a file in one of the formats."""
    if format_ in ("arrow", "parquet"):
        result.write(file, format_)
        return
    facts = {**result.to_json(), "target": dict(target)}
    file.write(_TEXTS[format_](facts).encode())


def _json(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"


def _jsonl(facts: Mapping[str, Any]) -> str:
    names = ("query_name", "target", "row_count")
    head = {"kind": "metadata", **{name: facts[name] for name in names}}
    return "".join(_compact(record) + "\n" for record in (head, *facts["rows"]))


def _csv(facts: Mapping[str, Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(facts["columns"])
    writer.writerows([_cell(value) for value in row.values()] for row in facts["rows"])
    return text.getvalue()


def _table(facts: Mapping[str, Any]) -> str:
    columns: Sequence[str] = facts["columns"]
    cells = [[_cell(value).replace("\n", "\\n") for value in row.values()] for row in facts["rows"]]
    widths = [
        min(MAX_WIDTH, max(len(name), *(len(row[i]) for row in cells), 0))
        for i, name in enumerate(columns)
    ]
    lines = [_head(facts), _line(columns, widths), "-+-".join("-" * width for width in widths)]
    lines += [_line(row, widths) for row in cells]
    return "\n".join(lines) + "\n"


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


_TEXTS = {"json": _json, "jsonl": _jsonl, "csv": _csv, "table": _table, "kv": _kv}
