"""Graphs as data: read from lines of JSON, put into a real graph, and read back from one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import omnigraph.graph as og
from omnigraph.catalog import AcceptedSchema, EdgeType, NodeType, TypeKind
from omnigraph.types import entity_id
from omnigraph.types.data_values import from_data
from tests.support.embedding import MOCK
from tests.support.reference import Edge, PlainGraph
from tests.support.reference.values import to_json


def read_lines(lines: Iterable[str], schema: AcceptedSchema) -> PlainGraph:
    """Return the graph that lines of `load` and `export` describe.

    Nodes with a key get their id from it; edges without an id are numbered.
    """
    nodes: dict[str, dict[str, Mapping[str, Any]]] = {name: {} for name in schema.catalog.nodes}
    edges: dict[str, list[Edge]] = {name: [] for name in schema.catalog.edges}
    for record in map(json.loads, filter(str.strip, lines)):
        data = dict(record.get("data", {}))
        given = data.pop("id", None)
        if "type" in record:
            node_type = schema.catalog.nodes[record["type"]]
            values = _values(data, node_type)
            keys = schema.key_order(TypeKind.NODE, node_type.name)
            members = [(values[name], node_type.properties[name].type) for name in keys]
            nodes[node_type.name][entity_id(members) if members else given] = values
        else:
            edge_type = schema.catalog.edges[record["edge"]]
            known = edges[edge_type.name]
            id_ = given or f"{edge_type.name}-{len(known)}"
            known.append(Edge(id_, record["from"], record["to"], _values(data, edge_type)))
    return PlainGraph(nodes, edges)


def _values(data: Mapping[str, Any], type_: NodeType | EdgeType) -> dict[str, Any]:
    return {name: from_data(type_.properties[name].type, value) for name, value in data.items()}


def to_lines(graph: PlainGraph) -> Iterator[str]:
    """Yield a graph as lines that `load` reads."""
    for type_name, nodes in graph.nodes.items():
        for id_, values in nodes.items():
            yield _line({"type": type_name, "data": {"id": id_, **_written(values)}})
    for type_name, edges in graph.edges.items():
        for edge in edges:
            data = {"id": edge.id, **_written(edge.properties)}
            yield _line({"edge": type_name, "from": edge.src, "to": edge.dst, "data": data})


def _written(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: to_json(value) for name, value in values.items() if value is not None}


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False)


def put(uri: str | os.PathLike[str], schema: str, lines: Iterable[str]) -> og.Graph:
    """Create a graph and load lines into it, in one commit."""
    graph = og.init(uri, schema, embedding=MOCK)
    load(graph, lines)
    return graph


def load(graph: og.Graph, lines: Iterable[str]) -> None:
    """Load lines in one commit, if there are any."""
    text = "\n".join(lines)
    if text:
        graph.load(text.encode(), vectors_from="mock")


def read_back(graph: og.Graph) -> PlainGraph:
    """Return everything a graph holds, as data."""
    return read_lines(graph.export(), graph.snapshot().schema)


def content(graph: PlainGraph) -> dict[str, dict[str, Any]]:
    """Return every entity by type and id, without nulls, to be compared."""
    known: dict[str, dict[str, Any]] = {
        f"node:{name}": {id_: _written(values) for id_, values in nodes.items()}
        for name, nodes in graph.nodes.items()
    }
    for name, edges in graph.edges.items():
        known[f"edge:{name}"] = {e.id: (e.src, e.dst, _written(e.properties)) for e in edges}
    return known
