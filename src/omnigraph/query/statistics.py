"""Gather statistics of types from what is in memory, and keep those of large types in files.

Gathering looks at a bounded sample of columns and adjacency arrays that queries have loaded
already; it never reads storage. Files are derived: a missing or damaged one costs estimates only.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import TypeKind
from omnigraph.commit.model import Snapshot
from omnigraph.plan import ReadPlan
from omnigraph.plan import operators as op
from omnigraph.plan.expressions import Binding, PropertyRef, predicate_refs
from omnigraph.plan.statistics import (
    DegreeStatistics,
    GraphStatistics,
    PropertyStatistics,
    TypeStatistics,
    is_far_off,
)
from omnigraph.query.array_files import user_cache_folder
from omnigraph.query.column_cache import ColumnCache, TypeTable
from omnigraph.query.delta_adjacency import AdjacencyIndex, DeltaAdjacency
from omnigraph.query.topology import EdgeTables, TopologyCache
from omnigraph.storage import Location
from omnigraph.storage.lru_cache import LruCache

STATISTICS_FOLDER = "_statistics"
MIN_STORED_ROWS = 100_000
"""Entities of a type from which on its statistics are kept in a file."""
SAMPLE_ROWS = 65_536
"""Values or nodes that are looked at, at most."""
STALE_FACTOR = 2.0
"""By which factor the number of entities may differ before statistics are gathered again."""
MAX_TRACKED_TYPES = 4_096


@dataclass(frozen=True, slots=True)
class PlanNeeds:
    """The types a plan reads, as keys and kinds, and the properties its tests compare."""

    types: Mapping[tuple[TypeKind, str], frozenset[str]]

    @classmethod
    def of(cls, plan: ReadPlan) -> PlanNeeds:
        """Return what a plan reads."""
        types: dict[tuple[TypeKind, str], set[str]] = {}
        for _, operator in op.walk_operators(plan.root):
            bindings, refs = _looked_at(operator)
            for binding in bindings:
                types.setdefault((TypeKind(binding.kind), binding.type_name), set())
            if isinstance(operator, op.Expand | op.SemiJoin):
                types.setdefault((TypeKind.EDGE, operator.edge), set())
            for binding, ref in refs:
                types.setdefault((TypeKind(binding.kind), binding.type_name), set()).add(
                    ref.property
                )
        return cls({key: frozenset(names) for key, names in types.items()})


def _looked_at(
    operator: op.PlanOperator,
) -> tuple[Iterable[Binding], list[tuple[Binding, PropertyRef]]]:
    """Return the variables of an operator, and the properties its tests compare."""
    match operator:
        case op.Scan(predicates=predicates) | op.Expand(predicates=predicates):
            variables = operator.variables
        case op.Filter(predicate=predicate):
            variables, predicates = operator.variables, (predicate,)
        case _:
            return (), []
    refs = [
        (variables[ref.variable], ref)
        for predicate in predicates
        for ref in predicate_refs(predicate)
        if ref.variable in variables and ref.type.orderable and ref.property != "id"
    ]
    return variables.values(), refs


@dataclass(slots=True)
class StatisticsBasis:
    """What a plan was made from: statistics, and the versions of what was known then."""

    needs: PlanNeeds
    statistics: GraphStatistics
    versions: Mapping[tuple[TypeKind, str], int]
    seen: tuple[int, int] = (-1, -1)
    """What was in memory when statistics were looked for last."""


@dataclass(slots=True)
class _Known:
    """Statistics of one dataset, and how often they changed."""

    statistics: TypeStatistics
    version: int = 0


class StatisticsCache:
    """The statistics of one graph that were gathered or read from files."""

    def __init__(
        self, store: ColumnCache, topologies: TopologyCache, location: Location, *, may_write: bool
    ) -> None:
        self._store = store
        self._topologies = topologies
        self._files = StatisticsFiles(location, may_write=may_write)
        self._known: LruCache[str, _Known] = LruCache(MAX_TRACKED_TYPES)

    def basis(self, snapshot: Snapshot, needs: PlanNeeds) -> StatisticsBasis:
        """Return what is known of the types of a plan, gathering what is in memory."""
        seen = self._in_memory()
        types: dict[str, TypeStatistics] = {}
        versions: dict[tuple[TypeKind, str], int] = {}
        for (kind, name), properties in needs.types.items():
            table = self._store.table(snapshot, kind, name)
            known = self._refreshed(snapshot, table, properties)
            types[f"{kind}:{name}"] = replace(known.statistics, rows=table.rows)
            versions[kind, name] = known.version
        statistics = GraphStatistics(snapshot.catalog, types)
        return StatisticsBasis(needs, statistics, versions, seen)

    def is_current(self, basis: StatisticsBasis, snapshot: Snapshot) -> bool:
        """Return whether a plan need not be made again.

        It is when types have grown or shrunk by an order of magnitude, or more is known of them.
        """
        types, seen = basis.statistics.types, self._in_memory()
        for (kind, name), properties in basis.needs.types.items():
            table = self._store.table(snapshot, kind, name)
            if is_far_off(types[f"{kind}:{name}"].rows, table.rows):
                return False
            if seen != basis.seen:
                known = self._refreshed(snapshot, table, properties)
                if known.version != basis.versions[kind, name]:
                    return False
        basis.seen = seen
        return True

    def _in_memory(self) -> tuple[int, int]:
        """Return numbers that change when more was loaded."""
        return self._store.reads, len(self._topologies)

    def _refreshed(
        self, snapshot: Snapshot, table: TypeTable, properties: frozenset[str]
    ) -> _Known:
        """Return what is known of a type, after gathering what is missing and in memory."""
        key = table.key[0]
        known = self._known.get(key)
        if known is None:
            stored = self._files.load(table) if table.rows >= MIN_STORED_ROWS else None
            known = self._known.put(key, _Known(stored or TypeStatistics(table.rows)))
        old = known.statistics
        base = TypeStatistics(table.rows) if _is_stale(old.rows, table.rows) else old
        ends = _edge_tables(self._store, snapshot, table)
        topology = None if ends is None else self._topologies.loaded(ends)
        gathered = _gathered(
            base, table, properties, lambda name: self._store.get((*table.key, name))
        )
        if topology is not None and gathered.out is None:
            gathered = with_degrees(gathered, topology.out, topology.into)
        if gathered is base:
            return known
        if table.rows >= MIN_STORED_ROWS:
            self._files.save(table, gathered)
        return self._known.put(key, _Known(gathered, known.version + 1))


def _is_stale(rows: int, now: int) -> bool:
    low, high = sorted((rows + 1, now + 1))
    return high > low * STALE_FACTOR


def _edge_tables(store: ColumnCache, snapshot: Snapshot, table: TypeTable) -> EdgeTables | None:
    if table.type.kind is not TypeKind.EDGE:
        return None
    edge = snapshot.catalog.edges[table.type.name]
    src, dst = (store.table(snapshot, TypeKind.NODE, end) for end in (edge.src, edge.dst))
    return table, src, dst


def _gathered(
    base: TypeStatistics,
    table: TypeTable,
    properties: frozenset[str],
    column: Callable[[str], Any],
) -> TypeStatistics:
    """Return statistics with those of more properties whose columns are in memory."""
    new: dict[str, PropertyStatistics] = {}
    for name in sorted(properties - set(base.properties)):
        values = column(name)
        if values is not None and len(values) == table.rows:
            new[name] = property_statistics(values)
    if not new:
        return base
    return replace(base, rows=table.rows, properties={**base.properties, **new})


def property_statistics(values: pa.Array | pa.ChunkedArray) -> PropertyStatistics:
    """Return how many different values a column has, estimated from a sample, and its nulls.

    >>> property_statistics(pa.array(["a", "b", "a", None]))
    PropertyStatistics(distinct=2, null_share=0.25)
    """
    rows = len(values)
    if not rows:
        return PropertyStatistics(0)
    nulls = values.null_count / rows
    if rows > SAMPLE_ROWS:
        values = values.take(pa.array(_sample(rows)))
    present = values.drop_null()
    counts = np.asarray(pc.value_counts(present).field("counts"))
    distinct, once = len(counts), int((counts == 1).sum())
    whole = rows * (1 - nulls)
    if rows > SAMPLE_ROWS and len(present):
        # The jackknife estimate of Haas and Stokes: values seen once hint at unseen ones.
        unseen = (1 - len(present) / whole) * once / len(present)
        distinct = int(min(whole, distinct / max(1 - unseen, 1e-9)))
    return PropertyStatistics(distinct, nulls)


def with_degrees(base: TypeStatistics, out: AdjacencyIndex, into: AdjacencyIndex) -> TypeStatistics:
    """Return the statistics of an edge type with those of its ends."""
    one, other = degree_statistics(out), degree_statistics(into)
    return base if one is None else replace(base, out=one, into=other)


def degree_statistics(adjacency: AdjacencyIndex) -> DegreeStatistics | None:
    """Return how many nodes have edges and how many at most, estimated from a sample."""
    if isinstance(adjacency, DeltaAdjacency):
        return degree_statistics(adjacency.base)
    starts, count = adjacency.starts, adjacency.count
    if not count:
        return DegreeStatistics(0, 0)
    nodes = _sample(count) if count > SAMPLE_ROWS else np.arange(count)
    degrees = starts[nodes + 1] - starts[nodes]
    with_edges = round(float((degrees > 0).mean()) * count)
    return DegreeStatistics(with_edges, int(degrees.max()))


def _sample(rows: int) -> np.ndarray:
    """Return positions spread over all rows."""
    return np.linspace(0, rows - 1, SAMPLE_ROWS).astype(np.int64)


# ----------------------------------------------------------------------
# Files: one per dataset, by the identities of properties, which renames keep.


class StatisticsFiles:
    """The statistics files of one graph: beside the data, or for a bucket in the user's cache."""

    def __init__(self, location: Location, *, may_write: bool) -> None:
        home = Path(location.uri) if location.is_local else user_cache_folder(location)
        self._folder = home / STATISTICS_FOLDER
        self._may_write = may_write or not location.is_local

    def load(self, table: TypeTable) -> TypeStatistics | None:
        """Return the stored statistics of a type, if they are there and whole."""
        try:
            facts = json.loads(self._path(table).read_text(encoding="utf-8"))
            if facts.pop("sum") != _checksum(facts):
                return None
            names = {f"{id_:x}": name for name, id_ in table.type.property_ids.items()}
            properties = {
                names[id_]: PropertyStatistics(int(values["distinct"]), float(values["null_share"]))
                for id_, values in facts["properties"].items()
                if id_ in names
            }
            out, into = (_degrees(facts[end]) for end in ("out", "into"))
            return TypeStatistics(int(facts["rows"]), properties, out, into)
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def save(self, table: TypeTable, statistics: TypeStatistics) -> bool:
        """Write statistics to a scratch file, then move it into place; return whether it did.

        What another process stored of other properties is kept.
        """
        if not self._may_write:
            return False
        stored = self.load(table)
        if stored is not None and not _is_stale(stored.rows, statistics.rows):
            merged = {**stored.properties, **statistics.properties}
            statistics = replace(
                statistics,
                properties=merged,
                out=statistics.out or stored.out,
                into=statistics.into or stored.into,
            )
        ids = {name: f"{id_:x}" for name, id_ in table.type.property_ids.items()}
        facts: dict[str, Any] = {
            "rows": statistics.rows,
            "properties": {ids[n]: asdict(p) for n, p in statistics.properties.items() if n in ids},
            "out": statistics.out and asdict(statistics.out),
            "into": statistics.into and asdict(statistics.into),
        }
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            _replace_file(self._path(table), json.dumps({**facts, "sum": _checksum(facts)}))
            return True
        return False

    def _path(self, table: TypeTable) -> Path:
        entry = table.entry
        return self._folder / f"{entry.type_id:016x}-{entry.incarnation:016x}.json"


def _replace_file(path: Path, text: str) -> None:
    descriptor, scratch = tempfile.mkstemp(prefix=".tmp-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(scratch, path)
    except OSError:
        Path(scratch).unlink(missing_ok=True)
        raise


def _degrees(facts: Mapping[str, Any] | None) -> DegreeStatistics | None:
    return None if facts is None else DegreeStatistics(int(facts["nodes"]), int(facts["maximum"]))


def _checksum(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
