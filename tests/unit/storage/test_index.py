"""Indexes are staged like data, cover what has none yet, and change no answer."""

import pytest

from omnigraph.storage import staged_writes
from omnigraph.storage.index import stage_btree_index, uncovered_fragments


def plan(handle, condition):
    return handle.scanner(columns=["id"], filter=condition).explain_plan()


def test_an_index_finds_what_a_scan_finds(base, rows):
    made = stage_btree_index(base, "id")
    assert made is not None
    assert rows(made) == rows(base)
    assert "ScalarIndexQuery" in plan(made, "id = 'b'")
    assert "ScalarIndexQuery" not in plan(base, "id = 'b'")
    assert made.to_table(filter="id IN ('b', 'e', 'z')")["id"].to_pylist() == ["b", "e"]


def test_an_index_is_not_built_twice(base):
    made = stage_btree_index(base, "id")
    assert made is not None
    assert stage_btree_index(made, "id") is None
    assert uncovered_fragments(made, "id_btree") == []


def test_an_index_is_extended_to_new_rows(base, table, rows):
    made = stage_btree_index(base, "id")
    grown = staged_writes.append(made, table({"f": ("fox", 6)}))
    assert uncovered_fragments(grown, "id_btree") == [2]
    assert grown.to_table(filter="id = 'f'")["text"].to_pylist() == ["fox"]
    whole = stage_btree_index(grown, "id")
    assert whole is not None
    assert [sorted(s.fragment_ids) for s in whole.describe_indices()[0].segments] == [[0, 1], [2]]
    assert whole.to_table(filter="id IN ('a', 'f')")["id"].to_pylist() == ["a", "f"]
    assert rows(whole) == rows(grown)


def test_rows_replaced_under_an_index_are_found_once_with_their_new_values(base, table):
    made = stage_btree_index(stage_btree_index(base, "id"), "text")
    after = staged_writes.upsert(made, table({"b": ("bat", 9)}))
    assert after.to_table(filter="id = 'b'").to_pylist() == [{"id": "b", "text": "bat", "score": 9}]
    assert after.to_table(filter="text = 'bee'").to_pylist() == []
    assert after.to_table(filter="text = 'bat'")["id"].to_pylist() == ["b"]


def test_rows_deleted_under_an_index_are_not_found(base):
    made = stage_btree_index(base, "id")
    after = staged_writes.delete(made, ["b", "d", "e"])
    assert after.to_table(filter="id IN ('b', 'c', 'd')")["id"].to_pylist() == ["c"]


def test_an_empty_dataset_needs_no_index(empty):
    assert stage_btree_index(empty, "id") is None


@pytest.mark.parametrize("column", ["id", "text", "score"])
def test_several_columns_have_indexes_of_their_own(base, column):
    made = base
    for name in ("id", "text", "score"):
        made = stage_btree_index(made, name)
    [index] = [i for i in made.describe_indices() if i.name == f"{column}_btree"]
    assert index.field_names == [column]
    assert [sorted(s.fragment_ids) for s in index.segments] == [[0, 1]]
