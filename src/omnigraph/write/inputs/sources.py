"""Detect the kind of an input to load, and read it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from omnigraph.catalog import TypeKind
from omnigraph.catalog.model import resolve_endpoint_columns
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.types import json_kind
from omnigraph.write.change_set import RowSchema
from omnigraph.write.inputs.byte_streams import UnreadableInput
from omnigraph.write.inputs.line_parser import find_type_name, unknown_member_message
from omnigraph.write.inputs.ndjson_reader import read_ndjson
from omnigraph.write.inputs.permissive_json import read_permissive
from omnigraph.write.inputs.table_reader import memory_table, open_table, read_table, table_files
from omnigraph.write.progress import ProgressMeter
from omnigraph.write.row_builder import InputRows, RowBuilder
from omnigraph.write.violations import ViolationRule

# ----------------------------------------------------------------------
# Rows given as dictionaries.


RECORD_BATCH_ROWS = 16_384
"""Rows that are taken in at a time."""


def read_records(
    rows: Iterable[Any], name: str, shape: RowSchema, builder: RowBuilder, meter: ProgressMeter
) -> None:
    """Read dictionaries: properties by name, `id`, and the ends of an edge."""
    base = builder.open_file(name, "row")
    builder.include_type(shape)
    reading = enumerate(rows, start=base + 1)
    while part := list(islice(reading, RECORD_BATCH_ROWS)):
        read = [
            (at, row)
            for at, raw in part
            if (row := _row_from_record(raw, at, shape, builder)) is not None
        ]
        builder.add(shape, [InputRows.from_records(shape, read)])
        meter.add_rows(len(part))


def _row_from_record(
    raw: Any,  # noqa: ANN401
    at: int,
    shape: RowSchema,
    builder: RowBuilder,
) -> Mapping[str, Any] | None:
    """Return a row by the names of a change; report what it should not have."""
    if not isinstance(raw, Mapping):
        message = f"{shape.name}: expected a dictionary, got {json_kind(raw)}"
        builder.problem(ViolationRule.SYNTAX, message, at, shape)
        return None
    ends = resolve_endpoint_columns(raw, shape.properties) if shape.kind is TypeKind.EDGE else {}
    row = {ends.get(name, str(name)): value for name, value in raw.items()}
    if len(row) < len(raw):
        names = [ends.get(name, str(name)) for name in raw]
        again = next(name for at_, name in enumerate(raw) if names.index(names[at_]) < at_)
        message = f"{shape.name}: `{str(again)[:80]}` is given more than once"
        builder.problem(ViolationRule.SYNTAX, message, at, shape)
    for name in row:
        if name not in shape.schema.names:
            message = f"{shape.name}: {unknown_member_message(name, TypeKind.NODE)}"
            builder.problem(ViolationRule.UNKNOWN_PROPERTY, message, at, shape, property=name[:80])
    return row


_KINDS = (TypeKind.NODE, TypeKind.EDGE)
_TABLE_SUFFIXES = (".parquet", ".pq", ".csv", ".tsv", ".arrow", ".feather", ".ipc")


def read_sources(
    data: Any,  # noqa: ANN401 - what people gave
    builder: RowBuilder,
    meter: ProgressMeter,
    *,
    strict: bool = True,
) -> None:
    """Read lines from one or more sources, or tables by the name of their type."""
    read_lines = read_ndjson if strict else read_permissive
    if isinstance(data, Mapping):
        shapes = [find_named_schema(str(name), builder) for name in data]
        for shape, table in zip(shapes, data.values(), strict=True):
            read_typed_source(shape, table, builder, meter)
        return
    for source in data if isinstance(data, list | tuple) else [data]:
        check_source(source)
        read_lines(source, builder, meter)


def check_source(source: Any) -> None:  # noqa: ANN401 - what people gave
    """Raise InvalidInput when something cannot be lines."""
    if not isinstance(source, str | os.PathLike | bytes) and not hasattr(source, "read"):
        message = f"cannot load {type(source).__name__}; give a path, a file, or tables by type"
        raise InvalidInput(message, code="input_unknown")
    if isinstance(source, str | os.PathLike) and is_table(source):
        message = f"{os.fspath(source)} is a table; say of which type, as in {{'Person': …}}"
        raise InvalidInput(message, code="input_unknown", file=os.fspath(source))


def total_bytes(data: Any) -> int | None:  # noqa: ANN401 - what people gave
    """Return how many bytes there are to read, or None when that is unknown."""
    sources = list(data.values()) if isinstance(data, Mapping) else data
    total = 0
    for source in sources if isinstance(sources, list | tuple) else [sources]:
        if isinstance(source, bytes):
            total += len(source)
        elif not isinstance(source, str | os.PathLike):
            return None
        else:
            with suppress(OSError, InvalidInput):
                total += sum(file.stat().st_size for file in table_files(source))
    return total


def is_table(path: str | os.PathLike[str]) -> bool:
    """Return whether a file or folder holds a table, by its name."""
    suffixes = Path(path).suffixes[-2:]
    return Path(path).is_dir() or any(suffix.lower() in _TABLE_SUFFIXES for suffix in suffixes)


def find_named_schema(key: str, builder: RowBuilder) -> RowSchema:
    """Return the type a key names: `Person`, or `node:Person` where an edge has the same name."""
    word, colon, name = key.partition(":")
    catalog = builder.schema.catalog
    if not colon:
        kinds, name = [kind for kind in _KINDS if find_type_name(catalog, kind, key)], key
        if len(kinds) > 1:
            message = f"`{key}` is a node type and an edge type; write `node:{key}` or `edge:{key}`"
            raise InvalidInput(message, code="type_ambiguous", type=key)
    else:
        kinds = [kind for kind in _KINDS if str(kind) == word]
    declared = find_type_name(catalog, kinds[0], name) if kinds else None
    if declared is None:
        hint = did_you_mean(name, [*catalog.nodes, *catalog.edges])
        message = f"unknown type `{key}`" + (f"; {hint}" if hint else "")
        raise NotFound(message, code="unknown_type", type=key)
    return builder.shape(kinds[0], declared)


def read_typed_source(
    shape: RowSchema,
    data: Any,  # noqa: ANN401
    builder: RowBuilder,
    meter: ProgressMeter,
) -> None:
    """Read what was given for one type."""
    if isinstance(data, str | os.PathLike):
        for file in table_files(data):
            read_table_file(file, shape, builder, meter)
        return
    if isinstance(data, list | tuple) and data and isinstance(data[0], str | os.PathLike):
        for path in data:
            read_typed_source(shape, path, builder, meter)
        return
    table = memory_table(data)
    if table is not None:
        read_table(table, shape.name, shape, builder, meter)
    elif isinstance(data, Iterable) and not isinstance(data, Mapping | bytes):
        read_records(data, shape.name, shape, builder, meter)
    else:
        message = f"cannot load {type(data).__name__} as {shape.name}; give a table, rows or a path"
        raise InvalidInput(message, code="input_unknown", type=shape.name)


def read_table_file(
    path: Path,
    shape: RowSchema,
    builder: RowBuilder,
    meter: ProgressMeter,
    groups: range | None = None,
) -> None:
    """Read a file with a table, or some row groups of it."""
    try:
        with open_table(path, meter, groups, builder.encoding) as table:
            read_table(table, str(path), shape, builder, meter)
    except UnreadableInput as error:
        builder.open_file(str(path), "row")
        builder.report_file_error(ViolationRule.SYNTAX, str(error), shape)
