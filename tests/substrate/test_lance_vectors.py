"""What distances Lance gives without an index, and which rows have none."""

import lance
import numpy as np
import pyarrow as pa
import pytest

VECTORS = {"same": [1, 0], "long": [2, 0], "zero": [0, 0], "none": None, "away": [-1, 0]}


@pytest.fixture
def handle(tmp_path):
    column = pa.array(VECTORS.values(), pa.list_(pa.float32(), 2))
    return lance.write_dataset(pa.table({"id": list(VECTORS), "v": column}), str(tmp_path / "d"))


def distances(handle, query, **options):
    nearest = {"column": "v", "q": np.array(query, np.float32), "k": 10, **options}
    rows = handle.to_table(nearest=nearest, columns=["id", "_distance"]).to_pylist()
    return {row["id"]: row["_distance"] for row in rows}


# query: nearest. A vector without length has no direction, so it has no cosine distance.
def test_cosine_is_one_minus_the_cosine_and_leaves_out_null_and_zero(handle):
    assert distances(handle, [1, 0], metric="cosine") == {"same": 0, "long": 0, "away": 2}
    assert distances(handle, [0, 0], metric="cosine") == {}


# query: nearest has to name the metric, and to take the root itself.
def test_the_default_is_the_square_of_the_euclidean_distance(handle):
    expected = {"same": 0, "long": 1, "zero": 1, "away": 4}
    assert distances(handle, [1, 0]) == expected
    assert distances(handle, [1, 0], metric="l2") == expected


# query: nearest by another metric gives what Lance gives.
def test_dot_is_one_minus_the_product_and_may_be_negative(handle):
    expected = {"long": -1, "same": 0, "zero": 1, "away": 2}
    found = distances(handle, [1, 0], metric="dot")
    assert found == expected
    assert list(found) == list(expected)
