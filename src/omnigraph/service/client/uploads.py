"""Convert the input of a load to the lines that a server takes.

Tables become lines here; the server validates the values.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from omnigraph.catalog import Catalog
from omnigraph.catalog.model import resolve_endpoint_columns
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang import did_you_mean
from omnigraph.types import Scalar
from omnigraph.types.temporal import to_milliseconds
from omnigraph.write.inputs.byte_streams import UnreadableInput, open_source, source_name
from omnigraph.write.inputs.sources import check_source
from omnigraph.write.inputs.table_reader import InputTable, memory_table, open_table, table_files
from omnigraph.write.progress import ProgressMeter
from omnigraph.write.violations import (
    InputLocation,
    ValidationFailed,
    Violation,
    ViolationRule,
    violation_sort_key,
)

_FIRST = re.compile(r"(?<=\(first at )line (\d+)(?=\)$)")
"""How a message says where an entity was given before."""
_TIMESTAMP = pa.timestamp("ms", "UTC")
_TIMESTAMP_CASTS = {pa.date64(): _TIMESTAMP, pa.list_(pa.date64()): pa.list_(_TIMESTAMP)}
_ENDPOINT_NAMES = {"src": "from", "dst": "to"}


@dataclass(frozen=True, slots=True)
class UploadChunk:
    """Lines of one source, and the word for its lines in messages."""

    name: str
    unit: str
    content: bytes
    lines: int


@dataclass(frozen=True, slots=True)
class Upload:
    """The lines to send, in chunks by source."""

    pieces: tuple[UploadChunk, ...]

    @property
    def content(self) -> bytes:
        """All lines."""
        return b"".join(piece.content for piece in self.pieces)

    def placed(self, error: ValidationFailed) -> ValidationFailed:
        """Return the violations that a server reports by line, with the positions in the input."""
        violations = sorted(map(self._moved, error.violations), key=violation_sort_key)
        totals = Counter({ViolationRule(rule): number for rule, number in error.totals.items()})
        return type(error)(violations, totals)

    def _moved(self, violation: Violation) -> Violation:
        message = _FIRST.sub(lambda match: str(self._place(int(match[1]))), violation.message)
        place = violation.source
        if place is not None and place.number is not None:
            place = self._place(place.number)
        return replace(violation, message=message, source=place)

    def _place(self, line: int) -> InputLocation:
        number = line
        for piece in self.pieces:
            if number <= piece.lines:
                return InputLocation(piece.name, number, piece.unit)
            number -= piece.lines
        return InputLocation("", line)


def to_upload(
    data: Any,  # noqa: ANN401 - any input of a load
    catalog: Catalog,
    encoding: str | None = None,
) -> Upload:
    """Return lines of JSON for whatever a load takes; `encoding` is that of files with lines."""
    if isinstance(data, Mapping):
        return Upload(
            tuple(p for key, rows in data.items() for p in _typed_chunks(key, rows, catalog))
        )
    sources = data if isinstance(data, list | tuple) else [data]
    return Upload(tuple(_read_chunk(source, encoding) for source in sources))


def _read_chunk(source: Any, encoding: str | None) -> UploadChunk:  # noqa: ANN401 - a path, a file or bytes
    check_source(source)
    with open_source(source, ProgressMeter(), encoding) as stream:
        content = stream.read()
    if not content.endswith(b"\n"):
        content += b"\n"
    return UploadChunk(source_name(source), "line", content, content.count(b"\n"))


def _typed_chunks(key: str, rows: Any, catalog: Catalog) -> Iterator[UploadChunk]:  # noqa: ANN401
    kind, name = _type(key, catalog)
    properties = (catalog.nodes if kind == "node" else catalog.edges)[name].properties
    moments = frozenset(p.name for p in properties.values() if p.type.scalar is Scalar.DATE_TIME)
    for place, records in _tables(name, rows, moments):
        lines = [_line(kind, name, row, properties) for row in records]
        yield UploadChunk(place, "row", b"".join(lines), len(lines))


def _line(kind: str, name: str, row: Mapping[str, Any], properties: Collection[str]) -> bytes:
    values = {column: plain_value(value) for column, value in row.items()}
    line: dict[str, Any] = {"type": name, "data": values}
    if kind == "edge":
        meant = resolve_endpoint_columns(values, properties)
        ends = {_ENDPOINT_NAMES[meant[c]]: values.pop(c) for c in list(values) if c in meant}
        line = {"edge": name, **ends, "data": values}
    try:
        return json.dumps(line, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # the server reports where it is
        return json.dumps(line).encode() + b"\n"


def _type(key: str, catalog: Catalog) -> tuple[str, str]:
    """Return the kind and name of the type a key means, as an embedded load understands it."""
    word, colon, rest = key.partition(":")
    name = rest if colon else key
    edge = catalog.edge(name)
    types = [("node", name)] if name in catalog.nodes else []
    types += [] if edge is None else [("edge", edge.name)]
    if colon:
        types = [type_ for type_ in types if type_[0] == word]
    if len(types) > 1:
        message = f"`{key}` is a node type and an edge type; write `node:{key}` or `edge:{key}`"
        raise InvalidInput(message, code="type_ambiguous", type=key)
    if not types:
        hint = did_you_mean(name, [*catalog.nodes, *catalog.edges])
        message = f"unknown type `{key}`" + (f"; {hint}" if hint else "")
        raise NotFound(message, code="unknown_type", type=key)
    return types[0]


def _tables(
    name: str,
    data: Any,  # noqa: ANN401 - any input of a load
    moments: Collection[str],
) -> Iterator[tuple[str, Iterable[Mapping[str, Any]]]]:
    """Yield rows with the name of their source: a file, or the type they were passed for."""
    if isinstance(data, str | os.PathLike):
        for file in table_files(data):
            try:
                with open_table(file, ProgressMeter()) as table:
                    yield str(file), _cells(table, str(file), moments)
            except UnreadableInput as error:
                raise InvalidInput(f"{file}: {error}", code="input_unreadable") from error
        return
    if isinstance(data, list | tuple) and data and isinstance(data[0], str | os.PathLike):
        for path in data:
            yield from _tables(name, path, moments)
        return
    table_ = memory_table(data)
    if table_ is not None:
        yield name, _cells(table_, name, moments)
    elif isinstance(data, Iterable) and not isinstance(data, Mapping | bytes):
        yield name, data
    else:
        message = f"cannot load {type(data).__name__} as {name}; give a table, rows or a path"
        raise InvalidInput(message, code="input_unknown", type=name)


def _cells(table: InputTable, name: str, moments: Collection[str]) -> Iterator[Mapping[str, Any]]:
    if table.text:
        message = f"{name}: a server takes no CSV; read it into a table with types first"
        raise InvalidInput(message, code="remote_unsupported")
    for batch in table.batches:
        yield from _cast_timestamps(batch, moments).to_pylist()


def _cast_timestamps(batch: pa.RecordBatch, moments: Collection[str]) -> pa.RecordBatch:
    """Return a batch whose `date64` columns of instants keep the time of day when they are read."""
    for place, field in enumerate(batch.schema):
        type_ = _TIMESTAMP_CASTS.get(field.type) if field.name in moments else None
        if type_ is not None:
            batch = batch.set_column(place, field.name, batch.column(place).cast(type_))
    return batch


def plain_value(value: Any) -> Any:  # noqa: ANN401 - any value of a table or a parameter
    """Return a value as JSON has it."""
    match value:
        case bytes():
            return f"base64:{b64encode(value).decode()}"
        case datetime():
            return to_milliseconds(value).isoformat(timespec="milliseconds")
        case date():
            return value.isoformat()
        case list() | tuple():
            return [plain_value(item) for item in value]
        case _ if hasattr(value, "tolist"):
            return value.tolist()
        case _:
            return value
