"""The validator collects all that is wrong with a change, bounded and with places."""

import pyarrow as pa
import pytest

from omnigraph.commit.snapshot import head_snapshot
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.validator import validate
from omnigraph.write.violations import MAX_LISTED, KeyConflict, ValidationFailed, ViolationRule


def people(count, **values):
    return [{"id": f"p{n:04d}", "name": f"p{n:04d}", **values} for n in range(count)]


def refusal(changes, committed):
    with pytest.raises(ValidationFailed) as caught:
        validate(changes, committed)
    return caught.value


def test_a_good_change_gives_the_image_of_each_type(committed, person, changes):
    images = validate(changes(person, people(2)), committed)
    assert list(images) == ["node:Person"]
    assert images["node:Person"].rows["id"].to_pylist() == ["p0000", "p0001"]


def test_all_violations_are_counted_and_the_first_ones_listed(committed, person, changes):
    error = refusal(changes(person, people(250, age=200)), committed)
    assert error.total == 250
    assert error.totals == {"range": 250}
    assert [v.id for v in error.violations] == [f"p{n:04d}" for n in range(MAX_LISTED)]
    assert str(error).endswith("; and 247 more")


def test_repeated_values_are_counted_and_the_first_ones_listed(committed, person, changes):
    error = refusal(changes(person, people(250, email="same")), committed)
    assert error.totals == {"unique": 249}
    assert [v.id for v in error.violations] == [f"p{n:04d}" for n in range(1, MAX_LISTED + 1)]


def test_repeated_keys_are_counted_and_the_first_ones_listed(committed, person, changes):
    error = refusal(changes(person, people(200) + people(200)), committed)
    assert error.totals == {"unique": 200}
    assert len(error.violations) == MAX_LISTED


def test_committed_holders_are_counted_and_the_first_ones_listed(graph, person, changes):
    graph.load({"Person": [{"name": f"q{n:04d}", "email": str(n)} for n in range(150)]})
    listed = [{**row, "email": str(n)} for n, row in enumerate(people(150))]
    committed = fresh(graph)
    error = refusal(changes(person, listed), committed)
    assert error.totals == {"unique": 150}
    assert error.violations[0].message.endswith("value '0' held by 'q0000' and 'p0000'")


def fresh(graph):
    return CommittedState(graph._manifest, head_snapshot(graph._manifest, "main"))


def test_a_violation_says_where_in_the_input_it_stands(committed, person, rows, changes):
    listed = [{"id": "x", "name": "x", "age": 1}, {"id": "y", "name": "y", "age": 999}]
    error = refusal(changes(person, rows(person, listed, places=[7, 8])), committed)
    [violation] = error.violations
    assert str(violation) == (
        "people.jsonl, line 8: @range violation on Person.age: value 999 > max 150"
    )
    assert violation.to_json() == {
        "rule": "range",
        "message": "@range violation on Person.age: value 999 > max 150",
        "kind": "node",
        "type": "Person",
        "id": "y",
        "property": "age",
        "value": 999,
        "source": {"file": "people.jsonl", "line": 8},
    }


def test_a_repeated_key_says_where_it_stood_first(committed, person, rows, changes):
    twice = rows(person, [{"id": "x", "name": "x"}] * 2, places=[3, 9])
    [violation] = refusal(changes(person, twice), committed).violations
    assert violation.message.endswith("held by 'x' and 'x' (first at people.jsonl, line 3)")
    assert violation.source.number == 9


def test_what_is_no_number_is_in_no_range(committed, person, rows, changes):
    table = rows(person, people(3))
    odd = pa.array([float("nan"), 0.75, None], pa.float64())
    table = table.set_column(table.column_names.index("big"), "big", odd)
    [violation] = refusal(changes(person, table), committed).violations
    assert (violation.rule, violation.id, violation.property) == (
        ViolationRule.RANGE,
        "p0000",
        "big",
    )
    assert violation.message == "@range violation on Person.big: value is NaN"


def test_what_is_no_number_is_not_held_twice(committed, person, rows, changes):
    table = rows(person, people(2))
    odd = pa.array([float("inf"), float("inf")], pa.float64())
    table = table.set_column(table.column_names.index("big"), "big", odd)
    assert validate(changes(person, table), committed)


