"""This module gives the columns of a snapshot by position, and keeps them while there is room.

Versions never change, so what was read once is right for ever; only memory limits how much is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog import AcceptedType, TypeKind
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import DatasetEntry, Snapshot
from omnigraph.storage.columns import (
    Positions,
    positions_where,
    row_addresses,
    rows_at,
    rows_where,
    whole_column,
)
from omnigraph.storage.layout import physical_columns

MEMORY_BYTES = 1024 * 1024 * 1024
"""Columns of one graph that are kept in memory."""
SMALL = 65_536
"""Rows of a type of which columns are always read whole."""
SPARSE = 64
"""Fewer than one row of so many are fetched one by one."""


class Store:
    """The columns of a graph's datasets that are in memory."""

    def __init__(self, manifest: Manifest, memory_bytes: int = MEMORY_BYTES) -> None:
        self.manifest = manifest
        self._limit = memory_bytes
        self._used = 0
        self._kept: OrderedDict[tuple[str, int, str], Any] = OrderedDict()
        self._lock = Lock()

    def table(self, snapshot: Snapshot, kind: TypeKind, name: str) -> Table:
        """Return the entities of one type in a snapshot."""
        type_ = snapshot.schema.find(kind, name)
        assert type_ is not None, "the plan was made for this schema"
        return Table(self, type_, snapshot.entry(type_.entity))

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
            if key in self._kept or value.nbytes > self._limit:
                return
            self._kept[key] = value
            self._used += value.nbytes
            while self._used > self._limit:
                _, dropped = self._kept.popitem(last=False)
                self._used -= dropped.nbytes


class Table:
    """The entities of one type in one version, by position."""

    def __init__(self, store: Store, type_: AcceptedType, entry: DatasetEntry) -> None:
        self._store = store
        self.type = type_
        self.entry = entry
        self.rows = entry.rows
        self._names: dict[str, str] | None = None
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

    def has(self, name: str) -> bool:
        """Tell whether a whole column is in memory, or may as well be."""
        return self.rows <= SMALL or self._store.get((*self.key, name)) is not None

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
        if self.has(name) or len(positions) * SPARSE > self.rows:
            return self.column(name).take(pa.array(positions))
        wanted, back = np.unique(positions, return_inverse=True)
        with self._reading() as handle:
            found = rows_at(handle, self._addresses()[wanted], [self.names[name]]).column(0)
        return found.combine_chunks().take(pa.array(back))

    def where(self, condition: str) -> Positions:
        """Return the positions a filter over physical columns lets through, ascending."""
        with self._reading() as handle:
            return positions_where(handle, condition)

    def rows_where(self, condition: str, columns: list[str]) -> pa.Table:
        """Return rows a filter lets through, under logical names, with `_rowoffset`."""
        with self._reading() as handle:
            found = rows_where(handle, condition, [self.names[name] for name in columns])
        return found.rename_columns([*columns, "_rowoffset"])

    def _addresses(self) -> npt.NDArray[np.uint64]:
        key = (*self.key, "_rowaddr")
        found: npt.NDArray[np.uint64] | None = self._store.get(key)
        if found is None:
            with self._reading() as handle:
                found = row_addresses(handle)
            self._store.keep(key, found)
        return found

    def _reading(self) -> Any:  # noqa: ANN401 - a context of a Lance handle
        return self._store.manifest.reading(self.type.entity, self.entry)
