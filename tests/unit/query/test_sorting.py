"""Rows are sorted in steps, and the order is that of one sort."""

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.query import sorting
from omnigraph.query.sorting import Sorter, column_values, sort_indices

CHANCE = np.random.default_rng(7)
ROWS = 500


def some(values, null=0.0):
    picked = [values[place] for place in CHANCE.integers(0, len(values), ROWS)]
    return [None if CHANCE.random() < null else value for value in picked]


COLUMNS = {
    "few integers": pa.array(some([1, 2, 3], 0.1), pa.int64()),
    "integers": pa.array(CHANCE.integers(-(2**63), 2**63 - 1, ROWS)),
    "unsigned": pa.array(some([0, 2**63, 2**64 - 1], 0.1), pa.uint64()),
    "floats": pa.array(some([-1.5, -0.0, 0.0, 2.0**60, float("inf")], 0.1), pa.float64()),
    "texts": pa.array(some(["", "a", "a\0", "a\0\0", "ab", "é", "𐀀", "b" * 50], 0.1)),
    "alike texts": pa.array([f"person-with-a-long-name-{n % 177:05d}" for n in range(ROWS)]),
    "long and alike": pa.array(["x" * 40 + f"{n % 13}" * (n % 9) for n in range(ROWS)]),
    "truth": pa.array(some([True, False], 0.1)),
    "days": pa.array(some([-5, 0, 20_000], 0.1), pa.int32()).view(pa.date32()),
    "instants": pa.array(some([-5, 0, 20_000], 0.1), pa.int64()).view(pa.date64()),
    "lists": pa.array(some([[], [1], [1, 2], [None], [0]], 0.1), pa.list_(pa.int64())),
    "nothing": pa.array([None] * ROWS, pa.string()),
}
NUMBER = pa.array(CHANCE.permutation(ROWS))


@pytest.fixture(params=[4, 50])
def small(monkeypatch, request):
    monkeypatch.setattr(sorting, "SORT_RUN_ROWS", request.param)
    monkeypatch.setattr(sorting, "BUCKET_STEP_ROWS", 20 * request.param)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", COLUMNS)
def test_sorting_in_steps_gives_the_order_of_one_sort(small, name, descending):
    keys = [(COLUMNS[name], descending), (COLUMNS["texts"], False), (NUMBER, True)]
    expected = sort_indices(keys, ROWS)
    sorter = Sorter([(column_values(c), down) for c, down in keys], lambda: None)
    assert sorter.order(np.arange(ROWS)).tolist() == expected.tolist()
    some_rows = np.flatnonzero(CHANCE.random(ROWS) < 0.5)
    chosen = sorter.order(some_rows)
    assert chosen.tolist() == [row for row in expected.tolist() if row in set(some_rows.tolist())]
    for most in (0, 1, 10, ROWS):
        found = sorter.order(np.arange(ROWS), most)
        assert found[:most].tolist() == expected[:most].tolist()


def test_the_clock_is_looked_at_between_steps(small):
    ticks = []
    keys = [(column_values(COLUMNS["alike texts"]), False), (column_values(NUMBER), False)]
    Sorter(keys, lambda: ticks.append(1)).order(np.arange(ROWS))
    assert len(ticks) > 3
    fewer = len(ticks)
    ticks.clear()
    Sorter(keys, lambda: ticks.append(1)).order(np.arange(ROWS), 1)
    assert len(ticks) < fewer


def test_rows_without_keys_or_all_alike_keep_their_order(small):
    rows = np.arange(ROWS)
    assert Sorter([], lambda: None).order(rows).tolist() == rows.tolist()
    nothing = [(column_values(COLUMNS["nothing"]), True)]
    assert Sorter(nothing, lambda: None).order(rows).tolist() == rows.tolist()
