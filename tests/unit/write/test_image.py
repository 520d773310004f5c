"""What a change makes of a type: the last row of each id, whole, and what gives way to it."""

import pyarrow as pa
import pytest

from omnigraph.storage.row_lookup import ROW_ADDRESS
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import to_values
from omnigraph.write.change_set import GIVEN_PROPERTIES, ChangeSet, RowBatch
from omnigraph.write.resolved_change import changed_ids, removed_ids, resolve_changes


def image(changes, committed):
    [found] = resolve_changes(changes, committed).values()
    return found


def test_the_last_row_of_an_id_wins_across_batches(committed, person, changes):
    first = [{"id": "x", "name": "x", "age": 1}, {"id": "y", "name": "y", "age": 2}]
    second = [{"id": "x", "name": "x", "age": 3}]
    found = image(changes(person, first, second), committed)
    assert found.rows.select(["id", "age"]).to_pylist() == [
        {"id": "y", "age": 2},
        {"id": "x", "age": 3},
    ]
    assert [batch.num_rows for batch in found.batches] == [2, 1]
    assert found.repeats


def test_the_last_row_of_an_id_wins_inside_a_batch(committed, knows, changes):
    rows = [{"id": "k", "src": s, "dst": "bo"} for s in ("a", "b", "c")]
    found = image(changes(knows, rows), committed)
    assert found.rows["src"].to_pylist() == ["c"]


def test_rows_that_exist_are_replaced_and_others_are_not_looked_at(committed, person, changes):
    found = image(
        changes(person, [{"id": "bo", "name": "bo"}, {"id": "x", "name": "x"}]), committed
    )
    assert found.replaced["id"].to_pylist() == ["bo"]
    assert found.replaced[ROW_ADDRESS].to_pylist() == [1]
    assert found.removed.to_pylist() == []


def test_deleted_ids_are_removed(committed, person, changes):
    found = image(changes(person, deleted={"bo": None, "ann": None}), committed)
    assert sorted(found.replaced["id"].to_pylist()) == ["ann", "bo"]
    assert found.removed.to_pylist() == ["bo", "ann"]
    assert found.rows.num_rows == 0
    assert removed_ids({"node:Person": found}, "node:Person").to_pylist() == ["bo", "ann"]
    assert changed_ids({"node:Person": found}, "node:Person").to_pylist() == []
    assert removed_ids({}, "node:Person").to_pylist() == []


def test_replacing_a_type_removes_what_is_not_given(committed, person, changes):
    found = image(changes(person, [{"id": "bo", "name": "bo"}], replace=True), committed)
    assert sorted(found.replaced["id"].to_pylist()) == ["ann", "bo", "cy"]
    assert sorted(found.removed.to_pylist()) == ["ann", "cy"]


def test_replacing_a_type_by_nothing_removes_everything(committed, person, changes):
    found = image(changes(person, replace=True), committed)
    assert sorted(found.removed.to_pylist()) == ["ann", "bo", "cy"]
    assert found.rows.num_rows == 0


def test_fresh_rows_look_nothing_up(committed, knows, rows):
    made = ChangeSet()
    made.of(knows).batches.append(RowBatch(rows(knows, [{"id": "k1", "src": "a"}]), fresh=True))
    assert image(made, committed).replaced.num_rows == 0


def test_types_without_a_change_have_no_image(committed, person, knows, changes):
    made = changes(person, [{"id": "x", "name": "x"}])
    made.of(knows)
    assert list(resolve_changes(made, committed)) == ["node:Person"]


def test_nodes_come_before_edges(committed, person, knows, changes):
    made = changes(knows, [{"id": "k", "src": "ann", "dst": "bo"}])
    made.of(person).deleted = {"cy": None}
    assert list(resolve_changes(made, committed)) == ["node:Person", "edge:Knows"]


# --- partial rows ------------------------------------------------------------------------------


def partial(shape, table, *given):
    """Return a change whose rows give the named properties only."""
    made = ChangeSet()
    numbers = pa.array([n % len(given) for n in range(table.num_rows)], pa.int32())
    batch = RowBatch(
        table.append_column(GIVEN_PROPERTIES, numbers), given=tuple(map(frozenset, given))
    )
    made.of(shape).batches.append(batch)
    return made


def test_an_entity_keeps_what_a_partial_row_does_not_give(committed, person, rows):
    table = rows(person, [{"id": "ann", "name": "ann", "age": 5}])
    found = image(partial(person, table, {"id", "name", "age"}), committed).rows
    [row] = found.select(["name", "age", "email", "tags", "spot"]).to_pylist()
    assert row == {"name": "ann", "age": 5, "email": "ann@x", "tags": ["a"], "spot": [1.0, 2.0]}


@pytest.mark.parametrize(("id_", "blob"), [("ann", None), ("bo", b""), ("cy", b"hi")])
def test_an_entity_keeps_its_blob(committed, person, rows, id_, blob):
    table = rows(person, [{"id": id_, "name": id_, "age": 5}])
    [kept] = (
        image(partial(person, table, {"id", "name", "age"}), committed).rows["file"].to_pylist()
    )
    assert (None if kept is None else kept["data"]) == blob


def test_an_entity_keeps_its_milliseconds(committed, person, rows):
    table = rows(person, [{"id": "bo", "name": "bo"}])
    kept = image(partial(person, table, {"id", "name"}), committed).rows["seen"]
    [seen] = to_values(kept, PropertyType(Scalar.DATE_TIME))
    assert seen.isoformat() == "2024-05-01T12:00:00.123000+00:00"


def test_a_new_entity_has_nulls_where_a_partial_row_gives_nothing(committed, person, rows):
    table = rows(person, [{"id": "new", "name": "new"}])
    [row] = image(partial(person, table, {"id", "name"}), committed).rows.to_pylist()
    assert {name for name, value in row.items() if value is not None} == {"id", "name"}


def test_rows_may_give_different_properties(committed, person, rows):
    listed = [{"id": "ann", "name": "ann", "age": 5}, {"id": "bo", "name": "bo", "email": "bo@x"}]
    given = ({"id", "name", "age"}, {"id", "name", "email"})
    found = image(partial(person, rows(person, listed), *given), committed).rows
    assert found.select(["id", "age", "email"]).to_pylist() == [
        {"id": "ann", "age": 5, "email": "ann@x"},
        {"id": "bo", "age": None, "email": "bo@x"},
    ]


def test_null_that_is_given_is_not_kept(committed, person, rows):
    table = rows(person, [{"id": "ann", "name": "ann", "email": None}])
    found = image(partial(person, table, {"id", "name", "email"}), committed).rows
    assert found.select(["age", "email"]).to_pylist() == [{"age": 30, "email": None}]
