"""Differences of two states: what is a change, what is none, and how it is asked for."""

from datetime import UTC, datetime

import pytest

from omnigraph.catalog import TypeKind
from omnigraph.changes import Change, ChangeOp, EntityImage
from omnigraph.changes.diff import ChangeTotals, change_json, comparison_json
from omnigraph.errors import NotFound
from tests.support.graphs import (
    CALLS_AT,
    NOTE,
    PORT,
    SCHEMA,
    SHIP,
    accept_schema,
    delete,
    insert,
    overwrite,
    upsert,
)

NODE, EDGE = TypeKind.NODE, TypeKind.EDGE


@pytest.fixture
def graph(graph):
    insert(graph, SHIP, {"s": {"name": "Aurora", "tons": 1}, "t": {"name": "Tern"}})
    insert(graph, PORT, {"p": {"city": "Aarhus"}, "q": {"city": "Bergen"}})
    insert(graph, CALLS_AT, {"c": {"src": "s", "dst": "p", "fee": 7}})
    graph.tags.create("start")
    return graph


def test_insert_update_and_delete_are_reported_with_images(graph):
    insert(graph, NOTE, {"n": {"text": ""}})
    upsert(graph, SHIP, {"s": {"name": "Aurora", "tons": 2}})
    delete(graph, PORT, ["q"])
    assert list(graph.diff("start", "main")) == [
        Change(kind=NODE, type="Note", id="n", op=ChangeOp.INSERT, after=EntityImage({"text": ""})),
        Change(
            kind=NODE,
            type="Port",
            id="q",
            op=ChangeOp.DELETE,
            before=EntityImage({"city": "Bergen", "depth": None}),
        ),
        Change(
            kind=NODE,
            type="Ship",
            id="s",
            op=ChangeOp.UPDATE,
            before=EntityImage({"name": "Aurora", "tons": 1}),
            after=EntityImage({"name": "Aurora", "tons": 2}),
        ),
    ]


def test_edge_that_moved_is_reported_with_both_ends(graph):
    upsert(graph, CALLS_AT, {"c": {"src": "s", "dst": "q", "fee": 7}})
    [change] = graph.diff("start", "main")
    assert (change.kind, change.before.endpoints, change.after.endpoints) == (
        EDGE,
        ("s", "p"),
        ("s", "q"),
    )
    assert change.changed == ["to"]


def test_what_was_written_as_it_was_is_no_change(graph):
    upsert(graph, SHIP, {"s": {"name": "Aurora", "tons": 1}})
    overwrite(graph, PORT, {"q": {"city": "Bergen"}, "p": {"city": "Aarhus"}})
    graph.optimize()
    assert list(graph.diff("start", "main")) == []


def test_what_came_and_went_is_no_change(graph):
    insert(graph, NOTE, {"n": {"text": "x"}})
    delete(graph, NOTE, ["n"])
    assert list(graph.diff("start", "main")) == []


@pytest.mark.parametrize("when", ["tag", "commit", "time", "text", "snapshot"])
def test_states_are_named_in_every_way(graph, when):
    commit = graph.snapshot("start").commit_id
    instant = datetime.now(UTC)
    insert(graph, NOTE, {"n": {}})
    named = {
        "tag": "start",
        "commit": commit,
        "time": instant,
        "text": instant.isoformat(),
        "snapshot": graph.snapshot("start"),
    }
    assert [c.id for c in graph.diff(named[when], "main")] == ["n"]


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ({}, ["n", "q", "s", "c"]),
        ({"kinds": ["edge"]}, ["c"]),
        ({"kinds": ["node", "edge"]}, ["n", "q", "s", "c"]),
        ({"types": ["Port", "CallsAt"]}, ["q", "c"]),
        ({"types": "Ship"}, ["s"]),
        ({"ops": ["update"]}, ["s", "c"]),
        ({"kinds": ["node"], "ops": ["delete", "insert"]}, ["n", "q"]),
        ({"kinds": ["edge"], "types": ["Ship"]}, []),
    ],
)
def test_filter_leaves_what_was_asked_for(graph, scope, expected):
    insert(graph, NOTE, {"n": {}})
    upsert(graph, SHIP, {"s": {"name": "Aurora", "tons": 2}})
    delete(graph, PORT, ["q"])
    upsert(graph, CALLS_AT, {"c": {"src": "s", "dst": "p", "fee": 8}})
    assert [c.id for c in graph.diff("start", "main", **scope)] == expected


def test_type_nobody_knows_is_refused_at_once(graph):
    with pytest.raises(NotFound, match="did you mean `Ship`"):
        graph.diff("start", "main", types=["Shipp"])


def test_renamed_type_is_the_same_and_both_names_find_it(graph):
    renamed = SCHEMA.replace("node Ship {", 'node Vessel @rename_from("Ship") {')
    accept_schema(graph, renamed.replace("Ship ->", "Vessel ->"))
    assert list(graph.diff("start", "main")) == []
    upsert(graph, "node:Vessel", {"s": {"name": "Aurora", "tons": 2}})
    for name in ("Ship", "Vessel"):
        [change] = graph.diff("start", "main", types=[name])
        assert (change.type, change.id, change.changed) == ("Vessel", "s", ["tons"])


def test_negative_zero_is_reported_as_changed():
    images = {"before": EntityImage({"x": 0.0, "y": 1}), "after": EntityImage({"x": -0.0, "y": 1})}
    assert Change(kind=NODE, type="T", id="i", op=ChangeOp.UPDATE, **images).changed == ["x"]


def test_summary_has_the_wire_shape(graph):
    insert(graph, NOTE, {"n": {"text": "x"}})
    delete(graph, CALLS_AT, ["c"])
    old, new, tally = graph.snapshot("start"), graph.snapshot(), ChangeTotals()
    changes = [change_json(c, old, new) for c in tally.counting(graph.diff(old, new))]
    assert comparison_json(old, new) == {
        "from_graph_commit_id": old.commit_id,
        "to_graph_commit_id": new.commit_id,
        "from_graph_manifest_version": old.manifest_version,
        "to_graph_manifest_version": new.manifest_version,
        "graph_branch": None,
    }
    assert tally.to_json() == {
        "inserts": 1,
        "updates": 0,
        "deletes": 1,
        "types_affected": ["CallsAt", "Note"],
    }
    assert changes == [
        {
            "kind": "node",
            "type_name": "Note",
            "id": "n",
            "op": "insert",
            "published_dataset_version": 2,
            "after": {"properties": {"text": "x"}},
        },
        {
            "kind": "edge",
            "type_name": "CallsAt",
            "id": "c",
            "op": "delete",
            "published_dataset_version": 3,
            "endpoints": {"src": "s", "dst": "p"},
            "before": {"properties": {"fee": 7}, "endpoints": {"from": "s", "to": "p"}},
        },
    ]
