"""This module turns what people load into the lines a server takes.

Tables become lines here; whether values fit is for the server to say.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

from omnigraph.catalog import Catalog
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang import did_you_mean
from omnigraph.types.temporal import to_milliseconds
from omnigraph.write.inputs.columnar import Table
from omnigraph.write.inputs.streams import Broken, opened
from omnigraph.write.inputs.tables import memory_table, opened_table, table_files
from omnigraph.write.progress import Meter

_ENDS = {"from": "from", "to": "to", "src": "from", "dst": "to"}


def to_lines(data: Any, catalog: Catalog) -> bytes:  # noqa: ANN401 - what people gave
    """Return lines of JSON for whatever a load takes."""
    if isinstance(data, Mapping):
        lines = (line for key, rows in data.items() for line in _typed(key, rows, catalog))
        return b"".join(lines)
    if isinstance(data, list | tuple):
        return b"\n".join(to_lines(one, catalog) for one in data)
    with opened(data, Meter()) as stream:
        return stream.read()


def _typed(key: str, rows: Any, catalog: Catalog) -> Iterator[bytes]:  # noqa: ANN401
    kind, name = _type(key, catalog)
    for row in _rows(key, rows):
        values = {column: plain_value(value) for column, value in row.items()}
        if kind == "node":
            line: dict[str, Any] = {"type": name, "data": values}
        else:
            ends = {_ENDS[c]: values.pop(c) for c in list(values) if c in _ENDS}
            line = {"edge": name, **ends, "data": values}
        yield json.dumps(line, ensure_ascii=False).encode() + b"\n"


def _type(key: str, catalog: Catalog) -> tuple[str, str]:
    """Return the kind and name of the type a key means, as an embedded load understands it."""
    word, colon, rest = key.partition(":")
    name = rest if colon else key
    edge = catalog.edge(name)
    found = [("node", name)] if name in catalog.nodes else []
    found += [] if edge is None else [("edge", edge.name)]
    if colon:
        found = [one for one in found if one[0] == word]
    if len(found) > 1:
        message = f"`{key}` is a node type and an edge type; say `node:{key}` or `edge:{key}`"
        raise InvalidInput(message, code="type_ambiguous", type=key)
    if not found:
        hint = did_you_mean(name, [*catalog.nodes, *catalog.edges])
        message = f"unknown type `{key}`" + (f"; {hint}" if hint else "")
        raise NotFound(message, code="unknown_type", type=key)
    return found[0]


def _rows(key: str, data: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 - what people gave
    if isinstance(data, str | os.PathLike):
        for file in table_files(data):
            try:
                with opened_table(file, Meter()) as table:
                    yield from _cells(table, str(file))
            except Broken as error:
                raise InvalidInput(f"{file}: {error}", code="input_unreadable") from error
        return
    if isinstance(data, list | tuple) and data and isinstance(data[0], str | os.PathLike):
        for path in data:
            yield from _rows(key, path)
        return
    found = memory_table(data)
    if found is not None:
        yield from _cells(found, key)
    elif isinstance(data, Iterable) and not isinstance(data, Mapping | bytes):
        yield from data
    else:
        message = f"cannot load {type(data).__name__} as {key}; give a table, rows or a path"
        raise InvalidInput(message, code="input_unknown", type=key)


def _cells(table: Table, name: str) -> Iterator[Mapping[str, Any]]:
    if table.text:
        message = f"{name}: a server takes no CSV; read it into a table with types first"
        raise InvalidInput(message, code="remote_unsupported")
    for batch in table.batches:
        yield from batch.to_pylist()


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
