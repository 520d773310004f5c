"""The compare-and-swap: all or nothing, and of two from one base the second is refused."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.errors import Contention, GraphCorrupt
from omnigraph.storage.compare_and_swap import (
    ANCHOR_FRAGMENT,
    compare_and_swap,
    read_head_row,
    read_oldest_row,
    read_rows,
)


def table(**rows):
    return pa.table({"key": list(rows), "value": list(rows.values())})


@pytest.fixture
def handle(datasets):
    datasets.create("m", table(head="h1", one="1", two="2"))
    return datasets.open("m")


def swapped(handle, rows, stale=(), observe=lambda step: None):
    return compare_and_swap(handle, [rows], observe, stale)


def content(handle):
    """Return every value by key; of several heads the last counts."""
    found = handle.to_table().to_pylist()
    others = [row["key"] for row in found if row["key"] != "head"]
    assert len(set(others)) == len(others), "a key stands twice"
    return {row["key"]: row["value"] for row in found}


def test_swap_replaces_the_head_and_adds_the_other_rows(handle):
    made = swapped(handle, table(head="h2", three="3"))
    assert content(made) == {"head": "h2", "one": "1", "two": "2", "three": "3"}
    assert made.version == handle.version + 1
    assert content(handle) == {"head": "h1", "one": "1", "two": "2"}


def test_swap_replaces_stale_rows_too(handle):
    stale = read_rows(handle, "key = 'one'")
    made = swapped(handle, table(head="h2", one="uno"), stale)
    assert content(made) == {"head": "h2", "one": "uno", "two": "2"}


def test_swap_of_all_rows_of_a_fragment_removes_it(handle):
    made = swapped(handle, table(head="h2", a="a"))
    made = swapped(made, table(head="h3", b="b"), read_rows(made, "value IN ('a', 'h2')"))
    assert content(made) == {"head": "h3", "one": "1", "two": "2", "b": "b"}
    assert len(made.get_fragments()) == 2


def test_fragment_every_swap_touches_is_never_removed(handle):
    with pytest.raises(AssertionError, match="the anchor"):
        swapped(handle, table(head="h2"), read_rows(handle, "key IS NOT NULL"))
    with pytest.raises(AssertionError, match="the anchor"):
        compare_and_swap(handle, [table(head="h2")], lambda step: None, merged=[ANCHOR_FRAGMENT])
    assert content(handle) == {"head": "h1", "one": "1", "two": "2"}


def merged(handle, head="merged", stale=()):
    """Merge all fragments but the anchor, as a swap does that finds too many."""
    tail = handle.get_fragments()[1:]
    rows = pa.concat_tables([fragment.to_table() for fragment in tail])
    others = rows.filter(pc.not_equal(rows["key"], "head"))
    ids = [fragment.fragment_id for fragment in tail]
    tables = [others, table(head=head)] if others.num_rows else [table(head=head)]
    return compare_and_swap(handle, tables, lambda step: None, stale, ids)


def test_second_swap_from_one_base_is_refused_and_changes_nothing(handle, datasets):
    swapped(handle, table(head="first"))
    with pytest.raises(Contention, match="publishing: another writer was first"):
        swapped(handle, table(head="second", more="x"))
    assert content(datasets.open("m")) == {"head": "first", "one": "1", "two": "2"}


def test_of_many_racing_swaps_exactly_one_wins(datasets, handle):
    def attempt(number):
        try:
            swapped(datasets.open("m", 1), table(head=f"h{number}"))
        except Contention:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(attempt, range(12)))
    assert won.count(True) == 1
    assert content(datasets.open("m"))["head"] == f"h{won.index(True)}"


def test_long_chain_of_swaps_keeps_every_row_once(handle):
    for number in range(20):
        handle = swapped(handle, table(head=f"h{number}", **{f"k{number}": str(number)}))
    expected = {"one": "1", "two": "2", **{f"k{n}": str(n) for n in range(20)}}
    assert content(handle) == {"head": "h19", **expected}


def test_merged_fragments_hold_the_same_rows(handle):
    made = swapped(swapped(handle, table(head="h2", a="a")), table(head="h3", b="b"))
    compacted = merged(swapped(made, table(head="h4", c="c")), head="h4")
    assert content(compacted) == {**content(made), "head": "h4", "c": "c"}
    assert [fragment.count_rows() for fragment in compacted.get_fragments()] == [3, 3, 1]
    assert read_head_row(compacted, ["value"]) == {"value": "h4"}
    again = swapped(compacted, table(head="h5"))
    assert [fragment.num_deletions for fragment in again.get_fragments()] == [0, 0, 0, 0]


def test_swap_can_merge_fragments_and_remove_rows_of_others(handle):
    made = swapped(swapped(handle, table(head="h2", a="a")), table(head="h3", b="b", c="c"))
    made = merged(made, "h4", read_rows(made, "key = 'one'"))
    assert content(made) == {"head": "h4", "two": "2", "a": "a", "b": "b", "c": "c"}
    assert [fragment.count_rows() for fragment in made.get_fragments()] == [2, 3, 1]
    assert read_head_row(made, ["value"]) == {"value": "h4"}


def test_oldest_row_is_found_without_reading_the_newer_fragments(handle, tmp_path):
    before = set((tmp_path / "root" / "m" / "data").iterdir())
    made = swapped(handle, table(head="h2", a="a"))
    assert read_oldest_row(made, "key = 'a'").row == {"key": "a", "value": "a"}
    assert read_oldest_row(made, "key = 'nobody'") is None
    (newer,) = set((tmp_path / "root" / "m" / "data").iterdir()) - before
    newer.unlink()
    assert read_oldest_row(made, "key = 'one'").row == {"key": "one", "value": "1"}


def test_swap_from_a_base_that_was_merged_since_is_refused(handle, datasets):
    base = swapped(handle, table(head="h2"))
    merged(datasets.open("m"))
    with pytest.raises(Contention):
        swapped(base, table(head="late"))
    assert content(datasets.open("m"))["head"] == "merged"


def test_merge_from_a_base_that_was_swapped_since_is_refused(handle, datasets):
    base = swapped(handle, table(head="h2"))
    swapped(datasets.open("m"), table(head="h3", new="x"))
    with pytest.raises(Contention):
        merged(base)
    assert content(datasets.open("m")) == {"head": "h3", "one": "1", "two": "2", "new": "x"}


def test_steps_are_observed_in_order(handle):
    steps = []
    made = swapped(handle, table(head="h2", a="a"), observe=steps.append)
    assert steps == ["swap: new rows written"]
    swapped(made, table(head="h3"), read_rows(made, "key = 'a'"), steps.append)
    assert steps[1:] == ["swap: old rows marked", "swap: new rows written"]


def test_head_is_the_first_row_of_the_newest_fragment(handle):
    made = swapped(swapped(handle, table(head="h2", a="a")), table(head="h3"))
    assert read_head_row(made, ["key", "value"]) == {"key": "head", "value": "h3"}
    assert read_head_row(handle, ["value"]) == {"value": "h1"}


def test_newest_fragment_that_something_was_taken_from_has_no_first_row(handle):
    made = swapped(handle, table(head="h2", a="a"))
    made.delete("key = 'head'")
    assert read_head_row(made, ["value"]) is None


def test_dataset_whose_anchor_is_gone_is_not_written_to(handle):
    made = swapped(handle, table(head="h2", a="a"))
    made.optimize.compact_files()
    with pytest.raises(GraphCorrupt, match="another program writes"):
        swapped(made, table(head="h3"))


def test_foreign_writer_between_base_and_swap_is_noticed(handle, datasets):
    datasets.append("m", table(foreign="x"))
    with pytest.raises(GraphCorrupt, match="another program writes"):
        swapped(handle, table(head="h2"))
