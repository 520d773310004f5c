"""Positions of IDs are those that Arrow finds, with and without compiled kernels."""

import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.query import id_lookup, kernel_library
from omnigraph.query.id_lookup import UNKNOWN, IdLookup

LETTERS = "ab\x00é日7"


def some_texts(draw, count):
    return ["".join(draw.choices(LETTERS, k=draw.randrange(20))) for _ in range(count)]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("has_kernels", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_positions_are_those_of_arrow(seed, has_kernels, kind, monkeypatch):
    if not has_kernels:
        monkeypatch.setattr(kernel_library, "LIBRARY", None)
    monkeypatch.setattr(id_lookup, "STEP_IDS", 7)
    draw = random.Random(seed)
    known = list(dict.fromkeys(some_texts(draw, (0, 1, 63, 64, 65, 500)[seed])))
    ids = pa.array(["left out", *known], kind)[1:]
    texts = some_texts(draw, 130) + draw.choices([*known, "x"], k=70)
    asked = pa.chunked_array([pa.array(["?", *texts[:90]])[1:], pa.array(texts[90:])])
    checks = []
    lookup = IdLookup.of(ids, lambda: checks.append("made"))
    found = lookup.find(asked, lambda: checks.append("found"))
    expected = pc.fill_null(pc.index_in(asked.cast(kind), value_set=ids), UNKNOWN)
    assert found.tolist() == expected.to_pylist()
    assert found.dtype == np.int32
    assert checks.count("found") == -(-90 // 7) + -(-110 // 7)
    assert checks.count("made") == (-(-len(ids) // 7) if has_kernels else 0)


def test_no_texts_have_no_positions():
    lookup = IdLookup.of(pa.array(["a"]), lambda: None)
    assert lookup.find(pa.chunked_array([], pa.string()), lambda: None).tolist() == []
    assert lookup.find(pa.chunked_array([pa.array(["a", None])]), lambda: None).tolist() == [0, -1]


def test_a_check_ends_it():
    def stop():
        raise KeyboardInterrupt

    ids = pa.array(["a", "b"])
    with pytest.raises(KeyboardInterrupt):
        IdLookup.of(ids, stop)
    with pytest.raises(KeyboardInterrupt):
        IdLookup.of(ids, lambda: None).find(pa.chunked_array([ids]), stop)
