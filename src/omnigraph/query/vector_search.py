"""Find the rows whose vectors may be the nearest, with an index where one helps.

Without an index no row is missed. With one, a few of the nearest may be: an index looks only where
most of them are. It returns more rows than needed, and these are ranked exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog import Metric, vector_metric
from omnigraph.catalog.model import NodeType
from omnigraph.embed import Embedder, Role
from omnigraph.embed.embedder import embedder_for_model
from omnigraph.errors import OmniError
from omnigraph.query.column_cache import SPARSE_RATIO, ColumnCache, TypeTable
from omnigraph.query.ranking import SparseScores
from omnigraph.storage.columns import Positions
from omnigraph.storage.index import VECTOR_ROWS, IndexKind

# ----------------------------------------------------------------------
# Distances between vectors, and candidates for the nearest ones.


Floats = npt.NDArray[np.float64]
SAFE_NORMS = (1e-18, 1e18)
"""Lengths of vectors whose products neither overflow nor vanish in 32 bits."""
_FLOAT32_ROUNDOFF = 2.0**-24
_BLOCK_ROWS = 65_536


def to_matrix(column: pa.Array, size: int) -> Floats:
    """Return vectors as rows of a matrix; a null is a row without numbers."""
    matrix = np.full((len(column), size), np.nan)
    items = column.drop_null().flatten().to_numpy(zero_copy_only=False)
    matrix[np.asarray(column.is_valid())] = items.reshape(-1, size)
    return matrix


def _row_dot_products(one: Floats, other: Floats) -> Floats:
    """Return the product of each row of one with that of the other."""
    products: Floats = np.einsum("ij,ij->i", one, other)
    return products


def distances(metric: Metric, vectors: Floats, queries: Floats) -> Floats:
    """Return how far each vector is from its query, or from the only one; no number for none.

    The rows of either may be no numbers. A vector without length has no direction.
    """
    targets = np.broadcast_to(queries, vectors.shape)
    match metric:
        case Metric.L2:
            apart = vectors - targets
            return _row_dot_products(apart, apart)
        case Metric.DOT:
            return 1 - _row_dot_products(vectors, targets)
        case Metric.COSINE:
            products = _row_dot_products(vectors, targets)
            lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(queries, axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(lengths > 0, 1 - products / lengths, np.nan)


def vector_items(column: pa.Array, size: int) -> npt.NDArray[np.float32]:
    """Return the vectors of a column as rows of a matrix, not copied; what a null has is noise."""
    values: npt.NDArray[np.float32] = column.values.to_numpy(zero_copy_only=False)
    return values.reshape(-1, size)[column.offset : column.offset + len(column)]


def vector_norms(column: pa.Array, size: int) -> Floats:
    """Return the length of each vector; a null has none."""
    items = vector_items(column, size)
    norms = np.empty(len(items))
    for start in range(0, len(items), _BLOCK_ROWS):
        block = items[start : start + _BLOCK_ROWS].astype(np.float64)
        norms[start : start + _BLOCK_ROWS] = np.sqrt(_row_dot_products(block, block))
    if column.null_count:
        norms[np.asarray(column.is_null())] = np.nan
    return norms


@dataclass(frozen=True, slots=True)
class VectorColumn:
    """The vectors of one property by position, with their lengths; a null has no length."""

    items: npt.NDArray[np.float32]
    lengths: Floats

    def bounds(
        self, metric: Metric, query: Floats, positions: Positions | None
    ) -> tuple[Floats, Floats]:
        """Return a distance no vector is nearer than, and one none is farther than.

        The products are those of 32-bit numbers, in whatever order they are added. Rounding the
        query and `d` products and sums moves the product of `v` and `q` by at most (d + 2) u |v||q|
        and terms of higher order, where u = 2^-24; six more u cover those, and what 64-bit
        arithmetic adds, for any dimension there is. The query is scaled to length one, so that
        nothing overflows or vanishes for vectors of ordinary length; of others nothing is said.
        """
        items, lengths = self.items, self.lengths
        if positions is not None:
            items, lengths = items[positions], lengths[positions]
        scale = float(np.linalg.norm(query))
        unit = (query / scale if scale > 0 else query).astype(np.float32)
        with np.errstate(all="ignore"):
            products = (items @ unit).astype(np.float64) * scale
            error = (len(query) + 8) * _FLOAT32_ROUNDOFF * scale * lengths
            match metric:
                case Metric.COSINE:
                    guess = 1 - products / (lengths * scale)
                    error /= lengths * scale
                case Metric.L2:
                    squares = lengths * lengths + scale * scale
                    guess = squares - 2 * products
                    error = 2 * error + squares * 1e-12
                case Metric.DOT:
                    guess = 1 - products
                    error += np.abs(guess) * 1e-12
                case _ as unreachable:
                    assert_never(unreachable)
            low, high = guess - error, guess + error
        odd = ((lengths < SAFE_NORMS[0]) & (lengths > 0)) | (lengths > SAFE_NORMS[1])
        if odd.any():
            low[odd], high[odd] = -np.inf, np.inf
        return low, high


def top_k_candidates(low: Floats, high: Floats, count: int) -> Positions:
    """Return the rows that may be among the first by a value known to lie between two others.

    Rows whose bounds are NaN have no value.
    """
    there = np.flatnonzero(~np.isnan(high))
    if len(there) <= count:
        return there
    last = np.partition(high[there], count - 1)[count - 1] if count else -np.inf
    return there[low[there] <= last]


FULL_SCAN_RATIO = 4
"""All vectors of a type are compared when at least one of this many rows is requested."""
INDEX_OVERSAMPLING = 8
"""Rows requested from an index per row of the result."""
INDEX_MIN_ROWS = 64
"""Smallest number of rows that are requested from an index."""


@dataclass(frozen=True, slots=True)
class NearestVectors:
    """The vectors of one property in one version, to be ranked by how near they are."""

    store: ColumnCache
    table: TypeTable
    name: str

    def nearest(
        self, query: Floats, positions: Positions, count: int
    ) -> tuple[Positions, Floats] | None:
        """Return which of some positions are the nearest, ascending, and how far they are.

        There may be more of them than wanted. None is returned where all have to be looked at.
        """
        if not np.isfinite(query).all():
            return np.empty(0, np.int64), np.empty(0)
        many = len(positions) * FULL_SCAN_RATIO >= self.table.rows
        candidates = self._by_index(query, positions, count) if many else None
        if candidates is None:
            candidates = self._by_looking(query, positions, count, all_of_them=many)
        if candidates is None:
            return None
        rows, scores = candidates
        first = top_k_candidates(scores, scores, count)
        return rows[first], scores[first]

    @property
    def _metric(self) -> Metric:
        return vector_metric(self.table.type.definition, self.name)

    # --- by looking at all ---------------------------------------------------------------------

    def _by_looking(
        self, query: Floats, positions: Positions, count: int, *, all_of_them: bool
    ) -> tuple[Positions, Floats] | None:
        table = self.table
        if not (all_of_them or table.has(self.name) or len(positions) * SPARSE_RATIO > table.rows):
            return None
        chosen = None if all_of_them else positions
        low, high = self._vectors(len(query)).bounds(self._metric, query, chosen)
        if all_of_them and positions is not table.everything:
            low, high = low[positions], high[positions]
        rows = top_k_candidates(low, high, count)
        vectors = to_matrix(table.values(self.name, positions[rows]), len(query))
        return rows, distances(self._metric, vectors, query[None])

    def _vectors(self, size: int) -> VectorColumn:
        column = self.table.column(self.name)
        key = (*self.table.key, f"lengths of {self.name}")
        lengths = self.store.cached(key, lambda: vector_norms(column, size))
        return VectorColumn(vector_items(column, size), lengths)

    # --- by index ------------------------------------------------------------------------------

    def _by_index(
        self, query: Floats, positions: Positions, count: int
    ) -> tuple[Positions, Floats] | None:
        """Return rows near a query; None when no index helps, or it finds too few of them."""
        table = self.table
        index_rows = max(INDEX_MIN_ROWS, INDEX_OVERSAMPLING * count) * (
            1 + table.rows // len(positions)
        )
        if (
            index_rows * FULL_SCAN_RATIO > table.rows
            or np.abs(query).max() > SAFE_NORMS[1]
            or not self.has_index()
        ):
            return None
        narrow = query.astype(np.float32)
        near: pa.Table | None = None
        # An index is derived data: a damaged one must not fail the query.
        with suppress(OmniError):
            near = table.nearest(self.name, self._metric, narrow, index_rows)
        if near is None:
            return None
        there = table.addresses().positions(near["_rowaddr"].to_numpy())
        order = np.argsort(there)
        vectors = to_matrix(near[self.name].combine_chunks(), len(query))
        far = SparseScores(there[order], distances(self._metric, vectors, query[None])[order])
        if positions is table.everything:
            rows, scores = far.positions, far.scores
        else:
            numbers = far.numbers(positions)
            rows = np.flatnonzero(numbers >= 0)
            scores = far.scores[numbers[rows]]
        return (rows, scores) if len(rows) >= count else None

    def has_index(self) -> bool:
        """Return whether an index helps: there are many rows, and it covers at least half."""
        if self.table.rows < VECTOR_ROWS:
            return False

        def coverage() -> Positions:
            rows, _ = self.table.index_coverage(self.name, IndexKind.VECTOR, self._metric)
            return np.array([rows])

        covered = self.store.cached((*self.table.key, f"coverage of {self.name}"), coverage)
        return int(covered[0]) * 2 >= self.table.rows


# ----------------------------------------------------------------------
# Embed the texts of a query by the model that made the vectors they are compared with.


@dataclass(frozen=True, slots=True)
class QueryEmbeddings:
    """The texts of one run of a query: each is embedded once, those of one call together."""

    embedder: Embedder
    _known: dict[tuple[str, int, str], npt.NDArray[np.float32]] = field(default_factory=dict)

    def of(
        self, table: TypeTable, name: str, texts: Sequence[str]
    ) -> Mapping[str, npt.NDArray[np.float32]]:
        """Return the vectors of texts to be compared with a property, by text."""
        if not texts:
            return {}
        definition = table.type.definition
        assert isinstance(definition, NodeType), "only nodes have vectors that are searched"
        property_ = definition.properties[name]
        declared = None if property_.embed is None else property_.embed.model
        recorded = table.embedding_model(name)
        is_known = recorded is not None
        others = [recorded] if is_known or (declared is None and table.has_vectors(name)) else []
        place = f"{table.type.name}.{name}"
        embedder = embedder_for_model(self.embedder, place, declared, others)
        model, dimension = embedder.model, property_.type.dimension or 0
        missing = [t for t in dict.fromkeys(texts) if (model, dimension, t) not in self._known]
        if missing:
            vectors = embedder.embed(missing, dimension, Role.QUERY)
            self._known.update(zip([(model, dimension, t) for t in missing], vectors, strict=True))
        return {text: self._known[model, dimension, text] for text in texts}
