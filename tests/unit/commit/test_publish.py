"""The door: what is checked, what a conflict says, and that nothing happens when one is raised."""

from dataclasses import replace

import pytest

import omnigraph.graph as og
from omnigraph.commit.model import Counts
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset, StagedSchema, new_commit_id
from omnigraph.errors import (
    ExpectedVersionMismatch,
    NotFound,
    PreconditionFailed,
    SchemaMoved,
)
from omnigraph.storage.layout import dataset_path
from tests.support.graphs import (
    NOTE,
    PORT,
    SHIP,
    Change,
    commit,
    delete,
    dump,
    insert,
    prepare,
    publish_prepared,
    upsert,
)

NEW = Change("insert", NOTE, {"new": {"text": "n"}})


def publish_as(graph, prepared, **facts):
    return publish_prepared(graph, replace(prepared, staged=replace(prepared.staged, **facts)))


def state_of(graph):
    fresh = og.open(graph.uri, "ro")
    return (fresh.snapshot().manifest_version, dump(fresh), fresh.commits.list())


def test_commit_is_visible_to_every_process_when_it_is_returned(graph):
    prepared = prepare(graph, NEW)
    made = publish_as(
        graph, prepared, actor="act-ada", message="first", counts={NOTE: Counts(inserted=1)}
    )
    other = og.open(graph.uri, "ro")
    assert other.snapshot().commit_id == made.id == prepared.staged.id
    assert dump(other)[NOTE] == {"new": {"text": "n"}}
    assert other.commits.get(made.id) == made
    assert (made.actor, made.message, made.operation) == ("act-ada", "first", "load")
    assert made.counts == {NOTE: Counts(1, 0, 0)}
    assert made.manifest_version == 2
    assert made.parents == (graph.commits.list()[-1].id,)


def test_staged_rows_are_invisible_until_published(graph):
    prepared = prepare(graph, NEW)
    assert dump(og.open(graph.uri))[NOTE] == {}
    publish_prepared(graph, prepared)
    assert dump(og.open(graph.uri))[NOTE] == {"new": {"text": "n"}}


def test_commit_of_several_types_is_one_step(graph):
    made = commit(graph, NEW, Change("insert", SHIP, {"s": {"name": "Aurora"}}))
    assert graph.snapshot().commit_id == made.id
    entries = graph.snapshot().entries()
    assert {key: (e.version, e.rows) for key, e in entries.items()} == {
        "edge:CallsAt": (1, 0),
        NOTE: (2, 1),
        PORT: (1, 0),
        SHIP: (2, 1),
    }


def test_versions_people_see_count_up_by_one(graph):
    for number in range(3):
        upsert(graph, NOTE, {"a": {"text": str(number)}})
    assert graph.snapshot().entries()[NOTE].version == 4


@pytest.mark.parametrize(
    ("moves", "actual"),
    [(1, 3), (4, 6)],
    ids=["moved once", "moved often"],
)
def test_moved_dataset_is_named_with_the_versions_people_know(graph, moves, actual):
    insert(graph, NOTE, {"a": {}})
    late = prepare(graph, NEW)
    for number in range(moves):
        upsert(graph, NOTE, {"a": {"text": str(number)}})
    before = state_of(graph)
    with pytest.raises(ExpectedVersionMismatch) as caught:
        publish_prepared(graph, late)
    assert caught.value.table_key == NOTE
    assert (caught.value.expected, caught.value.actual) == (2, actual)
    assert caught.value.message == f"node:Note moved: expected version 2, found {actual}"
    assert caught.value.code == "expected_version_mismatch"
    assert state_of(graph) == before


def test_unrelated_change_only_moves_the_parent(graph):
    late = prepare(graph, NEW)
    between = insert(graph, SHIP, {"s": {"name": "Aurora"}})
    made = publish_prepared(graph, late)
    assert made.parents == (between.id,)
    assert dump(graph)[SHIP] == {"s": {"name": "Aurora", "tons": None}}


def test_dataset_that_was_only_read_must_not_move_either(graph):
    entry = graph.snapshot().entries()[SHIP]
    late = prepare(graph, NEW)
    insert(graph, SHIP, {"s": {"name": "Aurora"}})
    with pytest.raises(ExpectedVersionMismatch) as caught:
        publish_as(graph, late, reads={SHIP: (entry.key, entry.physical)})
    assert (caught.value.table_key, caught.value.expected, caught.value.actual) == (SHIP, 1, 2)
    assert dump(graph)[NOTE] == {}


def test_dataset_that_was_dropped_has_no_actual_version(graph):
    entry = graph.snapshot().entries()[NOTE]
    late = prepare(graph, NEW)
    gone = StagedDataset(NOTE, *entry.key, expected=entry.physical, physical=None)
    publish_as(graph, late, id=new_commit_id(), datasets=(gone,))
    with pytest.raises(ExpectedVersionMismatch) as caught:
        publish_prepared(graph, late)
    assert (caught.value.expected, caught.value.actual) == (1, None)


def test_dataset_that_should_be_new_but_is_there_has_no_expected_version(graph):
    entry = graph.snapshot().entries()[NOTE]
    new = StagedDataset(NOTE, *entry.key, expected=None, physical=1, location="nodes/x")
    with pytest.raises(ExpectedVersionMismatch) as caught:
        publish_as(graph, prepare(graph), datasets=(new,))
    assert (caught.value.expected, caught.value.actual) == (None, 1)


