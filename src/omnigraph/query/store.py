"""This module gives the columns of a snapshot by position, and keeps them while there is room.

Versions never change, so what was read once is right for ever; only memory limits how much is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import AcceptedType, TypeKind
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import DatasetEntry, Snapshot
from omnigraph.errors import GraphCorrupt
from omnigraph.query.recent import Recent
from omnigraph.storage.columns import (
    Addresses,
    Positions,
    column_pieces,
    positions_where,
    rows_at,
    rows_where,
    whole_column,
)
from omnigraph.storage.growth import Growth, growth
from omnigraph.storage.index import IndexKind, coverage, index_name
from omnigraph.storage.layout import embedding_model, physical_columns
from omnigraph.storage.literals import sql_literals

MEMORY_BYTES = 1024 * 1024 * 1024
"""Columns of one graph that are kept in memory."""
SMALL = 65_536
"""Rows of a type of which columns are always read whole."""
SPARSE = 64
"""Fewer than one row of so many are fetched one by one."""
FETCH_BYTES, FETCHED_ROW_BYTES = 524_288, 16_384
"""What could be read of a column in the time it takes to fetch rows one by one."""
MAX_TABLES = 256
_CHUNK = 1_024
LOOKUP_ROWS = 2_048
"""Rows whose ids could be noted in the time it takes to look one up in an index."""
LOOKED_UP = 4_096
"""Ids that are looked up through an index rather than in the whole column."""


class Store:
    """The columns of a graph's datasets that are in memory."""

    def __init__(self, manifest: Manifest, memory_bytes: int = MEMORY_BYTES) -> None:
        self.manifest = manifest
        self.limit = memory_bytes
        self.small = SMALL
        self._used = 0
        self._kept: OrderedDict[tuple[str, int, str], Any] = OrderedDict()
        self._tables: Recent[tuple[str, str, int], Table] = Recent(MAX_TABLES)
        self._named: Recent[tuple[str, TypeKind, str], Table] = Recent(MAX_TABLES)
        self._lock = Lock()
        self.reads = 0
        """How often storage was asked for rows."""

    def table(self, snapshot: Snapshot, kind: TypeKind, name: str) -> Table:
        """Return the entities of one type in a snapshot, whoever looks: plans choose properties."""
        snapshot = snapshot.whole or snapshot
        asked = (snapshot.commit_id, kind, name)
        known = self._named.get(asked)
        if known is not None:
            return known
        type_ = snapshot.schema.find(kind, name)
        assert type_ is not None, "the plan was made for this schema"
        entry = snapshot.entry(type_.entity)
        key = (snapshot.head.schema_hash, type_.entity, entry.physical)
        found = self._tables.get(key)
        if found is None:
            members = snapshot.schema.key_order(name) if kind is TypeKind.NODE else ()
            found = self._tables.put(key, Table(self, type_, entry, members))
        return self._named.put(asked, found)

    def get(self, key: tuple[str, int, str]) -> Any:  # noqa: ANN401 - a column or an array
        """Return what is kept under a key, or None."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def keep(self, key: tuple[str, int, str], value: Any) -> None:  # noqa: ANN401 - as above
        """Keep something, and drop what was not used for longest when there is no room."""
        with self._lock:
            if key in self._kept or value.nbytes > self.limit:
                return
            self._kept[key] = value
            self._used += value.nbytes
            while self._used > self.limit:
                _, dropped = self._kept.popitem(last=False)
                self._used -= dropped.nbytes


@dataclass(frozen=True, slots=True)
class Places:
    """Where ids are, by what they hash to in this process."""

    hashes: Positions
    positions: Positions

    @classmethod
    def of(cls, ids: pa.Array) -> Places:
        """Note all ids of a column."""
        hashes = np.fromiter(map(hash, ids.to_pylist()), np.int64, len(ids))
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], order)

    def find(self, id_: str, ids: pa.Array) -> Positions:
        """Return where an id is in the column these were made from."""
        wanted = hash(id_)
        first, last = (int(self.hashes.searchsorted(wanted, side)) for side in ("left", "right"))
        found = [p for p in self.positions[first:last] if ids[int(p)].as_py() == id_]
        return np.array(found, np.int64)

    @property
    def nbytes(self) -> int:
        """How much memory the notes take."""
        return self.hashes.nbytes + self.positions.nbytes


class Table:
    """The entities of one type in one version, by position."""

    def __init__(
        self, store: Store, type_: AcceptedType, entry: DatasetEntry, members: tuple[str, ...] = ()
    ) -> None:
        self._store = store
        self.type = type_
        self.entry = entry
        self.rows = entry.rows
        self.members = members
        """The key properties in the order in which they form ids."""
        self._names: dict[str, str] | None = None
        self._fetched: dict[str, float] = {}
        self._covered: dict[str, float] = {}
        self._lookups = 0
        # A rename gives another column the same name in the same version.
        named = ",".join(f"{name}={id_:x}" for name, id_ in type_.property_ids.items())
        dataset = f"{entry.type_id:x}-{entry.incarnation:x}"
        self.key = (f"{dataset}:{named}", entry.physical)
        """What the version physically is, and what its columns are called."""

    @property
    def names(self) -> dict[str, str]:
        """The physical column of each logical one."""
        if self._names is None:
            with self._reading() as handle:
                columns = physical_columns(handle.schema)
            properties = {n: columns[i] for n, i in self.type.property_ids.items()}
            system = ("id", "src", "dst") if self.type.kind is TypeKind.EDGE else ("id",)
            self._names = {**{name: name for name in system}, **properties}
        return self._names

    @property
    def is_small(self) -> bool:
        """Tell whether everything is as soon read whole."""
        return self.rows <= self._store.small

    @property
    def everything(self) -> Positions:
        """All positions, always the same array."""
        key = (*self.key, "positions")
        found: Positions | None = self._store.get(key)
        if found is None:
            found = np.arange(self.rows)
            self._store.keep(key, found)
        return found

    def embedding_model(self, name: str) -> str | None:
        """Return the model that made all vectors of a property, if that is known."""
        with self._reading() as handle:
            return embedding_model(handle.schema.field(self.names[name]))

    def has(self, name: str) -> bool:
        """Tell whether a whole column is in memory, or may as well be."""
        return self.is_small or self._store.get((*self.key, name)) is not None

    def column(self, name: str) -> pa.Array:
        """Return a whole column."""
        key = (*self.key, name)
        found = self._store.get(key)
        if found is None:
            with self._reading() as handle:
                found = whole_column(handle, self.names[name])
            self._store.keep(key, found)
        return found

    def values(self, name: str, positions: Positions) -> pa.Array:
        """Return the values of a column at positions, in their order."""
        return self.several([name], positions)[name]

    def several(self, names: Sequence[str], positions: Positions) -> dict[str, pa.Array]:
        """Return the values of columns at positions; what is fetched is fetched at once."""
        apart = [name for name in names if not self._reads_whole(name, len(positions))]
        found = self._fetch(apart, positions) if apart else {}
        whole = [name for name in names if name not in found]
        if positions is self._store.get((*self.key, "positions")):
            return found | {name: self.column(name) for name in whole}
        index = pa.array(positions)
        return found | {name: self.column(name).take(index) for name in whole}

    def _reads_whole(self, name: str, rows: int) -> bool:
        """Tell whether a column is or should be in memory.

        It should when many rows are wanted at once, or when what was fetched so far took as long.
        """
        return self.has(name) or rows * SPARSE > self.rows or self._fetched.get(name, 0.0) < 0

    def _fetch(self, names: Sequence[str], positions: Positions) -> dict[str, pa.Array]:
        wanted, back = np.unique(positions, return_inverse=True)
        with self._reading() as handle:
            rows = rows_at(handle, self.addresses().at(wanted), [self.names[n] for n in names])
        for name, column in zip(names, rows.columns, strict=True):
            whole = self.rows * column.nbytes / max(1, len(wanted))
            left = self._fetched.get(name, whole if whole < self._store.limit / 4 else np.inf)
            self._fetched[name] = left - FETCH_BYTES - len(wanted) * FETCHED_ROW_BYTES
        columns = (column.combine_chunks() for column in rows.columns)
        if len(wanted) == len(positions) and (back[:-1] < back[1:]).all():
            return dict(zip(names, columns, strict=True))
        index = pa.array(back)
        return {name: column.take(index) for name, column in zip(names, columns, strict=True)}

    def codes(self, name: str, make: Callable[[pa.Array], Positions]) -> Positions:
        """Return small numbers for all values of a column, equal where values are."""
        key = (*self.key, f"codes of {name}")
        found: Positions | None = self._store.get(key)
        if found is None:
            found = make(self.column(name))
            self._store.keep(key, found)
        return found

    def positions_of(self, ids: pa.ChunkedArray) -> Positions:
        """Return where the entities with these ids are."""
        if len(ids) > LOOKED_UP or self.is_small:
            places = pc.index_in(ids, value_set=self.column("id"))
            offsets = np.arange(self.rows)
        else:
            found = self.lookup("id", ids.unique(), ["id"])
            places = pc.index_in(ids, value_set=found["id"].combine_chunks())
            offsets = found["_rowoffset"].to_numpy().astype(np.int64)
        if places.null_count:
            raise GraphCorrupt(f"an edge refers to nodes that {self.type.name} lacks")
        return offsets[np.asarray(places.combine_chunks(), np.int64)]

    def lookup(self, column: str, values: pa.Array, columns: list[str]) -> pa.Table:
        """Return the rows whose column is one of the values, through an index if there is one."""
        parts = []
        for start in range(0, max(1, len(values)), _CHUNK):
            literals = ", ".join(sql_literals(values.slice(start, _CHUNK))) or "NULL"
            parts.append(self.rows_where(f"`{self.names[column]}` IN ({literals})", columns))
        return pa.concat_tables(parts)

    def covered(self, name: str) -> float:
        """Return the share of rows an index of a column covers."""
        found = self._covered.get(name)
        if found is None:
            with self._reading() as handle:
                rows, _ = coverage(handle, index_name(self.names[name], IndexKind.BTREE))
            found = self._covered[name] = rows / max(1, self.rows)
        return found

    def since(self, old: DatasetEntry, columns: list[str], limit: int) -> Growth | None:
        """Return what changed since another version; None when it is much."""
        earlier = Table(self._store, self.type, old)
        with earlier._reading() as before, self._reading() as now:
            return growth(before, now, columns, limit)

    def pieces(self, columns: list[str], rows: int) -> Iterator[pa.Table]:
        """Yield all rows of some columns, many at a time."""
        with self._reading() as handle:
            yield from column_pieces(handle, [self.names[name] for name in columns], rows)

    def place_of(self, id_: str) -> Positions:
        """Return where the entity with an id is: one position, or none."""
        key = (*self.key, "places of ids")
        places: Places | None = self._store.get(key)
        if places is None and self._lookups * LOOKUP_ROWS < self.rows:
            self._lookups += 1
            [literal] = sql_literals(pa.array([id_]))
            return self.where(f"`id` = {literal}")
        if places is None:
            places = Places.of(self.column("id"))
            self._store.keep(key, places)
        return places.find(id_, self.column("id"))

    def where(self, condition: str) -> Positions:
        """Return the positions a filter over physical columns lets through, ascending."""
        with self._reading() as handle:
            return positions_where(handle, condition)

    def rows_where(self, condition: str, columns: list[str]) -> pa.Table:
        """Return rows a filter lets through, under logical names, with `_rowoffset`."""
        with self._reading() as handle:
            found = rows_where(handle, condition, [self.names[name] for name in columns])
        return found.rename_columns([*columns, "_rowoffset"])

    def addresses(self) -> Addresses:
        """Return where rows are."""
        key = (*self.key, "addresses")
        found: Addresses | None = self._store.get(key)
        if found is None:
            with self._reading() as handle:
                found = Addresses.of(handle)
            self._store.keep(key, found)
        return found

    def _reading(self) -> Any:  # noqa: ANN401 - a context of a Lance handle
        self._store.reads += 1
        return self._store.manifest.reading(self.type.entity, self.entry)
