"""Ids go to buckets: equal ones to the same, and together the buckets hold everything."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.pipeline.buckets import bucket_numbers, cut

IDS = st.lists(st.text(max_size=30), min_size=1, max_size=50)


@given(IDS, st.integers(1, 7), st.integers(0, 5))
def test_a_bucket_is_a_matter_of_the_id_alone(ids, count, skipped):
    column = pa.array([*["x"] * skipped, *ids], pa.string()).slice(skipped)
    found = bucket_numbers(column, count).tolist()
    assert all(0 <= number < count for number in found)
    alone = [bucket_numbers(pa.array([id_], pa.string()), count)[0] for id_ in ids]
    assert found == alone


@given(IDS, st.integers(1, 7))
def test_pieces_hold_every_row_once(ids, count):
    table = pa.table({"id": pa.array(ids, pa.string()), "n": list(range(len(ids)))})
    found = []
    for piece in cut(table, count):
        [data] = piece["piece"].to_pylist()
        rows = pa.ipc.open_stream(data).read_all()
        found += rows.to_pylist()
        if count > 1:
            numbers = bucket_numbers(rows["id"].combine_chunks(), count)
            assert set(numbers.tolist()) == {piece["bucket"][0].as_py()}
    assert sorted(found, key=lambda row: row["n"]) == table.to_pylist()


def test_numbered_ids_are_spread():
    column = pa.array([f"person-{number:08d}" for number in range(10_000)])
    numbers = bucket_numbers(column, 10).tolist()
    sizes = [numbers.count(number) for number in range(10)]
    assert min(sizes) > 800
    assert max(sizes) < 1200
