"""Columns of a snapshot by position, cached in memory.

Versions never change, so that a cached column stays valid; only memory limits how much is kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeAlias, TypeVar
from weakref import WeakSet

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import AcceptedType, TypeKind
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import DatasetEntry, Snapshot, VersionState
from omnigraph.dataset_view import DatasetView
from omnigraph.errors import GraphCorrupt, VersionReclaimed
from omnigraph.query.limits import holding, run_large
from omnigraph.storage.columns import Positions, RowAddressMap, stored_bytes
from omnigraph.storage.index import IndexKind
from omnigraph.storage.lru_cache import LruCache
from omnigraph.storage.row_lookup import sql_literals
from omnigraph.storage.version_diff import (
    VersionFragments,
    VersionGrowth,
    find_growth,
    fragment_files,
)

CACHE_MEMORY_BYTES = 1024 * 1024 * 1024
"""Columns of one graph that are kept in memory."""
SMALL_TABLE_ROWS = 65_536
"""Rows of a type of which columns are always read whole."""
SPARSE_RATIO = 64
"""Rows are fetched one by one when fewer than one of this many is needed."""
FETCH_BYTES, FETCHED_ROW_BYTES = 524_288, 16_384
"""What could be read of a column in the time it takes to fetch rows one by one."""
SAMPLE_ROWS = 256
"""Values of a column that are read to estimate its size."""
MAX_COMPRESSION = 8
"""Times the size of its files that the columns of a type may take in memory."""
MAX_TABLES, MAX_TRACKED_KEYS = 256, 4_096
MAX_VERSIONS = 16
"""Versions of one type of which something is kept; most are not read again."""
MAX_CHANGED_SHARE = 0.1
"""Rows of a type that may have changed for a column to be made from that of another version."""
INDEX_LOOKUP_ROW_COST = 2_048
"""Rows whose ids could be noted in the time it takes to look one up in an index."""
INDEX_LOOKUP_MAX_IDS = 4_096
"""Ids that are looked up through an index rather than in the whole column."""


_ValueT = TypeVar("_ValueT")
CacheKey: TypeAlias = tuple[str, VersionState, str]
"""A dataset with the names of its columns, a version of it, and what is kept.

