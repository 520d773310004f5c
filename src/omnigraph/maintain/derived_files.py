"""Store files derived from the newest state before readers need them: topologies and words."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from omnigraph.catalog import TypeKind
from omnigraph.catalog.model import Index, type_constraints
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.query import text_index_files, topology
from omnigraph.query.column_cache import ColumnCache
from omnigraph.query.text_index_cache import TextIndexCache

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


def indexed_texts(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield the node types and their indexed text properties whose words are kept in files."""
    for type_ in snapshot.schema.of_kind(TypeKind.NODE):
        if snapshot.entry(type_.entity).rows < text_index_files.MIN_STORED_TEXTS:
            continue
        properties = type_.definition.properties
        for constraint in type_constraints(type_.definition):
            for name in constraint.columns if isinstance(constraint, Index) else ():
                indexed = properties.get(name)  # an index may be of `id`
                if indexed and indexed.type.text and indexed.type.enum_values is None:
                    yield type_.name, name


def refresh_text_index(
    manifest: Manifest,
    snapshot: Snapshot,
    name: str,
    property_name: str,
    tick: Callable[[], None] = lambda: None,
) -> bool:
    """Store the words of a text property if that is due; return whether it was."""
    store = ColumnCache(manifest, _CACHE_BYTES)
    table = store.table(snapshot, TypeKind.NODE, name)
    return TextIndexCache(store, may_write=True).refresh(table, property_name, tick)
