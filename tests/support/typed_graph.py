"""A graph with a property of every type, as data frames meet it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import omnigraph.graph as og
from tests.support.generated_graphs import NAMES, POOLS, some_value

_EVERY = [base for base in NAMES if base != "Blob"]
_INDEXED = ("String", "I32")


def _declared(base: str) -> str:
    text = "enum(x, y, z-1)" if base == "enum" else base
    return f"  {NAMES[base]}: {text}?{' @index' if base in _INDEXED else ''}"


PARTS = "\n".join(
    [
        "node Part {",
        *map(_declared, _EVERY),
        "  file: Blob?",
        "}",
        "edge Fits: Part -> Part { at: DateTime?  file: Blob? }",
    ]
)


def fill(graph: og.Graph) -> None:
    """Load parts so that indexes lag, rows are deleted, and there are several fragments."""
    graph.load(_lines(_parts(1, range(40))))
    edges = [
        {"edge": "Fits", "from": f"p{n}", "to": f"p{n + 1}", "data": {"id": f"f{n}", "at": at}}
        for n, at in enumerate(POOLS["DateTime"])
    ]
    graph.load(_lines(edges))
    graph.indexes.ensure()
    graph.load(_lines(_parts(2, range(30, 60))))
    graph.mutate('query q() { delete Part where id = "p50" }')


def columns_of(graph: og.Graph, type_name: str) -> list[str]:
    """Return every column of a type, blobs too."""
    catalog = graph.schema.catalog
    if type_name in catalog.nodes:
        return ["id", *catalog.nodes[type_name].properties]
    return ["id", "from", "to", *catalog.edges[type_name].properties]


def _parts(seed: int, numbers: Iterable[int]) -> Iterator[dict[str, Any]]:
    random = Random(seed)
    for number in numbers:
        given = [base for base in (*_EVERY, "Blob") if random.random() < 0.7]
        data = {NAMES[base]: some_value(random, base) for base in given}
        yield {"type": "Part", "data": {"id": f"p{number}", **data}}


def _lines(records: Iterable[dict[str, Any]]) -> bytes:
    return "\n".join(map(json.dumps, records)).encode()
