"""Grouped and distinct results with lists have one order, whatever order the data came in."""

from itertools import permutations
from math import inf

import numpy as np
import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.query.sorting import sort_indices
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import to_column

SCHEMA = """
node P { name: String @key  g: I32  tags: [String]?  v: Vector(2)?  days: [Date]? }
"""
ROWS = [
    {"name": "a", "g": 1, "tags": ["b"], "v": [1.0, 2.0], "days": ["2024-01-02"]},
    {"name": "b", "g": 1, "tags": ["a", "z"], "v": [-1.0, 5.0], "days": []},
    {"name": "c", "g": 1, "tags": ["a"], "v": [1.0, -2.0], "days": None},
    {"name": "d", "g": 1, "tags": [], "v": None, "days": ["1969-12-31", "2024-01-02"]},
    {"name": "e", "g": 1, "tags": None, "v": [1.0, 1.5], "days": ["1969-12-31"]},
]
IN_ORDER = {"tags": "edcba", "v": "dbcea", "days": "cbeda"}
RETURNS = {
    "grouped": "return { $p.%s as l, $p.g as g, count($p) as n } order { n } limit 1 offset %d",
    "distinct": "return distinct { $p.%s as l, $p.g as g } order { $p.g } limit 1 offset %d",
}


@pytest.mark.parametrize("loaded", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 4, 0, 3, 1)])
def test_the_order_does_not_depend_on_how_data_was_loaded(tmp_path, loaded):
    graph = og.init(tmp_path / "g", SCHEMA)
    for place in loaded:
        graph.insert("P", [ROWS[place]])
    known = {row["name"]: row for row in ROWS}
    for name, order in IN_ORDER.items():
        for text in RETURNS.values():
            query = "query q() { match { $p: P } %s }"
            found = [
                graph.query(query % (text % (name, place))).rows[0]["l"]
                for place in range(len(ROWS))
            ]
            assert found == [known[row][name] for row in order]


LISTS = {
    Scalar.I64: [None, [], [None], [None, 5], [-(2**63)], [0], [0, 0], [0, 1], [2**63 - 1]],
    Scalar.U64: [None, [], [0], [2**63], [2**64 - 1]],
    Scalar.F64: [None, [], [None], [-inf], [-1.5], [0.0], [0.0, 1.0], [1e300], [inf]],
    Scalar.BOOL: [None, [], [None], [False], [False, True], [True]],
    Scalar.STRING: [None, [], [""], ["", "a"], ["B"], ["a"], ["a", ""], ["ab"], ["é"], ["𐀀"]],
}


@pytest.mark.parametrize("scalar", LISTS)
def test_lists_compare_element_by_element_then_by_length(scalar):
    expected = LISTS[scalar]
    type_ = PropertyType(scalar, is_list=True)
    for seed in range(20):
        shuffled = np.random.default_rng(seed).permutation(len(expected))
        column = to_column([expected[place] for place in shuffled], type_)
        order = sort_indices([(column, False)], len(column))
        assert column.take(pa.array(order)).to_pylist() == expected
        order = sort_indices([(column, True)], len(column))
        assert column.take(pa.array(order)).to_pylist() == expected[::-1]


def test_a_slice_of_lists_is_ordered_like_any_other():
    column = pa.array([[9], [3], [], [2, 1], None, [2]]).slice(1, 4)
    assert sort_indices([(column, False)], 4).tolist() == [3, 1, 2, 0]


def test_vectors_compare_like_lists():
    vectors = [[-1.0, 0.0], [0.0, -1.0], [0.0, 0.5], [2.0, -5.0]]
    for shuffled in permutations(range(4)):
        column = pa.array([vectors[place] for place in shuffled], pa.list_(pa.float32(), 2))
        order = sort_indices([(column, False)], 4)
        assert column.take(pa.array(order)).to_pylist() == vectors
    assert sort_indices([(column.slice(2, 0), False)], 0).tolist() == []