What is kept is a column by its name, or something else by words with a space, as no name has.
"""
_ALL_POSITIONS, _ROW_ADDRESSES = "all positions", "row addresses"


_caches: WeakSet[ColumnCache] = WeakSet()
_lookups = {"hit": 0, "miss": 0}


def cached_column_bytes() -> int:
    """Return the size of the columns that this process has in memory, of all graphs."""
    return sum(cache.size for cache in list(_caches))


def column_cache_lookups() -> dict[str, int]:
    """Return how often this process looked up columns, by outcome: `hit` or `miss`."""
    return dict(_lookups)


class ColumnCache:
    """The columns of a graph's datasets that are in memory."""

    def __init__(self, manifest: Manifest, memory_bytes: int = CACHE_MEMORY_BYTES) -> None:
        self.manifest = manifest
        self.limit = memory_bytes
        self.small = SMALL_TABLE_ROWS
        self._values: LruCache[CacheKey, Any] = LruCache(
            memory_bytes, lambda value: value.nbytes, on_evict=self._value_evicted
        )
        self._versions: LruCache[tuple[str, VersionState], set[str]] = LruCache(
            sys.maxsize,
            group=lambda key: key[0],
            group_capacity=MAX_VERSIONS,
            on_evict=self._version_evicted,
        )
        self._newest: LruCache[tuple[str, str], DatasetEntry] = LruCache(MAX_TRACKED_KEYS)
        self._files: LruCache[tuple[str, VersionState], list[str]] = LruCache(MAX_TABLES)
        self._tables: LruCache[tuple[str, str, VersionState], TypeTable] = LruCache(MAX_TABLES)
        self._named: LruCache[tuple[str, TypeKind, str], TypeTable] = LruCache(MAX_TABLES)
        self._lock = Lock()
        self.reads = 0
        """How often rows were read from storage."""
        _caches.add(self)

    @property
    def size(self) -> int:
        """The bytes of the values it holds."""
        return self._values.total

    def table(self, snapshot: Snapshot, kind: TypeKind, name: str) -> TypeTable:
        """Return the entities of one type in a snapshot with all properties."""
        snapshot = snapshot.whole or snapshot
        name_key = (snapshot.commit_id, kind, name)
        named = self._named.get(name_key)
        if named is not None:
            return named
        type_ = snapshot.schema.find(kind, name)
        assert type_ is not None, "the plan was made for this schema"
        entry = snapshot.entry(type_.entity)
        key = (snapshot.head.schema_hash, type_.entity, entry.state)
        table = self._tables.get(key)
        if table is None:
            members = type_.key_order if kind is TypeKind.NODE else ()
            table = self._tables.put(key, TypeTable(self, type_, entry, members))
        return self._named.put(name_key, table)

    def get(self, key: CacheKey) -> Any:  # noqa: ANN401 - a column or an array
        """Return what is kept under a key, or None."""
        with self._lock:
            value = self._values.get(key)
            _lookups["miss" if value is None else "hit"] += 1
            if value is not None:
                self._versions.get(key[:2])
            return value

    def keep(self, key: CacheKey, value: Any) -> None:  # noqa: ANN401 - as above
        """Keep a value, and evict the least recently used ones when memory is full."""
        with self._lock:
            if key in self._values or value.nbytes > self.limit:
                return
            self._values.put(key, value)
            names = self._versions.get(key[:2]) or self._versions.put(key[:2], set())
            names.add(key[2])

    def cached(self, key: CacheKey, make: Callable[[], _ValueT]) -> _ValueT:
        """Return what is kept under a key, made and kept if there is nothing yet."""
        value: _ValueT | None = self.get(key)
        if value is None:
            value = make()
            self.keep(key, value)
        return value

    def newest(self, type_: str, column: str) -> DatasetEntry | None:
        """Return the version of which a whole column was read last."""
        return self._newest.get((type_, column))

    def read(self, type_: str, column: str, entry: DatasetEntry) -> None:
        """Take note of a version of which a whole column was read."""
        self._newest.put((type_, column), entry)

    def files(self, key: tuple[str, VersionState], handle: Any) -> list[str]:  # noqa: ANN401 - of Lance
        """Return the files of the fragments of a version."""
        return self._files.get(key) or self._files.put(key, fragment_files(handle))

    def _value_evicted(self, key: CacheKey, _: object) -> None:
        names = self._versions.peek(key[:2])
        if names is not None:
            names.discard(key[2])
            if not names:
                self._versions.remove(key[:2])

    def _version_evicted(self, version: tuple[str, VersionState], names: set[str]) -> None:
        for name in names:
            self._values.remove((*version, name))


@dataclass(frozen=True, slots=True)
class IdHashIndex:
    """Where ids are, by what they hash to in this process."""

    hashes: Positions
    positions: Positions

    @classmethod
    def of(cls, ids: pa.Array) -> IdHashIndex:
        """Note all ids of a column."""
        hashes = np.fromiter(map(hash, ids.to_pylist()), np.int64, len(ids))
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], order)

    def find(self, id_: str, ids: pa.Array) -> Positions:
        """Return where an id is in the column these were made from."""
        hashed = hash(id_)
        first, last = (int(self.hashes.searchsorted(hashed, side)) for side in ("left", "right"))
        matches = [p for p in self.positions[first:last] if ids[int(p)].as_py() == id_]
        return np.array(matches, np.int64)

    @property
    def nbytes(self) -> int:
        """How much memory the notes take."""
        return self.hashes.nbytes + self.positions.nbytes


