"""Staging rows: exactly the rows asked for, on top of a base that stays as it is."""

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.errors import AlreadyExists, OmniError
from omnigraph.storage import staged_writes
from omnigraph.storage.version_diff import rebase_deletions

BASE = {"a": ("ant", 1), "b": ("bee", 2), "c": ("cat", 3), "d": ("dog", 4), "e": ("elk", 5)}
WILD = ["o'brien", "''", "'", "\\'", 'a"b', "a\\b", "%", "_", "\n", "\r\n\t", "", " ", ";--", "é😀"]
WILD += ["x" * 3000, "[a]", "{a}", "$1", ":x", "?", "`a`", "NULL", "a,b", "(", "\x00"]


def reader(rows):
    return pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())


def numbers(count, value):
    return {f"n{i}": ("row", value) for i in range(count)}


@pytest.mark.parametrize("form", [lambda rows: rows, reader], ids=["table", "reader"])
def test_append_adds_exactly_the_given_rows(base, table, rows, form):
    staged = staged_writes.append(base, form(table({"f": ("fox", 6), "g": (None, None)})))
    assert rows(staged) == {**BASE, "f": ("fox", 6), "g": (None, None)}


def test_insert_of_new_ids_adds_exactly_the_given_rows(base, table, rows):
    assert rows(staged_writes.insert(base, table({"f": ("fox", 6)}))) == {**BASE, "f": ("fox", 6)}


def test_insert_of_a_known_id_names_it_and_stages_nothing(base, table, datasets, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(AlreadyExists) as caught:
        staged_writes.insert(base, table({"z": ("new", 0), "c": ("again", 0), "b": ("again", 0)}))
    assert caught.value.code == "key_conflict"
    assert caught.value.details == {"entity_id": "b"}
    assert sorted(tmp_path.rglob("*")) == before


def test_upsert_replaces_known_ids_and_adds_the_others(base, table, rows):
    staged = staged_writes.upsert(
        base, table({"b": ("bat", 22), "e": (None, None), "f": ("fox", 6)})
    )
    assert rows(staged) == {**BASE, "b": ("bat", 22), "e": (None, None), "f": ("fox", 6)}


def test_upsert_of_a_whole_fragment_removes_it(base, table, rows):
    staged = staged_writes.upsert(base, table({"d": ("deer", 44), "e": ("eel", 55)}))
    assert rows(staged) == {**BASE, "d": ("deer", 44), "e": ("eel", 55)}
    assert [f.count_rows() for f in staged.get_fragments()] == [3, 2]
    assert all(f.num_deletions == 0 for f in staged.get_fragments())


def test_upsert_into_an_empty_dataset_adds(empty, table, rows):
    assert rows(staged_writes.upsert(empty, table(BASE))) == BASE


@pytest.mark.parametrize(
    "ids",
    [["b"], ["b", "d"], ["d", "e"], ["a", "b", "c", "d", "e"], ["nobody"], ["b", "nobody", "b"]],
    ids=lambda ids: ",".join(ids),
)
def test_delete_removes_exactly_the_ids_that_are_there(base, rows, ids):
    staged = staged_writes.delete(base, ids)
    assert rows(staged) == {id_: row for id_, row in BASE.items() if id_ not in ids}


def test_delete_of_whole_fragments_leaves_none_of_them(base):
    assert [f.count_rows() for f in staged_writes.delete(base, ["d", "e"]).get_fragments()] == [3]
    assert staged_writes.delete(base, list(BASE)).get_fragments() == []


def test_deleted_row_can_be_deleted_and_inserted_again(base, table, rows):
    without = staged_writes.delete(staged_writes.delete(base, ["a"]), ["a", "b"])
    assert rows(staged_writes.insert(without, table({"a": ("ape", 11)}))) == {
        **{id_: row for id_, row in BASE.items() if id_ != "b"},
        "a": ("ape", 11),
    }


@pytest.mark.parametrize("form", [lambda rows: rows, reader], ids=["table", "reader"])
def test_overwrite_leaves_exactly_the_given_rows(base, table, rows, form):
    staged = staged_writes.overwrite(base, form(table({"b": ("bat", 22), "z": ("zebu", 26)})))
    assert rows(staged) == {"b": ("bat", 22), "z": ("zebu", 26)}


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda base, none: staged_writes.append(base, none), BASE),
        (lambda base, none: staged_writes.insert(base, none), BASE),
        (lambda base, none: staged_writes.upsert(base, none), BASE),
        (lambda base, none: staged_writes.delete(base, []), BASE),
        (lambda base, none: staged_writes.overwrite(base, none), {}),
    ],
    ids=["append", "insert", "upsert", "delete", "overwrite"],
)
def test_nothing_given_is_a_change_of_nothing(base, table, rows, change, left):
    assert rows(change(base, table({}))) == left


