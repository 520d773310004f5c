"""This module reads graph batches: lines of JSON, each a node or an edge.

Whole groups of lines that begin alike are parsed at once; lines that cannot be taken so go through
the grammar one by one, which alone says what is wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import IO, Any

import pyarrow as pa

from omnigraph.catalog import TypeKind
from omnigraph.write.ahead import ahead
from omnigraph.write.inputs.grammar import (
    LineProblem,
    Record,
    check_member,
    read_line,
    too_long,
)
from omnigraph.write.inputs.lines import Lines, TooLong, blocks
from omnigraph.write.inputs.streams import Broken, ByteSource, chunks, opened, source_name
from omnigraph.write.inputs.together import Together
from omnigraph.write.intake import Intake, Raw
from omnigraph.write.progress import Meter
from omnigraph.write.shape import Shape
from omnigraph.write.violations import Rule


def read_ndjson(
    source: ByteSource, intake: Intake, meter: Meter, *, fast: bool = True, before: int = 0
) -> None:
    """Read a graph batch; `fast` may be turned off to compare.

    `before` is how many lines of the same file are read by others.
    """
    # Only the grammar can tell what is not given from what is null.
    together = Together(intake) if fast and not intake.partial else None
    base = intake.open_file(source_name(source), "line") + before
    try:
        with (
            opened(source, meter, intake.encoding) as stream,
            closing(ahead(_parts(stream, base, together))) as parts,
        ):
            for part in parts:
                if isinstance(part, TooLong):
                    intake.problem(Rule.LINE_BYTES, too_long(), base + part.line)
                else:
                    before = intake.rows
                    _take(part, intake)
                    meter.took(intake.rows - before)
    except Broken as error:
        intake.file_problem(Rule.SYNTAX, str(error))


@dataclass(frozen=True, slots=True)
class _Part:
    """A block of lines: what was parsed together, and the lines that are left."""

    lines: Lines
    found: list[tuple[Shape, Raw]]
    left: Iterable[int]


def _parts(stream: IO[bytes], base: int, together: Together | None) -> Iterator[_Part | TooLong]:
    for block in blocks(chunks(stream)):
        if isinstance(block, TooLong):
            yield block
            continue
        lines = Lines.of(block, base)
        if together is None:
            yield _Part(lines, [], range(len(lines)))
        else:
            yield _Part(lines, *together.read(lines))


def _take(part: _Part, intake: Intake) -> None:
    """Take one block in, type by type."""
    singly = _Singly(intake)
    singly.read(part.lines, part.left)
    raws: dict[str, list[Raw]] = defaultdict(list)
    shapes = {}
    for shape, raw in [*part.found, *singly.raws()]:
        shapes[shape.table_key] = shape
        raws[shape.table_key].append(raw)
    for key, shape in shapes.items():
        intake.add(shape, raws[key])


# --- one by one --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Cells:
    """The rows of one type, as lists of values."""

    shape: Shape
    at: list[int] = field(default_factory=list)
    columns: dict[str, list[Any]] = field(default_factory=dict)
    given: list[frozenset[str]] = field(default_factory=list)


class _Singly:
    """Reads lines one by one."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._cells: dict[tuple[TypeKind, str], _Cells] = {}

    def read(self, lines: Lines, indices: Iterable[int]) -> None:
        """Read some lines; blank ones are skipped."""
        catalog = self._intake.schema.catalog
        for index in indices:
            line = lines[index]
            if not line.strip(b" \t\r\n\v\f"):
                continue
            at = lines.first + index
            try:
                record = read_line(line, catalog)
            except LineProblem as problem:
                text = line.decode("utf-8", "backslashreplace").rstrip("\r\n")
                facts = {**problem.facts, "record": text}
                self._intake.problem(problem.rule, problem.message, at, **facts)
            else:
                self._add(record, at)

    def _add(self, record: Record, at: int) -> None:
        cells = self._of(record)
        shape, data = cells.shape, record.data
        for name in data:
            if name not in cells.columns or name in ("src", "dst"):
                message = f"{shape.name}: {check_member(name, shape.kind)}"
                facts = {"property": name[:80], "record": _line(record)}
                self._intake.problem(Rule.UNKNOWN_PROPERTY, message, at, shape, **facts)
        if "id" in data and data["id"] is None:
            message = f"id of {shape.name}: expected string, got null"
            self._intake.problem(Rule.ID, message, at, shape, record=_line(record))
            return
        cells.at.append(at)
        for name, column in cells.columns.items():
            column.append(data.get(name))
        if shape.kind is TypeKind.EDGE:
            cells.columns["src"][-1] = record.src
            cells.columns["dst"][-1] = record.dst
        if self._intake.partial:
            cells.given.append(frozenset(data))

    def _of(self, record: Record) -> _Cells:
        key = (record.kind, record.name)
        if key not in self._cells:
            shape = self._intake.shape(*key)
            columns: dict[str, list[Any]] = {name: [] for name in shape.schema.names}
            self._cells[key] = _Cells(shape, columns=columns)
        return self._cells[key]

    def raws(self) -> list[tuple[Shape, Raw]]:
        """Return what was read, by type."""
        return [
            (c.shape, Raw(c.columns, pa.array(c.at, pa.int64()), given=c.given))
            for c in self._cells.values()
        ]


def _line(record: Record) -> dict[str, Any]:
    """Return an entity as its line gave it."""
    if record.kind is TypeKind.NODE:
        return {"type": record.name, "data": record.data}
    return {"edge": record.name, "from": record.src, "to": record.dst, "data": record.data}
