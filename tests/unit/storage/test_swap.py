"""The compare-and-swap: all or nothing, and of two from one base the second is refused."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.errors import Contention, GraphCorrupt
from omnigraph.storage.swap import (
    ANCHOR,
    merge_fragments,
    read_oldest,
    read_rows,
    read_sentinel,
    swap,
)


def table(**rows):
    return pa.table({"key": list(rows), "value": list(rows.values())})


@pytest.fixture
def handle(datasets):
    datasets.create("m", table(head="h1", one="1", two="2"))
    return datasets.open("m")


def swapped(handle, rows, stale=(), observe=lambda step: None):
    return swap(handle, read_sentinel(handle, "key", "head"), rows, stale, observe)


def content(handle):
    found = handle.to_table().to_pylist()
    assert len(found) == len({row["key"] for row in found}), "a key stands twice"
    return {row["key"]: row["value"] for row in found}


def test_swap_replaces_the_sentinel_and_adds_the_other_rows(handle):
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
    made = swapped(made, table(head="h3", b="b"), read_rows(made, "key = 'a'"))
    assert content(made) == {"head": "h3", "one": "1", "two": "2", "b": "b"}
    assert len(made.get_fragments()) == 2


def test_fragment_every_swap_touches_is_never_removed(handle):
    with pytest.raises(AssertionError, match="the anchor"):
        swapped(handle, table(head="h2"), read_rows(handle, "key <> 'head'"))
    with pytest.raises(AssertionError, match="the anchor"):
        merge_fragments(handle, [ANCHOR], [handle.to_table(), table(head="h2")])
    assert content(handle) == {"head": "h1", "one": "1", "two": "2"}


def merged(handle):
    """Merge all fragments but the anchor."""
    tail = handle.get_fragments()[1:]
    table = pa.concat_tables([fragment.to_table() for fragment in tail])
    is_head = pc.equal(table["key"], "head")
    rows, head = table.filter(pc.invert(is_head)), table.filter(is_head)
    return merge_fragments(handle, [fragment.fragment_id for fragment in tail], [rows, head])


def test_second_swap_from_one_base_is_refused_and_changes_nothing(handle, datasets):
    sentinel = read_sentinel(handle, "key", "head")
    swap(handle, sentinel, table(head="first"), [], lambda step: None)
    with pytest.raises(Contention, match="publishing: another writer was first"):
        swap(handle, sentinel, table(head="second", more="x"), [], lambda step: None)
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
    compacted = merged(swapped(made, table(head="h4", c="c")))
    assert content(compacted) == {**content(made), "head": "h4", "c": "c"}
    assert [fragment.count_rows() for fragment in compacted.get_fragments()] == [2, 3, 1]
    assert read_sentinel(compacted, "key", "head").row["value"] == "h4"
    again = swapped(compacted, table(head="h5"))
    assert [fragment.num_deletions for fragment in again.get_fragments()] == [1, 0, 0]


def test_swap_can_merge_fragments_by_the_way(handle):
    made = swapped(swapped(handle, table(head="h2", a="a")), table(head="h3", b="b", c="c"))
    stale = read_rows(made, "key IN ('one', 'b')")
    sentinel = read_sentinel(made, "key", "head")
    tail = made.get_fragments()[1:]
    merged = swap(made, sentinel, table(head="h4", b="B"), stale, lambda step: None, tail)
    assert content(merged) == {"head": "h4", "two": "2", "a": "a", "b": "B", "c": "c"}
    assert [fragment.count_rows() for fragment in merged.get_fragments()] == [1, 2, 2]
    assert read_sentinel(merged, "key", "head").row["value"] == "h4"


def test_oldest_row_is_found_without_reading_the_newer_fragments(handle, tmp_path):
    before = set((tmp_path / "root" / "m" / "data").iterdir())
    made = swapped(handle, table(head="h2", a="a"))
    assert read_oldest(made, "key = 'a'").row == {"key": "a", "value": "a"}
    assert read_oldest(made, "key = 'nobody'") is None
    (newer,) = set((tmp_path / "root" / "m" / "data").iterdir()) - before
    newer.unlink()
    assert read_oldest(made, "key = 'one'").row == {"key": "one", "value": "1"}


def test_swap_from_a_base_that_was_merged_since_is_refused(handle, datasets):
    base = swapped(handle, table(head="h2"))
    merged(datasets.open("m"))
    with pytest.raises(Contention):
        swapped(base, table(head="late"))
    assert content(datasets.open("m"))["head"] == "h2"


def test_merge_from_a_base_that_was_swapped_since_is_refused(handle, datasets):
    base = swapped(handle, table(head="h2"))
    swapped(datasets.open("m"), table(head="h3", new="x"))
    with pytest.raises(Contention):
        merged(base)
    assert content(datasets.open("m")) == {"head": "h3", "one": "1", "two": "2", "new": "x"}


def test_steps_are_told_in_order(handle):
    steps = []
    swapped(handle, table(head="h2"), observe=steps.append)
    assert steps == ["swap: old rows marked", "swap: new rows written"]


def test_sentinel_is_found_in_whatever_fragment_it_stands(handle):
    made = swapped(handle, table(head="h2", a="a"))
    found = read_sentinel(made, "key", "head")
    assert found.row == {"key": "head", "value": "h2"}
    assert found.address == read_rows(made, "key = 'head'")[0].address
    assert read_sentinel(made, "key", "one").row["value"] == "1"


@pytest.mark.parametrize("keys", [["other"], ["x", "head", "head"]], ids=["missing", "doubled"])
def test_sentinel_that_is_not_there_exactly_once_is_corruption(datasets, keys):
    datasets.create("x", pa.table({"key": keys}))
    with pytest.raises(GraphCorrupt, match="exactly one `head` row"):
        read_sentinel(datasets.open("x"), "key", "head")


def test_foreign_writer_between_base_and_swap_is_noticed(handle, datasets):
    datasets.append("m", table(foreign="x"))
    with pytest.raises(GraphCorrupt, match="something other than omnigraph writes"):
        swapped(handle, table(head="h2"))
