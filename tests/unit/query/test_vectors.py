"""Distances, and which vectors may be the nearest."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from omnigraph.catalog import Metric
from omnigraph.query.vector_search import (
    VectorColumn,
    distances,
    to_matrix,
    top_k_candidates,
    vector_items,
    vector_norms,
)

SIZE = 5
every_metric = pytest.mark.parametrize("metric", list(Metric))
numbers = st.floats(width=32, allow_nan=False, allow_infinity=False) | st.sampled_from(
    [0.0, 1.0, -1.0, 0.1, 1e-45, 3e38]
)


def column_of(vectors):
    return pa.array(vectors, pa.list_(pa.float32(), SIZE))


def vectors_of(column):
    return VectorColumn(vector_items(column, SIZE), vector_norms(column, SIZE))


@every_metric
@given(
    vectors=arrays.arrays(np.float32, (7, SIZE), elements=numbers),
    query=arrays.arrays(np.float32, SIZE, elements=numbers),
)
def test_bounds_hold_whatever_the_numbers(metric, vectors, query):
    column, wanted = column_of([*vectors.tolist(), None]), query.astype(np.float64)
    exact = distances(metric, to_matrix(column, SIZE), wanted[None])
    low, high = vectors_of(column).bounds(metric, wanted, None)
    known = ~np.isnan(exact)
    assert not known[-1]
    assert np.isnan(high[-1])
    assert (low[known] <= exact[known]).all()
    assert (exact[known] <= high[known]).all()


@every_metric
def test_the_first_are_among_those_that_may_be(metric):
    draw = np.random.default_rng(5)
    for _ in range(20):
        # Few different values make many ties.
        values = draw.integers(-2, 3, (400, SIZE)).astype(np.float32)
        query = draw.integers(-2, 3, SIZE).astype(np.float64)
        column = column_of(values.tolist())
        exact = distances(metric, to_matrix(column, SIZE), query[None])
        low, high = vectors_of(column).bounds(metric, query, None)
        found = top_k_candidates(low, high, 10)
        ranked = np.argsort(exact[~np.isnan(exact)], kind="stable")
        last = exact[~np.isnan(exact)][ranked[:10]].max(initial=-np.inf)
        assert set(np.flatnonzero(exact <= last)) <= set(found)
        assert (np.diff(found) > 0).all()


def test_bounds_of_some_positions_are_those_of_all():
    column = column_of(np.eye(SIZE).tolist())
    query = np.arange(SIZE, dtype=np.float64)
    whole = vectors_of(column).bounds(Metric.L2, query, None)
    some = vectors_of(column).bounds(Metric.L2, query, np.array([3, 1, 3]))
    for one, other in zip(whole, some, strict=True):
        assert one[[3, 1, 3]].tolist() == other.tolist()


def test_a_slice_of_a_column_has_its_own_vectors():
    column = column_of([[1] * SIZE, None, [2] * SIZE, [3] * SIZE])[1:]
    assert vector_items(column, SIZE)[1:].tolist() == [[2] * SIZE, [3] * SIZE]
    assert vector_norms(column, SIZE)[1:] == pytest.approx([2 * SIZE**0.5, 3 * SIZE**0.5])
    assert np.isnan(vector_norms(column, SIZE)[0])


def test_no_rows_are_the_first_of_none():
    nothing = np.empty(0)
    assert top_k_candidates(nothing, nothing, 3).tolist() == []
    values = np.array([2.0, np.nan, 1.0])
    assert top_k_candidates(values, values, 0).tolist() == []
    assert top_k_candidates(values, values, 1).tolist() == [2]
    assert top_k_candidates(values, values, 5).tolist() == [0, 2]