class TypeTable(DatasetView):
    """The entities of one type in one version, by position."""

    def __init__(
        self,
        store: ColumnCache,
        type_: AcceptedType,
        entry: DatasetEntry,
        members: tuple[str, ...] = (),
    ) -> None:
        super().__init__(store.manifest, type_, entry)
        self._store = store
        self.members = members
        """The key properties in the order in which they form ids."""
        self._fetched: dict[str, float] = {}
        self._covered: dict[str, float] = {}
        self._unread: dict[str, int] = {}
        self._lookups = 0
        self._column_lock = Lock()
        # A rename gives another column the same name in the same version.
        named = ",".join(f"{name}={id_:x}" for name, id_ in type_.property_ids.items())
        dataset = f"{entry.type_id:x}-{entry.incarnation:x}"
        self.key = (f"{dataset}:{named}", entry.state)
        """What the version physically is, and what its columns are called."""

    @property
    def is_small(self) -> bool:
        """Whether columns are always read whole."""
        return self.rows <= self._store.small

    @property
    def everything(self) -> Positions:
        """All positions, always the same array."""
        return self._store.cached((*self.key, _ALL_POSITIONS), lambda: np.arange(self.rows))

    def has(self, name: str) -> bool:
        """Return whether a whole column is in memory, or may as well be."""
        return self.is_small or self._store.get((*self.key, name)) is not None

    def column(self, name: str) -> pa.Array:
        """Return a whole column."""
        key = (*self.key, name)
        column = self._store.get(key)
        if column is None:
            with holding(self._column_lock, "Scan"):  # of many concurrent readers one reads storage
                column = self._store.get(key)
                if column is None:
                    column = run_large("Scan", self.rows, lambda: self._read_whole(name))
        return column

    def _read_whole(self, name: str) -> pa.Array:
        """Read a column and keep it, whether or not the query still waits for it."""
        column = self._read(name)
        if len(column) != self.rows:
            raise self._miscounted(len(column))
        self._store.keep((*self.key, name), column)
        self._store.read(self.key[0], name, self.entry)
        return column

    def unread_bytes(self, name: str, most: int) -> int:
        """Return about how much memory reading a whole column takes, 0 if it is in memory.

        Where the files of the type show that it is no more than `most`, nothing is read.
        """
        if self._store.get((*self.key, name)) is not None:
            return 0
        if name not in self._unread:
            with super().open() as handle:
                stored = stored_bytes(handle) * MAX_COMPRESSION
            if stored <= most:
                return stored
            self._unread[name] = self._sampled_bytes(name)
        return self._unread[name]

    def _sampled_bytes(self, name: str) -> int:
        """Estimate the size of a column by some of its values."""
        count = min(self.rows, SAMPLE_ROWS)
        some = np.linspace(0, max(0, self.rows - 1), count).astype(np.int64)
        values = self.rows_at(self.addresses().at(np.unique(some)), [name])[name]
        return int(values.nbytes * self.rows // max(1, len(values)))

    def _miscounted(self, rows: int) -> GraphCorrupt:
        """Return the error for a version that has not as many rows as its commit recorded."""
        place = f"version {self.entry.version} of {self.type.entity}"
        message = f"{place} has {rows} rows, its commit recorded {self.rows}"
        return GraphCorrupt(f"{message}; `omnigraph verify --deep` names damaged files")

    def is_cached(self, name: str) -> bool:
        """Return whether a whole column is in memory, or that of another version is."""
        return self._store.get((*self.key, name)) is not None or self._near(name) is not None

    def _near(self, name: str) -> tuple[DatasetEntry, pa.Array] | None:
        """Return another version and its column, if that is in memory and stored as this one is."""
        entry = self._store.newest(self.key[0], name)
        column = entry and self._store.get((self.key[0], entry.state, name))
        if entry is None or column is None:
            return None
        with suppress(VersionReclaimed):
            if self.is_stored_like(TypeTable(self._store, self.type, entry), name):
                return entry, column
        return None

    def _read(self, name: str) -> pa.Array:
        """Read a column, or what of it is not in memory already."""
        near = self._near(name)
        if near is not None:
            entry, column = near
            with suppress(VersionReclaimed), self.changes_since(entry, self._limit) as grown:
                if grown is not None:
                    return self.extend_column(name, column, grown)
        return self.read_column(name)

    @property
    def _limit(self) -> int:
        return max(self._store.small, int(self.rows * MAX_CHANGED_SHARE))

    def values(self, name: str, positions: Positions, *, whole: bool = True) -> pa.Array:
        """Return the values of a column at positions, in their order; see `read_columns`."""
        return self.read_columns([name], positions, () if whole else (name,))[name]

    def read_columns(
        self, names: Sequence[str], positions: Positions, wide: Collection[str] = ()
    ) -> dict[str, pa.Array]:
        """Return the values of columns at positions; what is fetched is fetched at once.

        Those of `wide` columns are fetched in any case.
        """
        count = len(positions)
        apart = [name for name in names if name in wide or not self._reads_whole(name, count)]
        fetched = self._fetch(apart, positions) if apart else {}
        whole = [name for name in names if name not in fetched]
        if positions is self._store.get((*self.key, _ALL_POSITIONS)):
            return fetched | {name: self.column(name) for name in whole}
        index = pa.array(positions)
        return fetched | {name: self.column(name).take(index) for name in whole}

    def _reads_whole(self, name: str, rows: int) -> bool:
        """Return whether a column is or should be in memory.

        It should when many rows are wanted at once, or when what was fetched so far took as long.
        """
        return self.has(name) or rows * SPARSE_RATIO > self.rows or self._fetched.get(name, 0.0) < 0

    def _fetch(self, names: Sequence[str], positions: Positions) -> dict[str, pa.Array]:
        distinct, back = np.unique(positions, return_inverse=True)
        rows = self.rows_at(self.addresses().at(distinct), names)
        for name, column in zip(names, rows.columns, strict=True):
            whole = self.rows * column.nbytes / max(1, len(distinct))
            left = self._fetched.get(name, whole if whole < self._store.limit / 4 else np.inf)
            self._fetched[name] = left - FETCH_BYTES - len(distinct) * FETCHED_ROW_BYTES
        columns = (column.combine_chunks() for column in rows.columns)
        if len(distinct) == len(positions) and (back[:-1] < back[1:]).all():
            return dict(zip(names, columns, strict=True))
        index = pa.array(back)
        return {name: column.take(index) for name, column in zip(names, columns, strict=True)}

    def codes(self, name: str, make: Callable[[pa.Array], Positions]) -> Positions:
        """Return small numbers for all values of a column, equal where values are."""
        key = (*self.key, f"{make.__name__} of {name}")
        return self._store.cached(key, lambda: make(self.column(name)))

    def positions_of(self, ids: pa.ChunkedArray) -> Positions:
        """Return where the entities with these ids are."""
        if len(ids) > INDEX_LOOKUP_MAX_IDS or self.is_small:
            known = self.column("id")
            places = run_large("Expand", self.rows, lambda: pc.index_in(ids, value_set=known))
            offsets = np.arange(self.rows)
        else:
            nodes = self.lookup_with_positions("id", ids.unique(), ["id"])
            places = pc.index_in(ids, value_set=nodes["id"].combine_chunks())
            offsets = nodes["_rowoffset"].to_numpy().astype(np.int64)
        if places.null_count:
            raise GraphCorrupt(f"an edge refers to nodes that {self.type.name} lacks")
        return offsets[np.asarray(places.combine_chunks(), np.int64)]

    def covered(self, name: str) -> float:
        """Return the share of rows an index of a column covers."""
        if name not in self._covered:
            rows, _ = self.index_coverage(name, IndexKind.BTREE)
            self._covered[name] = rows / max(1, self.rows)
        return self._covered[name]

    @contextmanager
    def changes_since(self, old: DatasetEntry, limit: int) -> Iterator[VersionGrowth | None]:
        """Give what changed since another version, to be read here; None when it is much."""
        earlier = TypeTable(self._store, self.type, old)
        with earlier.open() as before, self.open() as now:
            yield find_growth(earlier._layout(before), self._layout(now), limit)

    def _layout(self, handle: Any) -> VersionFragments:  # noqa: ANN401 - of Lance
        return VersionFragments(handle, self._store.files(self.key, handle))

    def chunks(self, columns: list[str], rows: int) -> Iterator[pa.Table]:
        """Yield all rows of some columns, many at a time; those of a small type stay in memory."""
        if self.is_small:
            yield pa.table({name: self.column(name) for name in columns})
            return
        yield from self.read_column_chunks(columns, rows)

    def position_of(self, id_: str) -> Positions:
        """Return where the entity with an id is: one position, or none."""
        key = (*self.key, "places of ids")
        if self._lookups * INDEX_LOOKUP_ROW_COST < self.rows and self._store.get(key) is None:
            self._lookups += 1
            [literal] = sql_literals(pa.array([id_]))
            return self.positions(f"`id` = {literal}")
        places = self._store.cached(key, lambda: IdHashIndex.of(self.column("id")))
        return places.find(id_, self.column("id"))

    def addresses(self) -> RowAddressMap:
        """Return where rows are."""
        return self._store.cached((*self.key, _ROW_ADDRESSES), self.address_map)

    def open(self) -> AbstractContextManager[Any]:
        """Return the Lance handle of the version, and count the read."""
        self._store.reads += 1
        return super().open()
