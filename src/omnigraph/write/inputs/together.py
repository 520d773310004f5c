"""This module parses many lines at once: those that begin alike name the same type.

What it takes, the grammar would take too, with equal values. Whatever might be wrong is left to the
grammar, line by line, which also says what it is:

- A line begins with `{` and ends with `}`, so no value goes over several lines, and as many values
  as lines means one each.
- Arrow refuses members it does not expect and members that are given twice.
- Null and missing look the same to it, so lines are left alone where that makes a difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from omnigraph.catalog import TypeKind
from omnigraph.types import PropertyType, Scalar
from omnigraph.write.inputs.grammar import STRUCTURAL_SLOTS
from omnigraph.write.inputs.lines import Lines
from omnigraph.write.intake import Intake, Raw
from omnigraph.write.shape import Shape

MAX_BEGINNINGS = 64
"""How many different beginnings of lines are looked for in a block."""

MIN_GROUP = 256
"""A group that cannot be taken whole is halved until it is this small."""

_PARSE_BYTES = 1024 * 1024
_BEGINNING = re.compile(rb'\{[ \t]*"(type|edge)"[ \t]*:[ \t]*"([^"\\\x00-\x1f]*)"')
_PARSED: Mapping[Scalar, pa.DataType] = MappingProxyType(
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

Numbers: TypeAlias = npt.NDArray[np.int64]


class Together:
    """Parses what it can of blocks of lines."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._shapes: dict[tuple[bytes, bytes], Shape | None] = {}
        self._schemas: dict[str, pa.Schema] = {}

    def read(self, lines: Lines) -> tuple[list[tuple[Shape, Raw]], Numbers]:
        """Return rows by type, and the lines that were not taken."""
        is_left = np.ones(len(lines), np.bool_)
        found: list[tuple[Shape, Raw]] = []
        texts = pa.Array.from_buffers(
            pa.string(), len(lines), [None, pa.py_buffer(lines.starts), pa.py_buffer(lines.data)]
        )
        if _is_utf8(texts):
            for shape, indices in self._groups(lines, texts):
                for raw in self._parse(lines, texts, shape, indices):
                    found.append((shape, raw))
                    is_left[np.asarray(raw.at) - lines.first] = False
        return found, np.flatnonzero(is_left)

    # --- groups --------------------------------------------------------------------------------

    def _groups(self, lines: Lines, texts: pa.Array) -> Iterator[tuple[Shape, Numbers]]:
        """Yield the lines that begin alike, of each type."""
        waiting = _may_be_taken(lines)
        for _ in range(MAX_BEGINNINGS):
            first = int(np.argmax(waiting))
            if not waiting[first]:
                return
            match = _BEGINNING.match(lines.data, lines.starts[first])
            if match is None:
                waiting[first] = False
                continue
            alike = np.asarray(pc.starts_with(texts, match.group())) & waiting
            waiting &= ~alike
            shape = self._shape(*match.groups())
            if shape is not None:
                yield shape, np.flatnonzero(alike)

    def _shape(self, word: bytes, name: bytes) -> Shape | None:
        if (word, name) not in self._shapes:
            catalog = self._intake.schema.catalog
            text = name.decode()
            edge = catalog.edge(text) if word == b"edge" else None
            shape = None
            if edge is not None:
                shape = self._intake.shape(TypeKind.EDGE, edge.name)
            elif word == b"type" and text in catalog.nodes:
                shape = self._intake.shape(TypeKind.NODE, text)
            self._shapes[word, name] = shape
        return self._shapes[word, name]

    # --- parsing -------------------------------------------------------------------------------

    def _parse(
        self, lines: Lines, texts: pa.Array, shape: Shape, indices: Numbers
    ) -> Iterator[Raw]:
        """Yield rows of lines of one type; those that are not sure are left out."""
        is_whole = len(indices) == len(lines)
        picked = texts if is_whole else texts.take(pa.array(indices))
        table = self._table(picked, shape)
        if table is not None:
            doubtful = _doubtful(table, picked) if lines.says_null else None
            if doubtful is not None:
                table, indices = table.filter(pc.invert(doubtful)), indices[~np.asarray(doubtful)]
            yield from _raws(table, lines.first + indices)
        elif len(indices) > MIN_GROUP:
            middle = len(indices) // 2
            yield from self._parse(lines, texts, shape, indices[:middle])
            yield from self._parse(lines, texts, shape, indices[middle:])

    def _table(self, picked: pa.Array, shape: Shape) -> pa.Table | None:
        options = pa_json.ParseOptions(
            explicit_schema=self._schema(shape), unexpected_field_behavior="error"
        )
        try:
            table = pa_json.read_json(
                pa.BufferReader(_bytes(picked)),
                pa_json.ReadOptions(block_size=_PARSE_BYTES),
                options,
            )
        except pa.ArrowException:
            return None
        is_sure = table.num_rows == len(picked) and _has_ends(table) and _is_finite(table)
        return table if is_sure else None

    def _schema(self, shape: Shape) -> pa.Schema:
        if shape.table_key not in self._schemas:
            properties = [(p.name, _parsed(p.type)) for p in shape.properties.values()]
            data = ("data", pa.struct([("id", pa.string()), *properties]))
            words = ["edge", "from", "to"] if shape.kind is TypeKind.EDGE else ["type"]
            members = [*((word, pa.string()) for word in words), data]
            self._schemas[shape.table_key] = pa.schema(members)
        return self._schemas[shape.table_key]


