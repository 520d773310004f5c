"""The shortest path between two nodes: all paths are tried, the shortest first."""

from __future__ import annotations

from omnigraph.lang import query_tree as qt
from omnigraph.lang.source import Name
from tests.support.reference.model import Row, World

PATHS = ("shortest_path", "path_length")


def path(call: qt.CallExpression, row: Row, world: World) -> list[str] | int | None:
    """Return the ids on the first of the shortest paths, or how many edges it has."""
    start, along, end = call.arguments
    assert isinstance(start, qt.Variable)
    assert isinstance(end, qt.Variable)
    if isinstance(along, qt.AliasRef):
        along = qt.EdgePathExpression(Name(along.name))
    assert isinstance(along, qt.EdgePathExpression)
    found = _first_shortest(start.name, along, end.name, row, world)
    low = 1 if along.hops is None else along.hops.minimum
    high = None if along.hops is None else along.hops.maximum
    if found is None or not low <= len(found) - 1 <= (high or len(found)):
        return None
    return found if call.function.text == "shortest_path" else len(found) - 1


def _first_shortest(
    start: str, along: qt.EdgePathExpression, end: str, row: Row, world: World
) -> list[str] | None:
    edge = world.catalog.edge(along.edge.text)
    assert edge is not None
    edges = [(e.src, e.dst) for e in world.graph.edges.get(edge.name, ())]
    if along.undirected:
        edges += [(dst, src) for src, dst in edges]
    elif row[start].type.name != edge.src:
        edges = [(dst, src) for src, dst in edges]
    if edge.src != edge.dst:
        direct = (row[start].id, row[end].id) in edges
        return [row[start].id, row[end].id] if direct else None
    if row[start].id == row[end].id:
        return None
    paths, visited = [[row[start].id]], {row[start].id}
    while paths:
        longer = [[*p, dst] for p in paths for src, dst in edges if src == p[-1]]
        paths = [p for p in longer if p[-1] not in visited]
        visited |= {p[-1] for p in paths}
        arrived = [p for p in paths if p[-1] == row[end].id]
        if arrived:
            return min(arrived, key=lambda p: [id_.encode() for id_ in p])
    return None
