"""Convert the input of a load to the lines that a server takes.

Tables become lines here; the server validates the values.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from math import isfinite
from typing import Any

from omnigraph.catalog import Catalog
from omnigraph.catalog.model import resolve_endpoint_columns
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang import did_you_mean
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.data_values import blob_text, to_python
from omnigraph.types.temporal import to_milliseconds
from omnigraph.write.coercion import column_cells, to_data_value
from omnigraph.write.inputs.byte_streams import UnreadableInput, open_source, source_name
from omnigraph.write.inputs.sources import check_source
from omnigraph.write.inputs.table_reader import (
    InputTable,
    checked_batches,
    memory_table,
    open_table,
    table_files,
)
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
_BOM = b"\xef\xbb\xbf"
_TEXT_TYPE = PropertyType(Scalar.STRING)
_ENDPOINT_NAMES = {"src": "from", "dst": "to"}


def unsupported_value(_: object) -> dict[str, Any]:
    """Return what is sent for a value that JSON does not have: an object, which nothing takes.

    So the server reports the value with its place, as an embedded graph does.
    """
    return {}


@dataclass(frozen=True, slots=True)
class UploadChunk:
    """Lines of one source, and the word for its lines in messages."""

    name: str
    unit: str
    content: bytes
    lines: int


@dataclass(frozen=True, slots=True)
class Upload:
    """The lines to send, in chunks by source; `empty` are the types given without a row."""

    pieces: tuple[UploadChunk, ...]
    empty: tuple[str, ...] = ()

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
        chunks = {key: tuple(_typed_chunks(key, rows, catalog)) for key, rows in data.items()}
        empty = tuple(key for key, parts in chunks.items() if not any(p.lines for p in parts))
        return Upload(tuple(part for parts in chunks.values() for part in parts), empty)
    sources = data if isinstance(data, list | tuple) else [data]
    return Upload(tuple(_read_chunk(source, encoding) for source in sources))


def _read_chunk(source: Any, encoding: str | None) -> UploadChunk:  # noqa: ANN401 - a path, a file or bytes
    check_source(source)
    with open_source(source, ProgressMeter(), encoding) as stream:
        content = stream.read().removeprefix(_BOM)
    if not content.endswith(b"\n"):
        content += b"\n"
    return UploadChunk(source_name(source), "line", content, content.count(b"\n"))


def _typed_chunks(key: str, rows: Any, catalog: Catalog) -> Iterator[UploadChunk]:  # noqa: ANN401
    kind, name = _type(key, catalog)
    properties = (catalog.nodes if kind == "node" else catalog.edges)[name].properties
    types = {property_.name: property_.type for property_ in properties.values()}
    for place, records in _tables(name, rows, types):
        try:
            lines = [_line(kind, name, row, types) for row in records]
        except UnreadableInput as error:
            raise InvalidInput(f"{place}: {error}", code="input_unreadable") from error
        yield UploadChunk(place, "row", b"".join(lines), len(lines))


def _line(kind: str, name: str, row: Mapping[str, Any], types: Mapping[str, PropertyType]) -> bytes:
    values = {
        str(column): _to_json(value, types.get(column, _TEXT_TYPE))
        for column, value in row.items()
        if not (column == "id" and value is None)
    }
    line: dict[str, Any] = {"type": name, "data": values}
    if kind == "edge":
        meant = resolve_endpoint_columns(values, types)
        ends: dict[str, Any] = {}
        for column in [column for column in values if column in meant]:
            word = _ENDPOINT_NAMES[meant[column]]
            if word not in ends:  # an end given again stays, and the server reports it
                ends[word] = values.pop(column)
        line = {"edge": name, **ends, "data": values}
    try:
        return _dumps(line, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # the server reports where it is
        return _dumps(line).encode() + b"\n"


_dumps = partial(json.dumps, default=unsupported_value, skipkeys=True)


def _to_json(value: Any, type_: PropertyType) -> Any:  # noqa: ANN401 - any value
    """Return a value of a row as the line has it that means the same."""
    if isinstance(value, bytes) and type_.scalar is not Scalar.BLOB:
        return unsupported_value(value)
    return plain_value(to_data_value(value, type_))


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
    types: Mapping[str, PropertyType],
) -> Iterator[tuple[str, Iterable[Mapping[str, Any]]]]:
    """Yield rows with the name of their source: a file, or the type they were passed for."""
    if isinstance(data, str | os.PathLike):
        for file in table_files(data):
            try:
                with open_table(file, ProgressMeter()) as table:
                    yield str(file), _cells(table, str(file), types)
            except UnreadableInput as error:
                raise InvalidInput(f"{file}: {error}", code="input_unreadable") from error
        return
    if isinstance(data, list | tuple) and data and isinstance(data[0], str | os.PathLike):
        for path in data:
            yield from _tables(name, path, types)
        return
    table_ = memory_table(data)
    if table_ is not None:
        yield name, _cells(table_, name, types)
    elif isinstance(data, Iterable) and not isinstance(data, Mapping | bytes):
        yield name, data
    else:
        message = f"cannot load {type(data).__name__} as {name}; give a table, rows or a path"
        raise InvalidInput(message, code="input_unknown", type=name)


def _cells(
    table: InputTable, name: str, types: Mapping[str, PropertyType]
) -> Iterator[Mapping[str, Any]]:
    if table.text:
        message = f"{name}: a server takes no CSV; read it into a table with types first"
        raise InvalidInput(message, code="remote_unsupported")
    for batch in checked_batches(table.batches):
        names = batch.schema.names
        columns = [
            column_cells(column, types.get(column_name, _TEXT_TYPE))
            for column_name, column in zip(names, batch.columns, strict=True)
        ]
        for values in zip(*columns, strict=True):
            yield dict(zip(names, values, strict=True))


def plain_value(value: Any) -> Any:  # noqa: ANN401 - any value of a row or a parameter
    """Return a value as JSON has it."""
    value = to_python(value)
    match value:
        case bytes():
            return blob_text(value)
        case datetime():
            return _instant_text(value)
        case date():
            return value.isoformat()
        case list() | tuple():
            return [plain_value(item) for item in value]
        case float() if not isfinite(value):
            return unsupported_value(value)
        case _:
            return value


def _instant_text(value: datetime) -> str:
    try:
        return to_milliseconds(value).isoformat(timespec="milliseconds")
    except ValueError:  # out of range in UTC, which the server reports
        return value.isoformat()