def _parsed(type_: PropertyType) -> pa.DataType:
    scalar = _PARSED.get(type_.scalar, pa.string())
    return pa.list_(scalar) if type_.is_list else scalar


def _is_utf8(texts: pa.Array) -> bool:
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _may_be_taken(lines: Lines) -> npt.NDArray[np.bool_]:
    """Return which lines end with `}` and are not so long that they might be too complex."""
    data, ends = np.frombuffer(lines.data, np.uint8), lines.starts[1:].astype(np.int64)
    lengths = np.diff(lines.starts)
    last = data[ends - 2]
    closes = last == ord("}")
    carriage = (last == ord("\r")) & (lengths > 2)
    closes[carriage] = data[ends[carriage] - 3] == ord("}")
    taken: npt.NDArray[np.bool_] = closes & (lengths > 2) & (lengths <= STRUCTURAL_SLOTS)
    return taken


def _bytes(picked: pa.Array) -> pa.Buffer:
    """Return the bytes of consecutive texts as they lie in memory."""
    _, offsets, data = picked.buffers()
    bounds = np.frombuffer(offsets, np.int32)
    first, last = bounds[picked.offset], bounds[picked.offset + len(picked)]
    return data.slice(int(first), int(last - first))


def _has_ends(table: pa.Table) -> bool:
    return all(table[word].null_count == 0 for word in ("from", "to") if word in table.schema.names)


def _is_finite(table: pa.Table) -> bool:
    """Tell whether there is no NaN and no infinity, which Arrow takes for numbers."""
    return all(_all_finite(column) for chunk in table["data"].chunks for column in chunk.flatten())


def _all_finite(column: pa.Array) -> bool:
    if pa.types.is_list(column.type):
        return _all_finite(column.flatten())
    if not pa.types.is_floating(column.type):
        return True
    return pc.all(pc.is_finite(column)).as_py() is not False


def _doubtful(table: pa.Table, picked: pa.Array) -> pa.Array | None:
    """Return which lines may say null where that is wrong, or None when none does."""
    data = table["data"]
    ids = pa.chunked_array([chunk.flatten()[0] for chunk in data.chunks], pa.string())
    if not ids.null_count:
        return None
    nulls = pc.and_(ids.is_null(), pc.match_substring(picked, "null"))
    named = pc.or_(pc.match_substring(picked, '"id"'), pc.match_substring(picked, "\\"))
    doubtful = pc.and_(nulls, pc.or_(data.is_null(), named))
    return doubtful.combine_chunks() if pc.any(doubtful).as_py() else None


def _raws(table: pa.Table, at: Numbers) -> Iterator[Raw]:
    start = 0
    for batch in table.to_batches():
        data = batch["data"]
        names = [field.name for field in data.type]
        columns: dict[str, Any] = dict(zip(names, data.flatten(), strict=True))
        if "from" in batch.schema.names:
            columns |= {"src": batch["from"], "dst": batch["to"]}
        stop = start + batch.num_rows
        yield Raw(columns, pa.array(at[start:stop], pa.int64()))
        start = stop
