"""Which maintenance is due: a pure function of counts, and the counts of real graphs."""

import pytest

import omnigraph as og
from omnigraph.maintain.due import TypeCounts, count_type

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("counts", "compaction"),
    [
        (TypeCounts(), False),
        (TypeCounts(rows=15, loose=15, small=15, loose_rows=15, largest_loose=1), False),
        (TypeCounts(rows=16, loose=16, small=16, loose_rows=16, largest_loose=1), True),
        # Rewriting a large fragment is not worth a few rows, but many fragments are.
        (
            TypeCounts(rows=500_015, loose=16, small=16, loose_rows=500_015, largest_loose=500_000),
            False,
        ),
        (
            TypeCounts(rows=550_000, loose=16, small=16, loose_rows=550_000, largest_loose=500_000),
            True,
        ),
        (
            TypeCounts(
                rows=500_127, loose=128, small=128, loose_rows=500_127, largest_loose=500_000
            ),
            True,
        ),
        # Fragments that an index covers are left alone until there are very many.
        (TypeCounts(rows=9_000, small=127), False),
        (TypeCounts(rows=9_000, small=128), True),
        (TypeCounts(rows=4_000, deleted=1_023), False),
        (TypeCounts(rows=4_000, deleted=1_024), True),
        (TypeCounts(rows=MILLION, deleted=200_000), False),
        (TypeCounts(rows=MILLION, deleted=250_000), True),
    ],
)
def test_compaction_is_due_when_it_is_worth_what_it_rewrites(counts, compaction):
    assert counts.compaction_due is compaction


@pytest.mark.parametrize(
    ("rows", "unindexed", "due"),
    [
        (0, 0, False),
        (1_023, 1_023, False),
        (1_024, 1_024, True),
        (MILLION, 49_999, False),
        (MILLION, 50_000, True),
    ],
)
def test_index_is_due_when_a_share_of_the_rows_lacks_it(rows, unindexed, due):
    assert TypeCounts(rows=rows, unindexed=unindexed).index_due is due


def test_counts_of_a_type_follow_its_fragments_and_indexes(tmp_path):
    graph = og.init(tmp_path / "g", "node A { name: String @key  x: I64? @index }")

    def counted():
        head = graph.snapshot()
        return count_type(graph._manifest, head.type_of("node:A"), head.entry("node:A"))

    for first in (0, 10):
        graph.load({"A": [{"name": f"a{n}"} for n in range(first, first + 10)]})
    graph.load({"A": [{"name": f"b{n}"} for n in range(30)]})
    expected = TypeCounts(
        rows=50, fragments=3, small=3, loose=3, loose_rows=50, largest_loose=30, unindexed=50
    )
    assert counted() == expected
    graph.optimize()
    assert counted() == TypeCounts(rows=50, fragments=1, small=1)
    graph.mutate('query m() { delete A where name = "a3" }')
    graph.mutate('query m() { insert A { name: "c" } }')
    expected = TypeCounts(
        rows=50,
        fragments=2,
        small=2,
        loose=1,
        loose_rows=1,
        largest_loose=1,
        deleted=1,
        unindexed=1,
    )
    assert counted() == expected
