"""Ids go to buckets: equal ones to the same, and what buckets add up to is what all ids do."""

from collections import Counter
from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.pipeline.load.aggregation import (
    KeyContribution,
    bucket_numbers,
    partition_by_bucket,
    sum_by_id,
)

IDS = st.lists(st.text(max_size=30), min_size=1, max_size=50)
FEW = st.lists(st.text("ab", max_size=3), max_size=30)


def texts(*ids):
    return pa.array(ids, pa.string())


@given(IDS, st.integers(1, 7), st.integers(0, 5))
def test_a_bucket_is_a_matter_of_the_id_alone(ids, count, skipped):
    column = pa.array([*["x"] * skipped, *ids], pa.string()).slice(skipped)
    found = bucket_numbers(column, count).tolist()
    assert all(0 <= number < count for number in found)
    alone = [bucket_numbers(texts(id_), count)[0] for id_ in ids]
    assert found == alone


@given(IDS, st.integers(1, 7))
def test_pieces_hold_every_row_once(ids, count):
    table = pa.table({"id": pa.array(ids, pa.string()), "n": list(range(len(ids)))})
    found = []
    for number, piece in enumerate(pieces(*partition_by_bucket(table, count))):
        rows = [] if piece is None else piece.to_pylist()
        found += rows
        if count > 1:
            column = texts(*(row["id"] for row in rows))
            assert set(bucket_numbers(column, count).tolist()) <= {number}
    assert sorted(found, key=lambda row: row["n"]) == table.to_pylist()


def pieces(data, ends):
    """Return the rows of each bucket, None if it has none."""
    return [
        pa.ipc.open_stream(data[start:stop]).read_all() if start < stop else None
        for start, stop in pairwise([0, *ends])
    ]


SHARES = [
    KeyContribution(None, ("id",), {"s": 1}),
    KeyContribution(None, ("id",), {"referred": 1}, distinct=True),
    KeyContribution(None, ("id",), {"number": "n", "touched": 1}, distinct=True),
    KeyContribution(None, ("id",), {"c": 1, "addr": "addr"}),
    KeyContribution(None, ("id",), {"number": -1, "touched": 1}),
]
NAMES = ["s", "c", "addr", "referred", "number", "touched"]


@given(FEW, FEW, FEW, st.sets(st.text("ab", max_size=3)), FEW, st.integers(1, 5))
def test_buckets_add_up_to_the_result_over_all_ids(rows, ends, counted, committed, moved, count):
    addresses = {id_: (number << 32) + 2**60 + 1 for number, id_ in enumerate(sorted(committed))}
    given_ = [rows, ends, counted, sorted(committed), moved]
    buckets = [[] for _ in range(count)]
    for number, (share, ids) in enumerate(zip(SHARES, given_, strict=True)):
        columns = {"id": pa.array(ids, pa.string())}
        if "addr" in share.numbers:
            columns["addr"] = pa.array([addresses[id_] for id_ in ids], pa.int64())
        for bucket, piece in zip(
            buckets,
            pieces(*partition_by_bucket(pa.table(columns), count, share.condensed)),
            strict=True,
        ):
            bucket += [] if piece is None else [(number, piece)]
    found = {}
    for bucket in buckets:
        ids, sums = sum_by_id(bucket, [share.numbers for share in SHARES], NAMES)
        for place, id_ in enumerate(ids.to_pylist()):
            assert id_ not in found
            found[id_] = [int(sums[name][place]) for name in NAMES]
    often, left = Counter(counted), Counter(moved)
    assert found == {
        id_: [
            rows.count(id_),
            int(id_ in committed),
            addresses.get(id_, 0),
            int(id_ in ends),
            often[id_] - left[id_],
            int(id_ in often) + left[id_],
        ]
        for id_ in {*rows, *ends, *counted, *committed, *moved}
    }


def test_numbered_ids_are_spread():
    column = texts(*(f"person-{number:08d}" for number in range(10_000)))
    numbers = bucket_numbers(column, 10).tolist()
    sizes = [numbers.count(number) for number in range(10)]
    assert min(sizes) > 800
    assert max(sizes) < 1200
