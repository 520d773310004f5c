"""Exact equality of values."""

import pyarrow as pa
import pytest

from omnigraph.types.arrow import same_values

VECTOR = pa.list_(pa.float32(), 2)
STRUCT = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
CASES = [
    (pa.string(), [None, "", "a", "A", "ä", "ä"]),
    (pa.int64(), [None, 0, 1, -1, 2**63 - 1]),
    (pa.uint64(), [None, 0, 2**64 - 1]),
    (pa.float64(), [None, 0.0, -0.0, 0.1, 0.1 + 1e-17, 0.30000000000000004]),
    (pa.float32(), [None, 0.0, -0.0, 1.5]),
    (pa.bool_(), [None, True, False]),
    (pa.date32(), [None, 0, 1]),
    (pa.date64(), [None, 0, 1, 86_400_000]),
    (pa.list_(pa.string()), [None, [], [""], ["a"], ["a", "a"], ["a", None]]),
    (pa.list_(pa.float64()), [None, [], [0.0], [-0.0]]),
    (pa.list_(pa.date64()), [None, [], [1], [2]]),
    (VECTOR, [None, [0.0, 0.0], [0.0, -0.0], [1.0, 2.0]]),
    (
        STRUCT,
        [
            None,
            {"data": b"", "uri": None},
            {"data": b"a", "uri": None},
            {"data": None, "uri": "s3://a"},
        ],
    ),
]


def column(values, type_):
    if pa.types.is_date(type_):
        numbers = pa.int32() if type_ == pa.date32() else pa.int64()
        return pa.array(values, numbers).view(type_)
    if type_ == pa.list_(pa.date64()):
        made = pa.array(values, pa.list_(pa.int64()))
        items = made.values.view(pa.date64())
        return pa.ListArray.from_arrays(made.offsets, items, mask=made.is_null())
    return pa.array(values, type_)


@pytest.mark.parametrize(("type_", "values"), CASES, ids=[str(type_) for type_, _ in CASES])
def test_only_a_value_itself_is_the_same(type_, values):
    left = column([v for v in values for _ in values], type_)
    right = column([v for _ in values for v in values], type_)
    found = same_values(left, pa.chunked_array([right.slice(0, 3), right.slice(3)]))
    texts = [repr(value) for value in values]
    assert found.tolist() == [one == other for one in texts for other in texts]


def test_columns_without_rows():
    assert same_values(pa.array([], pa.string()), pa.array([], pa.string())).tolist() == []
