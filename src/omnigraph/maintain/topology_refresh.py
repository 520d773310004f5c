"""Store the topology files of the newest state, so that readers find them."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.catalog import TypeKind
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.query import topology
from omnigraph.query.column_cache import ColumnCache

_CACHE_BYTES = 256 * 1024 * 1024
"""Memory for IDs of nodes while arrays are built; nothing is kept afterwards."""


def large_edge_types(snapshot: Snapshot) -> list[str]:
    """Return the edge types whose arrays are kept in files."""
    types = snapshot.schema.of_kind(TypeKind.EDGE)
    return [t.name for t in types if snapshot.entry(t.entity).rows >= topology.MIN_STORED_EDGES]


def refresh_topology(
    manifest: Manifest, snapshot: Snapshot, name: str, tick: Callable[[], None] = lambda: None
) -> bool:
    """Store the arrays of an edge type if that is due; return whether it was.

    `tick` is called now and then and may raise.
    """
    store = ColumnCache(manifest, _CACHE_BYTES)
    definition = snapshot.catalog.edges[name]
    edge = store.table(snapshot, TypeKind.EDGE, name)
    src, dst = (
        store.table(snapshot, TypeKind.NODE, end) for end in (definition.src, definition.dst)
    )
    cache = topology.TopologyCache(manifest.location, may_write=True)
    return cache.refresh((edge, src, dst), tick)
