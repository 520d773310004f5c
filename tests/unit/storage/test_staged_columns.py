"""Staging columns: adding writes no data, widening writes only the new column."""

import pyarrow as pa
import pytest

from omnigraph.storage import staged_writes
from omnigraph.storage.layout import (
    PRIMARY_KEY,
    embedding_model,
    physical_columns,
    property_column,
)
from omnigraph.types import PropertyType, Scalar
from tests.support import staging

COLOUR = property_column("colour", PropertyType(Scalar.STRING), 9)
WIDE = property_column("score_wide", PropertyType(Scalar.I64), 8)


def widen(base):
    return staged_writes.widen_column(base, "score", WIDE)


def column(handle, name):
    found = handle.to_table(columns=["id", name])
    return dict(zip(found["id"].to_pylist(), found[name].to_pylist(), strict=True))


def files(folder):
    return {path for path in folder.rglob("*") if path.parent.name == "data"}


def test_added_column_is_null_everywhere_and_writes_no_data(base, tmp_path):
    before = files(tmp_path)
    staged = staged_writes.add_columns(base, [COLOUR])
    assert column(staged, "colour") == dict.fromkeys("abcde")
    assert files(tmp_path) == before
    assert base.schema.names == ["id", "text", "score"]


def test_added_column_is_filled_by_later_writes(base):
    staged = staged_writes.add_columns(base, [COLOUR])
    row = {"id": ["b"], "text": ["bee"], "score": [2], "colour": ["yellow"]}
    filled = staging.upsert(staged, pa.table(row, schema=staged.schema))
    assert column(filled, "colour") == {**dict.fromkeys("acde"), "b": "yellow"}


def test_several_columns_are_added_to_an_empty_dataset(empty):
    other = property_column("size", PropertyType(Scalar.F64), 10)
    staged = staged_writes.add_columns(empty, [COLOUR, other])
    assert staged.schema.names == ["id", "text", "score", "colour", "size"]
    assert staged.count_rows() == 0


def test_wider_column_holds_converted_values_beside_the_old_one(base):
    staged = widen(base)
    assert staged.schema.field("score_wide").type == pa.int64()
    assert column(staged, "score_wide") == {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}
    assert column(staged, "score") == {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}
    assert base.schema.names == ["id", "text", "score"]


def test_widening_writes_one_file_per_fragment(base, tmp_path):
    before = files(tmp_path)
    widen(base)
    assert len(files(tmp_path) - before) == len(base.get_fragments()) == 2


def test_widening_after_deletes_keeps_values_with_their_rows(base):
    staged = widen(staging.delete(base, ["a", "d"]))
    assert column(staged, "score_wide") == {"b": 2, "c": 3, "e": 5}
    assert column(staging.delete(staged, ["b"]), "score_wide") == {"c": 3, "e": 5}


def test_widening_an_empty_dataset_adds_the_column(empty):
    staged = widen(empty)
    assert staged.schema.names == ["id", "text", "score", "score_wide"]
    assert staged.count_rows() == 0


def test_widened_and_added_columns_live_through_every_later_change(base):
    staged = staged_writes.add_columns(widen(base), [COLOUR])
    row = {"id": ["f"], "text": ["fox"], "score": [6], "score_wide": [1 << 40], "colour": ["red"]}
    staged = staging.delete(staging.append(staged, pa.table(row, schema=staged.schema)), ["a"])
    assert column(staged, "score_wide") == {"b": 2, "c": 3, "d": 4, "e": 5, "f": 1 << 40}
    assert column(staged, "colour") == {**dict.fromkeys("bcde"), "f": "red"}


def test_filled_column_has_the_value_everywhere_and_writes_only_itself(base, tmp_path):
    before = files(tmp_path)
    staged = staged_writes.fill_column(staging.delete(base, ["a"]), COLOUR, pa.scalar("red"))
    assert column(staged, "colour") == dict.fromkeys("bcde", "red")
    assert len(files(tmp_path) - before) == len(base.get_fragments())


def test_filling_an_empty_dataset_adds_the_column(empty):
    staged = staged_writes.fill_column(empty, COLOUR, pa.scalar("red"))
    assert staged.schema.names == ["id", "text", "score", "colour"]


def test_rewritten_dataset_has_only_the_requested_columns(base):
    staged = staged_writes.rewrite_columns(staging.delete(base, ["a"]), ["id", "score"])
    assert staged.schema.names == ["id", "score"]
    assert column(staged, "score") == {"b": 2, "c": 3, "d": 4, "e": 5}
    later = staged_writes.fill_column(
        staged_writes.add_columns(staged, [COLOUR]), WIDE, pa.scalar(7, pa.int64())
    )
    assert column(later, "colour") == dict.fromkeys("bcde")
    assert column(later, "score_wide") == dict.fromkeys("bcde", 7)
    assert column(later, "score") == {"b": 2, "c": 3, "d": 4, "e": 5}


def test_an_empty_dataset_is_rewritten_too(empty):
    staged = staged_writes.rewrite_columns(empty, ["id"])
    assert (staged.schema.names, staged.count_rows()) == (["id"], 0)


@pytest.mark.parametrize(
    "change",
    [
        lambda base: staged_writes.add_columns(base, [COLOUR]),
        widen,
        lambda base: staged_writes.fill_column(base, COLOUR, pa.scalar("red")),
        lambda base: staged_writes.rewrite_columns(base, ["id", "score", "text"]),
        lambda base: staged_writes.overwrite(base, base.to_table()),
        lambda base: staging.upsert(base, base.to_table().slice(0, 2)),
        lambda base: staging.delete(base, ["a"]),
        lambda base: staging.append(base, base.to_table().slice(0, 0)),
    ],
    ids=["add", "widen", "fill", "rewrite", "overwrite", "upsert", "delete", "append"],
)
def test_identities_of_columns_survive(base, change):
    staged = change(base)
    assert staged.schema.field("id").metadata == PRIMARY_KEY
    found = physical_columns(staged.schema)
    assert found[7] == "text"
    assert found[8] in ("score", "score_wide")


def test_model_of_a_column_is_marked_on_a_new_version_only(base, rows):
    marked = staged_writes.record_embedding_models(base, {"text": "m1"})
    assert rows(marked) == rows(base)
    assert embedding_model(marked.schema.field("text")) == "m1"
    assert embedding_model(base.schema.field("text")) is None
    assert staged_writes.record_embedding_models(marked, {"text": None}).schema == base.schema
