"""A write puts small fragments together once there are many; nothing else changes."""

import pytest

from omnigraph.storage import compaction, staged_writes
from omnigraph.storage.compaction import compact_small_fragments
from omnigraph.storage.index import coverage, stage_btree_index


@pytest.fixture
def grown(empty, table):
    """Return a dataset of so many fragments, a row in each."""

    def grow(count, base=empty, letter="r"):
        for n in range(count):
            base = staged_writes.append(base, table({f"{letter}{n}": (f"text {n}", n)}))
        return base

    return grow


@pytest.fixture
def many(monkeypatch):
    monkeypatch.setattr(compaction, "MANY_FRAGMENTS", 6)


def sizes(handle):
    return [fragment.count_rows() for fragment in handle.get_fragments()]


def order(handle):
    return handle.to_table(columns=["id"])["id"].to_pylist()


def test_few_fragments_stay(many, grown):
    base = grown(5)
    assert compact_small_fragments(base) is base


def test_many_become_one_and_rows_keep_their_order(many, grown, rows):
    base = grown(6)
    made = compact_small_fragments(base)
    assert sizes(made) == [6]
    assert order(made) == order(base)
    assert rows(made) == rows(base)


def test_rows_taken_out_stay_out(many, grown, rows):
    base = staged_writes.delete(grown(9), ["r2", "r7"])
    made = compact_small_fragments(base)
    assert sizes(made) == [7]
    assert rows(made) == rows(base)
    assert set(rows(made)) == {f"r{n}" for n in range(9)} - {"r2", "r7"}


def test_large_ones_stay_as_they_are(many, monkeypatch, grown, table, rows):
    monkeypatch.setattr(compaction, "SMALL_ROWS", 20)
    large = staged_writes.append(grown(3), table({f"l{n}": ("large", n) for n in range(20)}))
    base = grown(4, large, "s")
    made = compact_small_fragments(base)
    assert sizes(made) == [20, 3, 4]
    assert rows(made) == rows(base)


def test_what_an_index_covers_stays(many, grown, rows):
    indexed = stage_btree_index(grown(7), "id")
    assert compact_small_fragments(indexed) is indexed
    base = grown(6, indexed, "s")
    made = compact_small_fragments(base)
    assert sizes(made) == [1] * 7 + [6]
    assert coverage(made, "id_btree") == (7, 1)
    assert rows(made) == rows(base)
    for id_ in ("r3", "s3"):
        assert made.to_table(filter=f"id = '{id_}'")["id"].to_pylist() == [id_]


def test_it_ends(many, grown):
    """Each write puts together what came since, so there are never many."""
    base = grown(1)
    seen = []
    for n in range(40):
        base = compact_small_fragments(grown(1, base, f"w{n}-"))
        seen.append(len(base.get_fragments()))
    assert max(seen) < 6
    assert base.count_rows() == 41
