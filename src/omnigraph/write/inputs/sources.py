"""This module finds out what people gave to load, and reads it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from omnigraph.catalog import Catalog, TypeKind
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang.suggest import did_you_mean
from omnigraph.write.inputs.columnar import read_table
from omnigraph.write.inputs.ndjson import read_ndjson
from omnigraph.write.inputs.permissive import read_permissive
from omnigraph.write.inputs.records import read_records
from omnigraph.write.inputs.streams import Broken
from omnigraph.write.inputs.tables import memory_table, opened_table, table_files
from omnigraph.write.intake import Intake
from omnigraph.write.progress import Meter
from omnigraph.write.shape import Shape
from omnigraph.write.violations import Rule

_KINDS = (TypeKind.NODE, TypeKind.EDGE)
_TABLES = (".parquet", ".pq", ".csv", ".tsv", ".arrow", ".feather", ".ipc")


def read_all(
    data: Any,  # noqa: ANN401 - what people gave
    intake: Intake,
    meter: Meter,
    *,
    strict: bool = True,
) -> None:
    """Read lines from one or more sources, or tables by the name of their type."""
    read_lines = read_ndjson if strict else read_permissive
    if isinstance(data, Mapping):
        shapes = [(named_shape(str(name), intake), given) for name, given in data.items()]
        for shape, given in shapes:
            read_typed(shape, given, intake, meter)
        return
    for source in data if isinstance(data, list | tuple) else [data]:
        check_source(source)
        read_lines(source, intake, meter)


def check_source(source: Any) -> None:  # noqa: ANN401 - what people gave
    """Raise InvalidInput when something cannot be lines."""
    if not isinstance(source, str | os.PathLike | bytes) and not hasattr(source, "read"):
        message = f"cannot load {type(source).__name__}; give a path, a file, or tables by type"
        raise InvalidInput(message, code="input_unknown")
    if isinstance(source, str | os.PathLike) and _is_table(source):
        message = f"{os.fspath(source)} is a table; say of which type, as in {{'Person': …}}"
        raise InvalidInput(message, code="input_unknown", file=os.fspath(source))


def total_bytes(data: Any) -> int | None:  # noqa: ANN401 - what people gave
    """Return how many bytes there are to read, or None when nobody knows."""
    given = list(data.values()) if isinstance(data, Mapping) else data
    total = 0
    for source in given if isinstance(given, list | tuple) else [given]:
        if isinstance(source, bytes):
            total += len(source)
        elif not isinstance(source, str | os.PathLike):
            return None
        else:
            with suppress(OSError, InvalidInput):
                total += sum(file.stat().st_size for file in table_files(source))
    return total


def _is_table(path: str | os.PathLike[str]) -> bool:
    found = Path(path)
    return found.is_dir() or any(suffix.lower() in _TABLES for suffix in found.suffixes[-2:])


def named_shape(key: str, intake: Intake) -> Shape:
    """Return the type a key names: `Person`, or `node:Person` where an edge has the same name."""
    word, colon, name = key.partition(":")
    catalog = intake.schema.catalog
    if not colon:
        kinds = [kind for kind in _KINDS if _find(catalog, kind, key) is not None]
        name = key
        if len(kinds) > 1:
            message = f"`{key}` is a node type and an edge type; say `node:{key}` or `edge:{key}`"
            raise InvalidInput(message, code="type_ambiguous", type=key)
    else:
        kinds = [kind for kind in _KINDS if str(kind) == word and _find(catalog, kind, name)]
    found = _find(catalog, kinds[0], name) if kinds else None
    if found is None:
        hint = did_you_mean(name, [*catalog.nodes, *catalog.edges])
        message = f"unknown type `{key}`" + (f"; {hint}" if hint else "")
        raise NotFound(message, code="unknown_type", type=key)
    return intake.shape(kinds[0], found)


def _find(catalog: Catalog, kind: TypeKind, name: str) -> str | None:
    if kind is TypeKind.NODE:
        return name if name in catalog.nodes else None
    edge = catalog.edge(name)
    return None if edge is None else edge.name


def read_typed(shape: Shape, data: Any, intake: Intake, meter: Meter) -> None:  # noqa: ANN401
    """Read what was given for one type."""
    if isinstance(data, str | os.PathLike):
        for file in table_files(data):
            read_file(file, shape, intake, meter)
        return
    if isinstance(data, list | tuple) and data and isinstance(data[0], str | os.PathLike):
        for path in data:
            read_typed(shape, path, intake, meter)
        return
    table = memory_table(data)
    if table is not None:
        read_table(table, shape.name, shape, intake, meter)
    elif isinstance(data, Iterable) and not isinstance(data, Mapping | bytes):
        read_records(data, shape.name, shape, intake, meter)
    else:
        message = f"cannot load {type(data).__name__} as {shape.name}; give a table, rows or a path"
        raise InvalidInput(message, code="input_unknown", type=shape.name)


def read_file(
    path: Path, shape: Shape, intake: Intake, meter: Meter, groups: range | None = None
) -> None:
    """Read a file with a table, or some row groups of it."""
    try:
        with opened_table(path, meter, groups, intake.encoding) as table:
            read_table(table, str(path), shape, intake, meter)
    except Broken as error:
        intake.open_file(str(path), "row")
        intake.file_problem(Rule.SYNTAX, str(error), shape)
