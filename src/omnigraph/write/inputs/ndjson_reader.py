"""Read graph batches: lines of JSON, each a node or an edge.

Whole groups of lines that begin alike are parsed at once; lines that cannot be taken so go through
the grammar one by one, which alone says what is wrong.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from types import MappingProxyType
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from omnigraph.catalog import TypeKind
from omnigraph.types import PropertyType, Scalar
from omnigraph.write.change_set import RowSchema
from omnigraph.write.inputs.byte_streams import (
    ByteSource,
    UnreadableInput,
    open_source,
    prefetch,
    read_chunks,
    source_name,
)
from omnigraph.write.inputs.line_parser import (
    MAX_STRUCTURAL_CHARS,
    EntityRecord,
    InvalidLine,
    LineIndex,
    OversizedLine,
    find_type_name,
    line_too_long_message,
    read_line,
    read_line_blocks,
    unknown_member_message,
)
from omnigraph.write.progress import ProgressMeter
from omnigraph.write.row_builder import InputRows, RowBuilder
from omnigraph.write.violations import ViolationRule

# ----------------------------------------------------------------------
# Vectorised parsing of many lines that begin alike, and so name the same type.
#
# What it takes, the grammar would take too, with equal values. Whatever might be wrong is left to
# the grammar, line by line, which also says what it is:
#
# - A line begins with `{` and ends with `}`, so no value goes over several lines, and as many
#   values as lines means one each.
# - Arrow refuses members it does not expect and members that are given twice.
# - Null and missing look the same to it, so lines are left alone where that makes a difference.
# - It reads `-0` as a negative zero where a float is expected, so these lines are left alone, too.


MAX_LINE_PREFIXES = 64
"""How many different beginnings of lines are looked for in a block."""

MIN_GROUP_LINES = 256
"""A group that cannot be taken whole is halved until it is this small."""

_PARSE_BYTES = 1024 * 1024
_LINE_PREFIX = re.compile(rb'\{[ \t]*"(type|edge)"[ \t]*:[ \t]*"([^"\\\x00-\x1f]*)"')
_PARSE_TYPES: Mapping[Scalar, pa.DataType] = MappingProxyType(
    {
        Scalar.BOOL: pa.bool_(),
        Scalar.I32: pa.int64(),
        Scalar.I64: pa.int64(),
        Scalar.U32: pa.int64(),
        Scalar.U64: pa.uint64(),
        Scalar.F32: pa.float64(),
        Scalar.F64: pa.float64(),
        Scalar.VECTOR: pa.list_(pa.float64()),
    }
)
"""What values are parsed as; all others are text."""

LineNumbers: TypeAlias = npt.NDArray[np.int64]


class BatchLineParser:
    """Parses what it can of blocks of lines."""

    def __init__(self, builder: RowBuilder) -> None:
        self._intake = builder
        self._shapes: dict[tuple[bytes, bytes], RowSchema | None] = {}
        self._schemas: dict[str, pa.Schema] = {}

    def read(self, lines: LineIndex) -> tuple[list[tuple[RowSchema, InputRows]], LineNumbers]:
        """Return rows by type, and the lines that were not taken."""
        is_left = np.ones(len(lines), np.bool_)
        parsed: list[tuple[RowSchema, InputRows]] = []
        texts = pa.Array.from_buffers(
            pa.string(), len(lines), [None, pa.py_buffer(lines.starts), pa.py_buffer(lines.data)]
        )
        if _is_utf8(texts):
            for shape, indices in self._groups(lines, texts):
                for raw in self._parse(lines, texts, shape, indices):
                    parsed.append((shape, raw))
                    is_left[np.asarray(raw.at) - lines.first] = False
        return parsed, np.flatnonzero(is_left)

    # --- groups --------------------------------------------------------------------------------

    def _groups(self, lines: LineIndex, texts: pa.Array) -> Iterator[tuple[RowSchema, LineNumbers]]:
        """Yield the lines that begin alike, of each type."""
        waiting = _batch_candidates(lines)
        for _ in range(MAX_LINE_PREFIXES):
            first = int(np.argmax(waiting))
            if not waiting[first]:
                return
            match = _LINE_PREFIX.match(lines.data, lines.starts[first])
            if match is None:
                waiting[first] = False
                continue
            alike = np.asarray(pc.starts_with(texts, match.group())) & waiting
            waiting &= ~alike
            shape = self._shape(*match.groups())
            if shape is not None:
                yield shape, np.flatnonzero(alike)

    def _shape(self, word: bytes, name: bytes) -> RowSchema | None:
        if (word, name) not in self._shapes:
            kind = TypeKind.EDGE if word == b"edge" else TypeKind.NODE
            declared = find_type_name(self._intake.schema.catalog, kind, name.decode())
            shape = None if declared is None else self._intake.shape(kind, declared)
            self._shapes[word, name] = shape
        return self._shapes[word, name]

    # --- parsing -------------------------------------------------------------------------------

    def _parse(
        self, lines: LineIndex, texts: pa.Array, shape: RowSchema, indices: LineNumbers
    ) -> Iterator[InputRows]:
        """Yield rows of lines of one type; those that are not sure are left out."""
        is_whole = len(indices) == len(lines)
        picked = texts if is_whole else texts.take(pa.array(indices))
        table = self._table(picked, shape)
        if table is not None:
            doubtful = _negative_zeros(table)
            nulls = _ambiguous_nulls(table, picked) if lines.says_null else None
            if nulls is not None:
                doubtful |= np.asarray(nulls)
            if doubtful.any():
                table, indices = table.filter(pa.array(~doubtful)), indices[~doubtful]
            yield from _to_input_rows(table, lines.first + indices)
        elif len(indices) > MIN_GROUP_LINES:
            middle = len(indices) // 2
            yield from self._parse(lines, texts, shape, indices[:middle])
            yield from self._parse(lines, texts, shape, indices[middle:])

    def _table(self, picked: pa.Array, shape: RowSchema) -> pa.Table | None:
        options = pa_json.ParseOptions(
            explicit_schema=self._schema(shape), unexpected_field_behavior="error"
        )
        try:
            table = pa_json.read_json(
                pa.BufferReader(_text_bytes(picked)),
                pa_json.ReadOptions(block_size=_PARSE_BYTES),
                options,
            )
        except pa.ArrowException:
            return None
        is_sure = table.num_rows == len(picked) and _has_ends(table) and _is_finite(table)
        return table if is_sure else None

    def _schema(self, shape: RowSchema) -> pa.Schema:
        if shape.table_key not in self._schemas:
            properties = [(p.name, _parse_type(p.type)) for p in shape.properties.values()]
            data = ("data", pa.struct([("id", pa.string()), *properties]))
            words = ["edge", "from", "to"] if shape.kind is TypeKind.EDGE else ["type"]
            members = [*((word, pa.string()) for word in words), data]
            self._schemas[shape.table_key] = pa.schema(members)
        return self._schemas[shape.table_key]


def _parse_type(type_: PropertyType) -> pa.DataType:
    scalar = _PARSE_TYPES.get(type_.scalar, pa.string())
    return pa.list_(scalar) if type_.is_list else scalar


def _is_utf8(texts: pa.Array) -> bool:
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _batch_candidates(lines: LineIndex) -> npt.NDArray[np.bool_]:
    """Return which lines end with `}` and are not so long that they might be too complex."""
    data, ends = np.frombuffer(lines.data, np.uint8), lines.starts[1:].astype(np.int64)
    lengths = np.diff(lines.starts)
    last = data[ends - 2]
    closes = last == ord("}")
    carriage = (last == ord("\r")) & (lengths > 2)
    closes[carriage] = data[ends[carriage] - 3] == ord("}")
    taken: npt.NDArray[np.bool_] = closes & (lengths > 2) & (lengths <= MAX_STRUCTURAL_CHARS)
    return taken


def _text_bytes(picked: pa.Array) -> pa.Buffer:
    """Return the bytes of consecutive texts as they lie in memory."""
    _, offsets, data = picked.buffers()
    bounds = np.frombuffer(offsets, np.int32)
    first, last = bounds[picked.offset], bounds[picked.offset + len(picked)]
    return data.slice(int(first), int(last - first))


def _has_ends(table: pa.Table) -> bool:
    return all(table[word].null_count == 0 for word in ("from", "to") if word in table.schema.names)


def _is_finite(table: pa.Table) -> bool:
    """Return whether there is no NaN and no infinity, which Arrow takes for numbers."""
    return all(_all_finite(column) for chunk in table["data"].chunks for column in chunk.flatten())


def _all_finite(column: pa.Array) -> bool:
    if pa.types.is_list(column.type):
        return _all_finite(column.flatten())
    if not pa.types.is_floating(column.type):
        return True
    return pc.all(pc.is_finite(column)).as_py() is not False


def _negative_zeros(table: pa.Table) -> npt.NDArray[np.bool_]:
    """Return which lines have a negative zero: `-0` is an integer, `-0.0` is none."""
    parts = [np.zeros(0, np.bool_)]
    for chunk in table["data"].chunks:
        mask = np.zeros(len(chunk), np.bool_)
        for column in chunk.flatten():
            is_list = pa.types.is_list(column.type)
            items = column.flatten() if is_list else column
            if pa.types.is_floating(items.type):
                values = items.to_numpy(zero_copy_only=False)
                zeros = np.flatnonzero((values == 0) & np.signbit(values))
                mask[np.asarray(pc.list_parent_indices(column))[zeros] if is_list else zeros] = True
        parts.append(mask)
    return np.concatenate(parts)


def _ambiguous_nulls(table: pa.Table, picked: pa.Array) -> pa.Array | None:
    """Return which lines may say null where that is wrong, or None when none does."""
    data = table["data"]
    ids = pa.chunked_array([chunk.flatten()[0] for chunk in data.chunks], pa.string())
    if not ids.null_count:
        return None
    nulls = pc.and_(ids.is_null(), pc.match_substring(picked, "null"))
    named = pc.or_(pc.match_substring(picked, '"id"'), pc.match_substring(picked, "\\"))
    doubtful = pc.and_(nulls, pc.or_(data.is_null(), named))
    return doubtful.combine_chunks() if pc.any(doubtful).as_py() else None


def _to_input_rows(table: pa.Table, at: LineNumbers) -> Iterator[InputRows]:
    start = 0
    for batch in table.to_batches():
        data = batch["data"]
        names = [field.name for field in data.type]
        columns: dict[str, Any] = dict(zip(names, data.flatten(), strict=True))
        if "from" in batch.schema.names:
            columns |= {"src": batch["from"], "dst": batch["to"]}
        stop = start + batch.num_rows
        yield InputRows(columns, pa.array(at[start:stop], pa.int64()))
        start = stop


def read_ndjson(
    source: ByteSource,
    builder: RowBuilder,
    meter: ProgressMeter,
    *,
    fast: bool = True,
    before: int = 0,
) -> None:
    """Read a graph batch; `fast` may be turned off to compare.

    `before` is how many lines of the same file are read by others.
    """
    # Only the line parser distinguishes a missing value from null.
    together = BatchLineParser(builder) if fast and not builder.partial else None
    base = builder.open_file(source_name(source), "line") + before
    try:
        with (
            open_source(source, meter, builder.encoding) as stream,
            closing(prefetch(_parse_blocks(stream, base, together))) as parts,
        ):
            for part in parts:
                if isinstance(part, OversizedLine):
                    builder.problem(
                        ViolationRule.LINE_BYTES, line_too_long_message(), base + part.line
                    )
                else:
                    before = builder.rows
                    _add_block(part, builder)
                    meter.add_rows(builder.rows - before)
    except UnreadableInput as error:
        builder.report_file_error(ViolationRule.SYNTAX, str(error))


@dataclass(frozen=True, slots=True)
class _ParsedBlock:
    """A block of lines: what was parsed together, and the lines that are left."""

    lines: LineIndex
    found: list[tuple[RowSchema, InputRows]]
    left: Iterable[int]


def _parse_blocks(
    stream: IO[bytes], base: int, together: BatchLineParser | None
) -> Iterator[_ParsedBlock | OversizedLine]:
    for block in read_line_blocks(read_chunks(stream)):
        if isinstance(block, OversizedLine):
            yield block
            continue
        lines = LineIndex.of(block, base)
        if together is None:
            yield _ParsedBlock(lines, [], range(len(lines)))
        else:
            yield _ParsedBlock(lines, *together.read(lines))


def _add_block(part: _ParsedBlock, builder: RowBuilder) -> None:
    """Take one block in, type by type."""
    raws: dict[str, list[InputRows]] = defaultdict(list)
    shapes = {}
    for shape, raw in [*part.found, *_read_lines(part.lines, part.left, builder)]:
        shapes[shape.table_key] = shape
        raws[shape.table_key].append(raw)
    for key, shape in shapes.items():
        builder.add(shape, raws[key])


# --- one by one --------------------------------------------------------------------------------


def _read_lines(
    lines: LineIndex, indices: Iterable[int], builder: RowBuilder
) -> list[tuple[RowSchema, InputRows]]:
    """Read lines one by one, and return their rows by type; blank lines are skipped."""
    rows: dict[tuple[TypeKind, str], list[tuple[int, Mapping[str, Any]]]] = defaultdict(list)
    for index in indices:
        line, at = lines[index], lines.first + index
        if not line.strip(b" \t\r\n\v\f"):
            continue
        try:
            record = read_line(line, builder.schema.catalog)
        except InvalidLine as problem:
            text = line.decode("utf-8", "backslashreplace").rstrip("\r\n")
            facts = {**problem.facts, "record": text}
            builder.problem(problem.rule, problem.message, at, **facts)
            continue
        records = rows[record.kind, record.name]
        if _check_members(record, at, builder):
            ends = {"src": record.src, "dst": record.dst} if record.kind is TypeKind.EDGE else {}
            records.append((at, {**record.data, **ends}))
    typed = [(builder.shape(*key), records) for key, records in rows.items()]
    return [(shape, InputRows.from_records(shape, records)) for shape, records in typed]


def _check_members(record: EntityRecord, at: int, builder: RowBuilder) -> bool:
    """Report members that a type does not have; return whether the row can be built."""
    shape, data = builder.shape(record.kind, record.name), record.data
    for name in data:
        if name not in shape.schema.names or name in ("src", "dst"):
            message = f"{shape.name}: {unknown_member_message(name, shape.kind)}"
            facts = {"property": name[:80], "record": _as_record(record)}
            builder.problem(ViolationRule.UNKNOWN_PROPERTY, message, at, shape, **facts)
    if "id" in data and data["id"] is None:
        message = f"id of {shape.name}: expected string, got null"
        builder.problem(ViolationRule.ID, message, at, shape, record=_as_record(record))
        return False
    return True


def _as_record(record: EntityRecord) -> dict[str, Any]:
    """Return an entity as its line gave it."""
    if record.kind is TypeKind.NODE:
        return {"type": record.name, "data": record.data}
    return {"edge": record.name, "from": record.src, "to": record.dst, "data": record.data}
