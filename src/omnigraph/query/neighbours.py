"""This module finds the rows whose vectors may be the nearest, with an index where one helps.

Without an index no row is missed. With one, a few of the nearest may be: an index looks only where
most of them are. It is asked for more rows than wanted, and what it finds is ranked exactly.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.catalog import Metric, vector_metric
from omnigraph.errors import OmniError
from omnigraph.query.scored import Scored
from omnigraph.query.store import SPARSE, Store, Table
from omnigraph.query.vectors import (
    ORDINARY,
    Floats,
    Vectors,
    distances,
    items_of,
    lengths_of,
    matrix,
    possibly_first,
)
from omnigraph.storage.columns import Positions
from omnigraph.storage.index import (
    VECTOR_ROWS,
    IndexKind,
    coverage,
    index_name,
    nearest_rows,
)

MANY = 4
"""When at least one of so many rows of a type is asked about, all its vectors are looked at."""
MORE = 8
"""An index is asked for so many times the rows that are wanted."""
AT_LEAST = 64
"""An index is asked for no fewer rows."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The vectors of one property in one version, to be ranked by how near they are."""

    store: Store
    table: Table
    name: str

    def nearest(
        self, query: Floats, positions: Positions, count: int
    ) -> tuple[Positions, Floats] | None:
        """Return which of some positions are the nearest, ascending, and how far they are.

        There may be more of them than wanted. None is returned where all have to be looked at.
        """
        if not np.isfinite(query).all():
            return np.empty(0, np.int64), np.empty(0)
        many = len(positions) * MANY >= self.table.rows
        found = self._by_index(query, positions, count) if many else None
        if found is None:
            found = self._by_looking(query, positions, count, all_of_them=many)
        if found is None:
            return None
        rows, scores = found
        first = possibly_first(scores, scores, count)
        return rows[first], scores[first]

    @property
    def _metric(self) -> Metric:
        return vector_metric(self.table.type.definition, self.name)

    # --- by looking at all ---------------------------------------------------------------------

    def _by_looking(
        self, query: Floats, positions: Positions, count: int, *, all_of_them: bool
    ) -> tuple[Positions, Floats] | None:
        table = self.table
        if not (all_of_them or table.has(self.name) or len(positions) * SPARSE > table.rows):
            return None
        asked = None if all_of_them else positions
        low, high = self._vectors(len(query)).bounds(self._metric, query, asked)
        if all_of_them and positions is not table.everything:
            low, high = low[positions], high[positions]
        rows = possibly_first(low, high, count)
        vectors = matrix(table.values(self.name, positions[rows]), len(query))
        return rows, distances(self._metric, vectors, query[None])

    def _vectors(self, size: int) -> Vectors:
        key = (*self.table.key, f"lengths of {self.name}")
        found: Floats | None = self.store.get(key)
        column = self.table.column(self.name)
        if found is None:
            found = lengths_of(column, size)
            self.store.keep(key, found)
        return Vectors(items_of(column, size), found)

    # --- by index ------------------------------------------------------------------------------

    def _by_index(
        self, query: Floats, positions: Positions, count: int
    ) -> tuple[Positions, Floats] | None:
        """Return rows near a query; None when no index helps, or it finds too few of them."""
        table = self.table
        asked = max(AT_LEAST, MORE * count) * (1 + table.rows // len(positions))
        if asked * MANY > table.rows or np.abs(query).max() > ORDINARY[1] or not self.has_index():
            return None
        wanted, column = query.astype(np.float32), table.names[self.name]
        near: pa.Table | None = None
        # An index is derived: what is wrong with it is no reason to fail.
        with (
            self.store.manifest.reading(table.type.entity, table.entry) as handle,
            suppress(OmniError),
        ):
            near = nearest_rows(handle, column, self._metric, wanted, asked)
        if near is None:
            return None
        there = table.addresses().positions(near["_rowaddr"].to_numpy())
        order = np.argsort(there)
        vectors = matrix(near[column].combine_chunks(), len(query))
        far = Scored(there[order], distances(self._metric, vectors, query[None])[order])
        if positions is table.everything:
            rows, scores = far.positions, far.scores
        else:
            numbers = far.numbers(positions)
            rows = np.flatnonzero(numbers >= 0)
            scores = far.scores[numbers[rows]]
        return (rows, scores) if len(rows) >= count else None

    def has_index(self) -> bool:
        """Tell whether an index helps: there are many rows, and it covers at least half of them."""
        if self.table.rows < VECTOR_ROWS:
            return False
        key = (*self.table.key, f"coverage of {self.name}")
        found: Positions | None = self.store.get(key)
        if found is None:
            with self.store.manifest.reading(self.table.type.entity, self.table.entry) as handle:
                index = index_name(self.table.names[self.name], IndexKind.VECTOR, self._metric)
                found = np.array([coverage(handle, index)[0]])
            self.store.keep(key, found)
        return int(found[0]) * 2 >= self.table.rows
