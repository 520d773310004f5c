"""Columns of ids are compared alike, few at a time or many."""

import random

import pyarrow as pa
import pytest

from omnigraph.write import ids
from omnigraph.write.ids import ids_except


@pytest.fixture(params=["few", "many"], autouse=True)
def way(request, monkeypatch):
    """Force the lookup or the join, however many ids there are."""
    if request.param == "many":
        monkeypatch.setattr(ids, "JOIN_MIN_IDS", 0)


@pytest.mark.parametrize("width", [None, 1, 5])
@pytest.mark.parametrize("seed", range(5))
def test_what_is_left_is_what_others_do_not_have(seed, width):
    chance = random.Random(seed)

    def ids(count):
        found = (
            str(chance.randrange(10 ** (width or chance.randrange(1, 4)))) for _ in range(count)
        )
        return [id_.rjust(width or 0, "é" if seed == 4 else "0") for id_ in found]

    left, right = ids(50), ids(20)
    chunked = pa.chunked_array([left[:10], [], left[10:]], pa.string())
    for values in (pa.array(left), chunked):
        for others in (pa.array(right), pa.chunked_array([right[:3], right[3:]])):
            assert set(ids_except(values, others).to_pylist()) == set(left) - set(right)


def test_a_part_of_a_column_is_looked_at_alone():
    whole = pa.array(["aa", "bb", "cc", "dd"])
    assert ids_except(whole.slice(1, 2), whole.slice(2, 2)).to_pylist() == ["bb"]


def test_nothing_has_nothing_left():
    empty = pa.array([], pa.string())
    assert ids_except(empty, pa.array(["a"])).to_pylist() == []
    assert ids_except(pa.array(["a", "a"]), empty).to_pylist() == ["a"]
    assert ids_except(pa.chunked_array([], pa.string()), empty).to_pylist() == []


def test_the_empty_text_is_an_id_like_any():
    assert ids_except(pa.array(["", "a"]), pa.array(["a"])).to_pylist() == [""]
    assert ids_except(pa.array(["", ""]), pa.array([""])).to_pylist() == []
