"""Baselines: a whole state, and the cursor that goes on from exactly there."""

import json

import pytest

from omnigraph.changes.errors import CursorRejected
from omnigraph.errors import NotFound
from tests.support.graphs import CALLS_AT, NOTE, PORT, SHIP, delete, insert, upsert


@pytest.fixture
def graph(graph):
    insert(graph, SHIP, {"s": {"name": "Aurora"}})
    insert(graph, PORT, {"p": {"city": "Aarhus"}})
    insert(graph, CALLS_AT, {"c": {"src": "s", "dst": "p", "fee": 7}})
    return graph


def test_baseline_is_the_export_of_the_head_and_ends_with_the_handshake(graph):
    baseline = graph.changes.baseline()
    *lines, last = baseline.records()
    assert lines == list(graph.export())
    assert json.loads(last) == {
        "baseline": {
            "snapshot_commit_id": graph.snapshot().commit_id,
            "resume_cursor": baseline.resume_cursor,
        }
    }


def test_first_poll_after_a_baseline_begins_with_the_next_commit(graph):
    baseline = graph.changes.baseline()
    assert graph.changes.poll(cursor=baseline.resume_cursor).blocks == ()
    made = insert(graph, NOTE, {"n": {}})
    [block] = graph.changes.poll(cursor=baseline.resume_cursor).blocks
    assert (block.commit.id, [c.id for c in block.changes]) == (made.id, ["n"])


def test_baseline_stays_at_its_state_while_others_write(graph):
    baseline = graph.changes.baseline()
    expected = list(graph.export())
    upsert(graph, SHIP, {"s": {"name": "Tern"}})
    assert list(baseline.lines) == expected
    assert baseline.snapshot_commit_id != graph.snapshot().commit_id


@pytest.mark.parametrize(
    ("scope", "types"),
    [
        ({}, ["CallsAt", "Port", "Ship"]),
        ({"kinds": ["edge"]}, ["CallsAt"]),
        ({"types": ["Ship"]}, ["Ship"]),
        ({"kinds": ["edge"], "types": ["Ship"]}, []),
        ({"ops": ["delete"]}, ["CallsAt", "Port", "Ship"]),
    ],
)
def test_filter_limits_kinds_and_types_but_not_by_op(graph, scope, types):
    records = map(json.loads, graph.changes.baseline(**scope).lines)
    assert [r.get("type") or r["edge"] for r in records] == types


def test_cursor_of_a_baseline_is_bound_to_its_filter(graph):
    cursor = graph.changes.baseline(ops=["delete"]).resume_cursor
    insert(graph, NOTE, {"n": {}})
    delete(graph, CALLS_AT, ["c"])
    page = graph.changes.poll(cursor=cursor, ops=["delete"])
    assert [[c.id for c in block.changes] for block in page.blocks] == [[], ["c"]]
    with pytest.raises(CursorRejected, match="another filter"):
        graph.changes.poll(cursor=cursor)


def test_baseline_of_a_branch(graph):
    graph.branches.create("work")
    made = insert(graph, NOTE, {"n": {"text": "x"}}, branch="work")
    baseline = graph.changes.baseline(branch="work", types=["Note"])
    assert baseline.snapshot_commit_id == made.id
    assert list(baseline.lines) == ['{"type":"Note","data":{"id":"n","text":"x"}}']


def test_type_nobody_knows_is_refused(graph):
    with pytest.raises(NotFound, match="did you mean `Ship`"):
        graph.changes.baseline(types=["Shp"])
