"""Ids made whole columns at a time are those made value by value."""

import pyarrow as pa
import pytest
from ulid import ULID

from omnigraph.types import PropertyType, Scalar, entity_id, key_text
from omnigraph.types.arrow import to_column, to_values
from omnigraph.write.ids import generate_ids, ids_from_keys, key_texts
from tests.support.scalars import ODD, SCALARS


@pytest.mark.parametrize("count", [0, 1, 2, 1_000, 70_000])
def test_fresh_ids_are_different_ulids_in_ascending_order(count):
    ids = generate_ids(count).to_pylist()
    assert len(set(ids)) == count
    assert ids == sorted(ids)
    assert [str(ULID.from_str(id_)) for id_ in ids[:50]] == ids[:50]


def test_fresh_ids_know_their_time():
    [first] = generate_ids(1).to_pylist()
    assert abs(ULID.from_str(first).milliseconds - ULID().milliseconds) < 60_000


def test_fresh_ids_of_two_calls_differ():
    assert not set(generate_ids(100).to_pylist()) & set(generate_ids(100).to_pylist())


@pytest.mark.parametrize("type_", SCALARS, ids=str)
def test_texts_of_a_column_are_the_texts_of_its_values(type_):
    values = ODD[type_.scalar]
    texts = [key_text(value, type_) for value in values]
    assert key_texts(to_column(values, type_), type_).to_pylist() == texts
    assert ids_from_keys([to_column(values, type_)], [type_]).to_pylist() == texts


@pytest.mark.parametrize("type_", SCALARS, ids=str)
def test_texts_of_a_sliced_or_chunked_column_are_the_same(type_):
    values = [None, *ODD[type_.scalar], None]
    column = to_column(values, type_)
    whole = key_texts(column, type_).to_pylist()
    assert key_texts(column.slice(1), type_).to_pylist() == whole[1:]
    chunked = pa.chunked_array([column.slice(0, 2), column.slice(2, 0), column.slice(2)])
    assert key_texts(chunked, type_).to_pylist() == whole
    assert key_texts(pa.chunked_array([], column.type), type_).to_pylist() == []
    assert whole[0] is None


@pytest.mark.parametrize("other", SCALARS, ids=str)
def test_composite_ids_are_those_of_their_members(other):
    text = PropertyType(Scalar.STRING)
    words = ["", "a", 'q"q', "\\", "é", ",", '["a"]', "line\nbreak", "\N{GRINNING FACE}"]
    values = [ODD[other.scalar][n % len(ODD[other.scalar])] for n in range(len(words))]
    columns = [to_column(values, other), to_column(words, text)]
    expected = [entity_id([(v, other), (w, text)]) for v, w in zip(values, words, strict=True)]
    assert ids_from_keys(columns, [other, text]).to_pylist() == expected
    chunked = [pa.chunked_array([c.slice(0, 3), c.slice(3)]) for c in columns]
    assert ids_from_keys(chunked, [other, text]).to_pylist() == expected
    assert to_values(columns[0], other) == values


def test_documented_ids_are_made():
    number, flag = PropertyType(Scalar.I64), PropertyType(Scalar.BOOL)
    columns = [to_column([7], number), to_column([True], flag)]
    assert ids_from_keys(columns, [number, flag]).to_pylist() == ['["7","true"]']
    assert (
        ids_from_keys([to_column([-0.0], PropertyType(Scalar.F64))], [PropertyType(Scalar.F64)])[
            0
        ].as_py()
        == "0"
    )