def test_only_conflicts_of_keys_are_a_key_conflict(committed, person, changes):
    error = refusal(changes(person, [{"id": "ann", "name": "ann"}], strict=True), committed)
    assert isinstance(error, KeyConflict)
    assert error.code == "key_conflict"
    assert error.details["entity_id"] == "ann"
    assert error.details["type_key"] == "node:Person"
    mixed = changes(person, [{"id": "ann", "name": "ann", "age": 999}], strict=True)
    assert not isinstance(refusal(mixed, committed), KeyConflict)


def test_violations_come_nodes_first_then_edges_by_name(committed, person, knows, changes, rows):
    made = changes(person, people(1, age=999))
    made.of(knows).batches = (
        changes(knows, [{"id": "k9", "src": "ann", "dst": "z"}]).of(knows).batches
    )
    error = refusal(made, committed)
    assert [(v.rule, v.type) for v in error.violations] == [
        (ViolationRule.RANGE, "Person"),
        (ViolationRule.ENDPOINT, "Knows"),
    ]


def test_counting_edges_names_the_place_of_the_last(committed, knows, rows, changes):
    listed = [{"id": f"e{n}", "src": "ann", "dst": "bo"} for n in range(3)]
    [violation] = refusal(changes(knows, rows(knows, listed, [4, 5, 6])), committed).violations
    assert (violation.id, violation.value, violation.source.number) == ("ann", 4, 6)


def test_nothing_is_asked_about_types_a_change_does_not_rely_on(committed, person, changes):
    validate(changes(person, people(1)), committed)
    assert committed.types_read == {"node:Person"}


def test_new_edges_rely_on_their_nodes(committed, knows, changes):
    validate(changes(knows, [{"id": "k9", "src": "ann", "dst": "bo"}]), committed)
    assert committed.types_read == {"edge:Knows", "node:Person"}


def test_deleted_nodes_rely_on_every_edge_type_at_them(committed, person, knows, changes):
    made = changes(person, deleted={"cy": None})
    made.of(knows).deleted = {"k2": None}
    validate(made, committed)
    assert committed.types_read == {"edge:Knows", "edge:Wrote", "node:Person"}


# --- changes that put and delete at once, as merges do -----------------------------------------


def test_an_edge_cannot_name_a_node_the_same_change_deletes(committed, person, knows, changes):
    made = changes(knows, [{"id": "k9", "src": "ann", "dst": "cy"}])
    made.of(person).deleted = {"cy": None}
    made.of(knows).deleted = {"k2": None}
    [violation] = refusal(made, committed).violations
    assert (violation.id, violation.message) == ("k9", "dst 'cy' not found in Person")


def test_a_committed_edge_may_leave_a_node_the_same_change_deletes(
    committed, person, knows, changes
):
    made = changes(knows, [{"id": "k2", "src": "bo", "dst": "ann"}])
    made.of(person).deleted = {"cy": None}
    assert validate(made, committed)["edge:Knows"].rows["dst"].to_pylist() == ["ann"]


def test_a_committed_edge_is_reported_when_its_node_goes(committed, person, changes):
    [violation] = refusal(changes(person, deleted={"cy": None}), committed).violations
    assert (violation.type, violation.id) == ("Knows", "k2")
    assert violation.message == "dst 'cy' not found in Person"


def test_a_value_is_free_when_its_holder_is_deleted(committed, person, knows, changes):
    made = changes(person, [{"id": "new", "name": "new", "email": "ann@x"}])
    made.of(person).deleted = {"ann": None}
    made.of(knows).deleted = {"k1": None}
    assert validate(made, committed)


def test_deleted_edges_make_place_for_new_ones(committed, knows, changes):
    two = [{"id": f"e{n}", "src": "ann", "dst": "bo"} for n in range(2)]
    assert refusal(changes(knows, two), committed).totals == {"cardinality": 1}
    made = changes(knows, two, deleted={"k1": None})
    assert validate(made, committed)


def test_an_entity_that_is_put_is_not_deleted(committed, person, changes):
    made = changes(person, [{"id": "cy", "name": "cy", "age": 3}], deleted={"cy": None})
    image = validate(made, committed)["node:Person"]
    assert image.removed.to_pylist() == []
    assert image.rows["age"].to_pylist() == [3]
