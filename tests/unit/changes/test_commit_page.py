"""What one commit changed: order, images, pages of every size, and every way to be refused."""

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest

import omnigraph.graph as og
from omnigraph.changes import ChangeFeedGap, ChangeSchemaBoundary, CommitHasNoParent, Limits
from omnigraph.changes.errors import CursorRejected, PageLimitExceeded
from omnigraph.errors import InvalidInput, NotFound
from tests.support.graphs import (
    CALLS_AT,
    NOTE,
    PORT,
    SCHEMA,
    SHIP,
    Change,
    accept_schema,
    clean_at_once,
    commit,
    insert,
    upsert,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FULL = """
node Thing { name: String @key  day: Date?  moment: DateTime?  body: Blob?  place: Vector(2)?
  tags: [String]? }
"""


def every_change(graph, commit_id, sizes, **scope):
    """Read all pages; return their changes and how many each page had."""
    found, counts, token = [], [], None
    while True:
        page = graph.commits.changes(commit_id, page_token=token, limits=sizes, **scope)
        found += page.changes
        counts.append(len(page.changes))
        token = page.next_page_token
        if token is None:
            return found, counts


@pytest.fixture
def mixed(graph):
    """Return a commit that inserts, updates and deletes nodes and edges of all types."""
    insert(graph, SHIP, {f"s{n}": {"name": "x"} for n in range(6)})
    insert(graph, PORT, {f"p{n}": {"city": "x"} for n in range(6)})
    insert(graph, CALLS_AT, {f"c{n}": {"src": f"s{n}", "dst": f"p{n}"} for n in range(6)})
    return commit(
        graph,
        Change("upsert", SHIP, {f"s{n}": {"name": "y" if n < 3 else "x"} for n in range(9)}),
        Change("delete", PORT, {f"p{n}": {} for n in range(4)}),
        Change("upsert", CALLS_AT, {"c1": {"src": "s1", "dst": "p5"}}),
        Change("insert", NOTE, {"n": {"text": "z" * 100}, "ü": {}, "Z": {}}),
    )


def test_page_has_the_wire_shape(graph):
    insert(graph, SHIP, {"s": {"name": "Aurora"}, "t": {"name": "Tern"}})
    insert(graph, PORT, {"p": {"city": "Aarhus"}})
    made = insert(graph, CALLS_AT, {"c": {"src": "s", "dst": "p", "fee": 7}})
    [change] = graph.commits.changes(made.id).changes
    assert graph.commits.changes(made.id).to_json() == {
        "cause": {
            "graph_commit_id": made.id,
            "parent_commit_id": made.parents[0],
            "authored_branch": "main",
            "authored_at": (made.created_at - EPOCH) // timedelta(microseconds=1),
        },
        "changes": [
            {
                "kind": "edge",
                "type": {"id": change.type_id, "name": "CallsAt"},
                "id": "c",
                "op": "insert",
                "after": {"properties": {"fee": 7}, "endpoints": {"from": "s", "to": "p"}},
            }
        ],
    }
    assert len(base64.urlsafe_b64decode(change.type_id + "=")) == 32


def test_cause_names_actor_branch_and_merged_parent(graph):
    insert(graph, NOTE, {"a": {}})
    with graph.as_actor("act-ada").branch("work", create=True) as work:
        work.insert("Note", [{"id": "b", "text": "x"}])
        inside = work.snapshot().commit_id
    insert(graph, NOTE, {"c": {}})
    head = graph.snapshot().commit_id
    cause = graph.commits.changes(inside).to_json()["cause"]
    assert (cause["actor_id"], cause["authored_branch"]) == ("act-ada", "work")
    merged = graph.merge("work").commit
    cause = graph.commits.changes(merged.id).to_json()["cause"]
    assert cause["parent_commit_id"] == head
    assert cause["merged_parent_commit_id"] == inside
    assert [c.id for c in graph.commits.changes(merged.id).changes] == ["b"]


def test_changes_come_nodes_first_by_type_identity_and_id(graph, mixed):
    found = graph.commits.changes(mixed.id).changes
    order = [(c.kind == "edge", c.type_id, c.id.encode()) for c in found]
    assert order == sorted(order)
    assert sorted((c.type, str(c.op), c.id) for c in found) == sorted(
        [
            *(("Ship", "update", f"s{n}") for n in range(3)),
            *(("Ship", "insert", f"s{n}") for n in range(6, 9)),
            *(("Port", "delete", f"p{n}") for n in range(4)),
            ("CallsAt", "update", "c1"),
            *(("Note", "insert", id_) for id_ in ("n", "ü", "Z")),
        ]
    )


def test_pages_of_every_size_tell_the_same(graph, mixed):
    whole = list(graph.commits.changes(mixed.id).changes)
    for size in range(1, len(whole) + 2):
        found, counts = every_change(graph, mixed.id, Limits(changes=size))
        assert found == whole
        full, rest = divmod(len(whole), size)
        assert counts == [size] * full + ([rest] if rest else [])


def test_pages_of_any_bytes_tell_the_same(graph, mixed):
    whole = list(graph.commits.changes(mixed.id).changes)
    sizes = [len(json.dumps(c.to_json(), separators=(",", ":")).encode()) for c in whole]
    for most in (1, min(sizes), max(sizes), 500, 1000, sum(sizes) - 1, sum(sizes)):
        found, counts = every_change(graph, mixed.id, Limits(bytes=most))
        assert found == whole
        if most == 1:
            assert counts == [1] * len(whole), "a change that is too large has a page of its own"
        if most == sum(sizes):
            assert counts == [len(whole)]


def test_pages_of_a_filter_tell_what_was_asked_for(graph, mixed):
    for scope in ({"ops": ["insert"]}, {"types": ["Port", "Note"]}, {"kinds": ["edge"]}):
        whole = list(graph.commits.changes(mixed.id, **scope).changes)
        assert whole
        assert every_change(graph, mixed.id, Limits(changes=1), **scope)[0] == whole


def test_long_ids_that_begin_alike_are_paged(graph):
    ids = [f"{'x' * 300}{n:03d}" for n in range(7)] + ["x" * 255, "x" * 256, "x" * 64, "€" * 100]
    made = insert(graph, NOTE, {id_: {} for id_ in ids})
    found, counts = every_change(graph, made.id, Limits(changes=2))
    assert [c.id for c in found] == sorted(ids, key=str.encode)
    assert counts == [2, 2, 2, 2, 2, 1]


def test_type_identity_survives_a_rename(graph):
    insert(graph, SHIP, {"s": {"name": "x"}})
    [before] = graph.commits.changes(graph.snapshot().commit_id).changes
    renamed = SCHEMA.replace("node Ship {", 'node Vessel @rename_from("Ship") {')
    accept_schema(graph, renamed.replace("Ship ->", "Vessel ->"))
    made = insert(graph, "node:Vessel", {"t": {"name": "x"}})
    [after] = graph.commits.changes(made.id).changes
    assert (before.type, after.type) == ("Ship", "Vessel")
    assert before.type_id == after.type_id


def test_old_commits_are_reported_with_the_schema_they_had(graph):
    made = insert(graph, SHIP, {"s": {"name": "x"}})
    renamed = SCHEMA.replace("tons: I32?", 'weight: I32? @rename_from("tons")')
    accept_schema(graph, renamed)
    [change] = graph.commits.changes(made.id).changes
    assert change.after.properties == {"name": "x", "tons": None}


def test_values_are_written_as_exports_write_them(tmp_path):
    graph = og.init(tmp_path / "full", FULL)
    values = {
        "day": "2020-01-02",
        "moment": "2020-01-02T03:04:05.006Z",
        "body": "base64:aGk=",
        "place": [0.5, -1.0],
        "tags": ["a", ""],
    }
    graph.insert("Thing", [{"name": "a", **values}, {"name": "b", "body": "base64:", "tags": []}])
    changes = graph.commits.changes(graph.snapshot().commit_id).changes
    exported = [json.loads(line)["data"] for line in graph.export()]
    assert [{"id": c.id, **c.after.properties} for c in changes] == exported
    assert changes[0].after.properties == {"name": "a", **values}
    assert changes[1].after.properties["body"] == "base64:"


def test_blob_alone_is_a_change(tmp_path):
    graph = og.init(tmp_path / "full", FULL)
    graph.insert("Thing", [{"name": "a", "body": "base64:aGk="}])
    graph.put_blob("Thing", "a", "body", b"ho")
    [change] = graph.commits.changes(graph.snapshot().commit_id).changes
    assert (change.op, change.changed) == ("update", ["body"])
    assert change.before.properties["body"] == "base64:aGk="
    assert change.after.properties["body"] == "base64:aG8="


def test_commit_that_changed_no_entity_has_an_empty_page(graph):
    insert(graph, NOTE, {"a": {}})
    insert(graph, NOTE, {"b": {}})
    for made in (graph.optimize().commit, upsert(graph, NOTE, {"a": {}})):
        page = graph.commits.changes(made.id)
        assert (page.changes, page.next_page_token) == ((), None)


# --- refusals ----------------------------------------------------------------------------------


def test_first_commit_has_nothing_to_compare_with(graph):
    [first] = graph.commits.list()
    with pytest.raises(CommitHasNoParent) as caught:
        graph.commits.changes(first.id)
    assert (caught.value.code, caught.value.category) == ("parentless_commit", "conflict")
    assert caught.value.details == {
        "reason": "parentless_commit",
        "graph_commit_id": first.id,
    }


@pytest.mark.parametrize("scope", [{}, {"types": ["Port"]}, {"kinds": ["edge"]}])
def test_commit_that_changed_the_schema_is_refused_whatever_is_asked_for(graph, scope):
    made = accept_schema(graph, SCHEMA.replace("tons:", "weight:"))
    with pytest.raises(ChangeSchemaBoundary) as caught:
        graph.commits.changes(made.id, **scope)
    assert (caught.value.code, caught.value.category) == ("schema_boundary", "conflict")
    assert caught.value.details == {
        "reason": "schema_boundary",
        "graph_commit_id": made.id,
        "type_name": "Ship",
    }


def test_schema_text_that_means_the_same_is_no_boundary(graph):
    made = accept_schema(graph, f"// told better\n{SCHEMA}")
    assert graph.commits.changes(made.id).changes == ()


def test_reclaimed_version_is_a_gap(graph):
    insert(graph, NOTE, {"a": {}})
    made = upsert(graph, NOTE, {"a": {"text": "x"}})
    for number in range(3):
        upsert(graph, NOTE, {"a": {"text": str(number)}})
    clean_at_once(graph, keep=1)
    fresh = og.open(graph.uri)
    with pytest.raises(ChangeFeedGap) as caught:
        fresh.commits.changes(made.id)
    assert (caught.value.code, caught.value.category) == ("change_feed_gap", "not_found")
    assert caught.value.details == {"first_unreadable_commit_id": made.id}


def test_commit_nobody_knows_is_refused(graph):
    with pytest.raises(NotFound) as caught:
        graph.commits.changes("01M7H26EYJTYZ18MHHDC64QB0R")
    assert caught.value.code == "commit_not_found"


def test_type_nobody_knows_is_refused(graph, mixed):
    with pytest.raises(NotFound, match="did you mean `Port`"):
        graph.commits.changes(mixed.id, types=["Prt"])


@pytest.mark.parametrize("name", ["changes", "bytes", "commits"])
def test_page_that_could_hold_nothing_is_refused(name):
    for number in (0, -1):
        with pytest.raises(InvalidInput) as caught:
            Limits(**{name: number})
        assert caught.value.code == "limit_invalid"


@pytest.mark.parametrize(
    ("name", "most", "resource"),
    [
        ("changes", 8_192, "commit_changes_page_changes"),
        ("bytes", 33_554_432, "commit_changes_page_bytes"),
        ("commits", 512, "change_feed_commits_per_poll"),
    ],
)
def test_page_that_would_hold_too_much_is_refused(name, most, resource):
    Limits(**{name: most})
    with pytest.raises(PageLimitExceeded) as caught:
        Limits(**{name: most + 1})
    assert (caught.value.code, caught.value.category) == ("resource_limit", "limit")
    assert caught.value.details == {"resource": resource, "limit": most, "actual": most + 1}


def test_page_token_is_refused_for_anything_else(graph, mixed, tmp_path):
    one = Limits(changes=1)
    token = graph.commits.changes(mixed.id, limits=one).next_page_token
    other = insert(graph, NOTE, {"a": {}, "b": {}})
    with pytest.raises(CursorRejected, match="another commit"):
        graph.commits.changes(other.id, page_token=token)
    with pytest.raises(CursorRejected, match="another filter"):
        graph.commits.changes(mixed.id, page_token=token, ops=["insert"])
    with pytest.raises(CursorRejected, match="commit-page token, not a feed-cursor"):
        graph.changes.poll(cursor=token)
    with pytest.raises(CursorRejected, match="commit-page token, not a feed-page"):
        graph.changes.poll(page_token=token)
    twin = og.init(tmp_path / "twin", SCHEMA)
    made = insert(twin, NOTE, {"a": {}, "b": {}})
    with pytest.raises(CursorRejected, match="another graph"):
        twin.commits.changes(made.id, page_token=token)