def test_schema_that_moved_is_refused(graph):
    late = prepare(graph, NEW)
    snapshot = graph.snapshot()
    schema = StagedSchema("0" * 64, "// as before", snapshot.schema.to_json())
    moved = StagedCommit(id=new_commit_id(), operation="schema_apply", schema=schema)
    publish_prepared(graph, replace(late, staged=moved))
    with pytest.raises(SchemaMoved) as caught:
        publish_prepared(graph, late)
    assert caught.value.details == {
        "expected": snapshot.head.schema_hash,
        "actual": schema.hash,
    }
    assert graph.snapshot().schema_source == "// as before"


def test_accepted_schema_is_stored_once(graph):
    late, source = prepare(graph), graph.snapshot()
    schema = StagedSchema("0" * 64, "// again", source.schema.to_json())
    for _ in range(2):
        staged = StagedCommit(id=new_commit_id(), operation="schema_apply", schema=schema)
        publish_prepared(graph, replace(late, staged=staged))
    rows = graph._manifest.main.state().rows("object_type = 'schema'")
    assert len(rows) == 2
    assert graph.verify().problems == []


def test_precondition_that_holds_lets_the_commit_in(graph):
    head = graph.snapshot().commit_id
    assert publish_as(graph, prepare(graph, NEW), if_commit=head).parents == (head,)


def test_precondition_that_fails_is_never_retried(graph):
    head = graph.snapshot().commit_id
    late = prepare(graph, NEW)
    between = insert(graph, SHIP, {"s": {"name": "Aurora"}})
    with pytest.raises(PreconditionFailed) as caught:
        publish_as(graph, late, if_commit=head)
    assert (caught.value.expected, caught.value.actual) == (head, between.id)
    assert caught.value.code == "precondition_failed"
    assert dump(graph)[NOTE] == {}


def test_known_id_that_is_published_again_returns_the_same_commit(graph):
    prepared = prepare(graph, NEW)
    first = publish_prepared(graph, prepared)
    insert(graph, SHIP, {"s": {"name": "Aurora"}})
    before = state_of(graph)
    assert publish_as(graph, prepared, known_id=True) == first
    assert state_of(graph) == before


def test_dataset_that_was_dropped_may_come_back(graph):
    insert(graph, NOTE, {"a": {}})
    entry = graph.snapshot().entry(NOTE)
    location = dataset_path("node", *entry.key)
    dropped = StagedDataset(NOTE, *entry.key, entry.physical, None)
    adopted = StagedDataset(NOTE, *entry.key, None, entry.physical, entry.rows, location)
    for change in (dropped, adopted, replace(dropped), adopted):
        publish_as(graph, prepare(graph), id=new_commit_id(), datasets=(change,))
    assert dump(og.open(graph.uri))[NOTE] == {"a": {"text": None}}
    assert og.open(graph.uri).verify().problems == []


def test_merged_parents_stand_behind_the_first(graph):
    side = graph.branches.create("side")
    theirs = insert(graph, NOTE, {"b": {}}, branch=side.name)
    mine = insert(graph, SHIP, {"s": {"name": "Aurora"}})
    made = publish_as(graph, prepare(graph, NEW), merged_parents=(theirs.id,))
    assert made.parents == (mine.id, theirs.id)
    wire = made.to_json()
    assert (wire["parent_commit_id"], wire["merged_parent_commit_id"]) == (mine.id, theirs.id)


def test_new_dataset_is_registered_with_its_location(graph):
    new = StagedDataset("node:New", 42, 43, expected=None, physical=1, location="nodes/x")
    publish_as(graph, prepare(graph), datasets=(new,), id=new_commit_id())
    (row,) = graph._manifest.main.state().rows("table_key = 'node:New' AND object_type = 'table'")
    assert row.row["location"] == "nodes/x"


@pytest.mark.parametrize("branch", ["side", "main"])
def test_publishing_on_a_branch_leaves_the_others_alone(graph, branch):
    insert(graph, NOTE, {"a": {"text": "x"}})
    graph.branches.create("side")
    other = {"side": "main", "main": "side"}[branch]
    upsert(graph, NOTE, {"b": {"text": "y"}}, branch=branch)
    delete(graph, NOTE, ["a"], branch=branch)
    assert dump(graph, branch)[NOTE] == {"b": {"text": "y"}}
    assert dump(graph, other)[NOTE] == {"a": {"text": "x"}}


def test_branch_deleted_by_another_process_is_not_found(graph):
    graph.branches.create("side")
    prepared = prepare(graph, NEW, branch="side")
    og.open(graph.uri).branches.delete("side")
    with pytest.raises(NotFound) as caught:
        publish_prepared(graph, prepared)
    assert caught.value.code == "branch_not_found"
    assert caught.value.message == "branch 'side' does not exist"


# --- what cannot be staged ---------------------------------------------------------------------


def test_commit_changes_a_dataset_once(graph):
    (change,) = prepare(graph, NEW).staged.datasets
    with pytest.raises(ValueError, match="a commit changes a dataset once"):
        StagedCommit(id=new_commit_id(), operation="load", datasets=(change, change))


@pytest.mark.parametrize("missing", [{"physical": None}, {"location": None}])
def test_new_dataset_has_a_version_and_a_location(missing):
    facts = {"expected": None, "physical": 1, "location": "nodes/x", **missing}
    with pytest.raises(ValueError, match="a new dataset needs a version and a location"):
        StagedDataset("node:T", 1, 2, **facts)