@pytest.mark.parametrize(
    "change",
    [
        lambda base, new: staged_writes.append(base, new),
        lambda base, new: staged_writes.insert(base, new),
        lambda base, new: staged_writes.upsert(base, new),
        lambda base, new: staged_writes.delete(base, ["a", "d", "e"]),
        lambda base, new: staged_writes.overwrite(base, new),
    ],
    ids=["append", "insert", "upsert", "delete", "overwrite"],
)
def test_base_and_head_stay_as_they_are(base, table, rows, datasets, change):
    version = base.version
    staged = change(base, table({"f": ("fox", 6)}))
    assert staged.version >= 1 << 63, "a staged version is detached"
    assert staged.version != version
    assert (base.version, rows(base)) == (version, BASE)
    assert rows(datasets.open("d", int(version))) == BASE
    head = datasets.open("d")
    assert (head.version, head.count_rows()) == (1, 0)


def test_siblings_of_one_base_do_not_see_each_other(base, table, rows):
    one = staged_writes.upsert(base, table({"a": ("one", 1), "f": ("one", 1)}))
    other = staged_writes.upsert(base, table({"a": ("other", 2), "f": ("other", 2)}))
    assert rows(one) == {**BASE, "a": ("one", 1), "f": ("one", 1)}
    assert rows(other) == {**BASE, "a": ("other", 2), "f": ("other", 2)}


def test_ten_thousand_ids_are_replaced_and_deleted(base, table, rows):
    many = staged_writes.append(base, table(numbers(10_000, 0)))
    replaced = staged_writes.upsert(many, table(numbers(10_000, 1)))
    assert rows(replaced) == {**BASE, **numbers(10_000, 1)}
    left = staged_writes.delete(replaced, [f"n{i}" for i in range(1, 10_000)])
    assert rows(left) == {**BASE, "n0": ("row", 1)}


def test_ids_are_looked_up_in_chunks(base, table, rows, monkeypatch):
    monkeypatch.setattr(staged_writes, "PROBE_CHUNK", 2)
    assert staged_writes.existing_ids(base, ["a", "x", "b", "y", "e"]) == {"a", "b", "e"}
    assert rows(staged_writes.delete(base, ["a", "x", "b", "a", "e"])) == {
        id_: BASE[id_] for id_ in ("c", "d")
    }


def test_no_ids_exist_of_none(base):
    assert staged_writes.existing_ids(base, []) == set()


@pytest.mark.parametrize("id_", WILD, ids=lambda id_: repr(id_[:8]))
def test_id_is_any_text(base, table, rows, id_):
    inserted = staged_writes.insert(base, table({id_: ("x", 1)}))
    assert staged_writes.existing_ids(inserted, [id_]) == {id_}
    upserted = staged_writes.upsert(inserted, table({id_: ("y", 2)}))
    assert rows(upserted) == {**BASE, id_: ("y", 2)}
    assert rows(staged_writes.delete(upserted, [id_])) == BASE


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ids=st.lists(st.text(max_size=8), unique=True, min_size=1, max_size=6), data=st.data())
def test_any_ids_are_replaced_and_deleted_exactly(empty, table, rows, ids, data):
    some = data.draw(st.lists(st.sampled_from(ids), unique=True))
    inserted = staged_writes.append(empty, table(dict.fromkeys(ids, ("old", 0))))
    upserted = staged_writes.upsert(inserted, table(dict.fromkeys(some, ("new", 1))))
    expected = {id_: ("new", 1) if id_ in some else ("old", 0) for id_ in ids}
    assert rows(upserted) == expected
    assert rows(staged_writes.delete(upserted, some)) == {
        i: r for i, r in expected.items() if i not in some
    }


def test_rows_of_another_shape_are_a_typed_error(base, rows):
    wrong = pa.table({"id": ["z"], "text": [1.5], "score": ["many"]})
    with pytest.raises(OmniError):
        staged_writes.append(base, wrong)
    assert rows(base) == BASE


NEW = {"x": ("xerus", 7), "y": ("yak", 8)}
IDS = st.sets(st.sampled_from(sorted(BASE)))


@given(taken=st.sets(st.sampled_from(sorted({**BASE, **NEW}))), gone=IDS, added=st.booleans())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_a_version_lost_a_newer_one_loses_too(base, table, rows, taken, gone, added):
    new = staged_writes.write_new_fragments(table(NEW), base)
    made = staged_writes.delete(
        staged_writes.stage_fragments(base, new, alone=False), sorted(taken)
    )
    newer = staged_writes.delete(base, sorted(gone - taken))
    if added:
        newer = staged_writes.append(newer, table({"z": ("zebu", 9)}))
    shown = staged_writes.stage_fragments(newer, new, alone=False)
    files = {tuple(file.path for file in fragment.files) for fragment in new}
    lost = rebase_deletions(base, made, shown, files)
    assert lost is not None
    expected = {id_: row for id_, row in rows(shown).items() if id_ not in taken}
    assert rows(staged_writes.apply_deletions(shown, lost)) == expected


def test_what_a_version_lost_cannot_be_found_where_rows_were_rewritten(base, table, rows):
    made = staged_writes.delete(base, ["b"])
    rewritten = staged_writes.overwrite(base, table(rows(base)))
    assert rebase_deletions(base, made, rewritten, set()) is None
    assert rebase_deletions(base, base, rewritten, set()) is not None
