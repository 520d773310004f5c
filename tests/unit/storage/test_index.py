"""Indexes are staged like data, cover what has none yet, and change no answer."""

from dataclasses import replace

import pytest
from lance import LanceOperation

from omnigraph.storage.index import (
    IndexKind,
    add_index,
    build_segment,
    drop_text_indexes,
    index_task,
    uncovered_fragments,
)
from omnigraph.storage.staged_writes import stage_operation
from tests.support import staging


def plan(handle, condition):
    return handle.scanner(columns=["id"], filter=condition).explain_plan()


def test_an_index_finds_what_a_scan_finds(base, rows):
    made = staging.index_column(base, "id")
    assert made is not None
    assert rows(made) == rows(base)
    assert "ScalarIndexQuery" in plan(made, "id = 'b'")
    assert "ScalarIndexQuery" not in plan(base, "id = 'b'")
    assert made.to_table(filter="id IN ('b', 'e', 'z')")["id"].to_pylist() == ["b", "e"]


def test_an_index_is_not_built_twice(base):
    made = staging.index_column(base, "id")
    assert made is not None
    assert staging.index_column(made, "id") is None
    assert uncovered_fragments(made, "id_btree") == []


def test_a_text_index_of_an_older_release_is_dropped_alone(base, rows):
    made = staging.index_column(base, "id")
    assert drop_text_indexes(made) is made
    segment = made.create_index_uncommitted(
        "text", "INVERTED", name="text_text", replace=True, fragment_ids=[0, 1]
    )
    segment = replace(made.merge_existing_index_segments([segment]), name="text_text")
    indexed = stage_operation(made, LanceOperation.CreateIndex([segment], []))
    assert {index.name for index in indexed.describe_indices()} == {"id_btree", "text_text"}
    dropped = drop_text_indexes(indexed)
    assert [index.name for index in dropped.describe_indices()] == ["id_btree"]
    assert rows(dropped) == rows(base)
    assert drop_text_indexes(dropped) is dropped


def test_an_index_is_extended_to_new_rows(base, table, rows):
    made = staging.index_column(base, "id")
    grown = staging.append(made, table({"f": ("fox", 6)}))
    assert uncovered_fragments(grown, "id_btree") == [2]
    assert grown.to_table(filter="id = 'f'")["text"].to_pylist() == ["fox"]
    task = index_task(grown, "id", IndexKind.BTREE)
    assert task is not None
    whole = add_index(grown, task, build_segment(grown, task))
    assert [sorted(s.fragment_ids) for s in whole.describe_indices()[0].segments] == [[0, 1], [2]]
    assert whole.to_table(filter="id IN ('a', 'f')")["id"].to_pylist() == ["a", "f"]
    assert rows(whole) == rows(grown)


def test_rows_replaced_under_an_index_are_found_once_with_their_new_values(base, table):
    made = staging.index_column(staging.index_column(base, "id"), "text")
    after = staging.upsert(made, table({"b": ("bat", 9)}))
    assert after.to_table(filter="id = 'b'").to_pylist() == [{"id": "b", "text": "bat", "score": 9}]
    assert after.to_table(filter="text = 'bee'").to_pylist() == []
    assert after.to_table(filter="text = 'bat'")["id"].to_pylist() == ["b"]


def test_rows_deleted_under_an_index_are_not_found(base):
    made = staging.index_column(base, "id")
    after = staging.delete(made, ["b", "d", "e"])
    assert after.to_table(filter="id IN ('b', 'c', 'd')")["id"].to_pylist() == ["c"]


def test_an_empty_dataset_needs_no_index(empty):
    assert staging.index_column(empty, "id") is None


@pytest.mark.parametrize("column", ["id", "text", "score"])
def test_several_columns_have_indexes_of_their_own(base, column):
    made = base
    for name in ("id", "text", "score"):
        made = staging.index_column(made, name)
    [index] = [i for i in made.describe_indices() if i.name == f"{column}_btree"]
    assert index.field_names == [column]
    assert [sorted(s.fragment_ids) for s in index.segments] == [[0, 1]]
