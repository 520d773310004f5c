"""This module finds the edges that go with a node."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from omnigraph.catalog import TypeKind
from omnigraph.write.committed import Committed
from omnigraph.write.shape import Shape


def incident_edges(
    committed: Committed, nodes: Shape, ids: pa.Array
) -> Iterator[tuple[Shape, pa.ChunkedArray]]:
    """Yield the ids of edges that start or end at nodes, type by type, end by end."""
    for edge in committed.snapshot.catalog.incident_edges(nodes.name):
        incident = committed.shape(TypeKind.EDGE, edge.name)
        for end, node in (("src", edge.src), ("dst", edge.dst)):
            if node == nodes.name:
                yield incident, committed.by(incident, end, ids, ["id"])["id"]
