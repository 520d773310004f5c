"""The history and blame of an entity: embedded and served, on a disk and in a bucket."""

from datetime import UTC, datetime, timedelta

import pytest

import omnigraph as og
from omnigraph.catalog import TypeKind
from omnigraph.changes.model import EntityImage
from omnigraph.commit import publish
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.graph import import_archive
from tests.behaviour.test_earlier_releases import FIXTURES, RELEASES, unpack
from tests.support.deployments import ACTOR, SCHEMA, Embedded, served_lane
from tests.support.graphs import clean_at_once
from tests.support.groups import publish_together
from tests.support.naive_history import NaiveHistory, describe

ADD = "query add($n: String, $a: I32?) { insert Person { name: $n, age: $a } }"
AGE = "query age($n: String, $a: I32?) { update Person set { age: $a } where name = $n }"
SCORE = "query score($n: String, $s: F64) { update Person set { score: $s } where name = $n }"
PLAIN = "node Person { name: String @key  age: I32? }"
"""A type without blobs: changes of it are published in groups."""
DROP = "query drop($n: String) { delete Person where name = $n }"
KNOWS = "query knows($a: String, $b: String) { insert Knows { from: $a, to: $b } }"


@pytest.fixture(scope="module", params=["embedded", "http-1", "http-3"])
def lane(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lanes")
    if request.param == "embedded":
        yield Embedded(folder)
        return
    with served_lane(folder, int(request.param[-1])) as found:
        yield found


@pytest.fixture
def graph(lane):
    return lane.graph()


def change(graph, source, branch="main", message=None, **params):
    return graph.mutate(source, params, branch=branch, message=message).commit


def listed(history, name="age"):
    """Return of each entry the commit, what happened, and one value before and after."""
    return [
        (entry.commit.id, str(entry.op), *(value_of(image, name) for image in images(entry)))
        for entry in history
    ]


def images(entry):
    return entry.before, entry.after


def value_of(image, name):
    return None if image is None else image.properties[name]


# --- embedded and served ------------------------------------------------------------------------


def test_every_change_is_listed_with_its_commit_the_newest_first(graph):
    added = change(graph, ADD, n="Ada", a=1, message="first")
    change(graph, ADD, n="Bob", a=1)
    aged = change(graph, AGE, n="Ada", a=2, message="older")
    graph.mutate(AGE, {"n": "Ada", "a": 2})  # changes nothing
    history = graph.history("Person", "Ada")
    assert listed(history) == [(aged.id, "update", 1, 2), (added.id, "insert", None, 1)]
    assert [entry.commit for entry in history] == [aged, added]
    assert [entry.changed for entry in history] == [["age"], []]
    assert (aged.actor, aged.message, aged.operation) == (ACTOR, "older", "mutation")
    assert history.unknown_before == ()
    assert list(graph.history("Person", "Ada", limit=1)) == [history[0]]
    assert list(graph.history("Person", "Ada", added.id)) == [history[1]]
    assert list(graph.history("node:Person", "Nobody")) == []


def test_a_deleted_entity_has_both_lives(graph):
    commits = [
        change(graph, ADD, n="Ada", a=1),
        change(graph, DROP, n="Ada"),
        change(graph, ADD, n="Ada", a=3),
        change(graph, DROP, n="Ada"),
    ]
    assert listed(graph.history("Person", "Ada")) == [
        (commits[3].id, "delete", 3, None),
        (commits[2].id, "insert", None, 3),
        (commits[1].id, "delete", 1, None),
        (commits[0].id, "insert", None, 1),
    ]
    with pytest.raises(NotFound) as caught:
        graph.blame("Person", "Ada")
    assert caught.value.code == "entity_not_found"
    assert graph.blame("Person", "Ada", commits[2].id)["age"].commit_id == commits[2].id


def test_an_edge_has_its_ends(graph):
    for name in ("Ada", "Bob", "Cy"):
        change(graph, ADD, n=name)
    made = change(graph, KNOWS, a="Ada", b="Bob")
    id_ = graph.query("query q() { match { $a $k:knows $b } return { $k.id } }").rows[0]["k.id"]
    moved = graph.load(
        {"Knows": [{"id": id_, "from": "Ada", "to": "Cy", "since": "2020-01-01"}]}
    ).commit
    gone = change(graph, DROP, n="Cy")
    history = graph.history("Knows", id_)
    assert [(entry.commit.id, entry.op) for entry in history] == [
        (gone.id, "delete"),
        (moved.id, "update"),
        (made.id, "insert"),
    ]
    assert images(history[1]) == (
        EntityImage({"since": None}, ("Ada", "Bob")),
        EntityImage({"since": "2020-01-01"}, ("Ada", "Cy")),
    )
    origins = graph.blame("edge:Knows", id_, moved.id)
    assert {name: origin.commit_id for name, origin in origins.items()} == {
        "src": made.id,
        "dst": moved.id,
        "since": moved.id,
    }


def test_names_are_followed_through_renames(graph):
    added = change(graph, ADD, n="Ada", a=1)
    older = change(graph, AGE, n="Ada", a=2)
    renamed = SCHEMA.replace("Person", "Human").replace(
        "node Human {", 'node Human @rename_from("Person") {'
    )
    graph.schema.apply(renamed.replace("age: I32?", 'years: I32? @rename_from("age")'))
    newest = graph.mutate('query m() { update Human set { years: 3 } where name = "Ada" }').commit
    history = graph.history("Human", "Ada")
    assert [(e.commit.id, e.type) for e in history] == [
        (newest.id, "Human"),
        (older.id, "Person"),
        (added.id, "Person"),
    ]
    assert [tuple(p.properties.get("years") for p in images(history[0]))] == [(2, 3)]
    assert [value_of(image, "age") for image in images(history[1])] == [1, 2]
    assert graph.blame("Human", "Ada", newest.id)["years"].commit_id == newest.id
    assert graph.blame("Human", "Ada", newest.id)["name"].commit_id == added.id
    assert list(graph.history("Person", "Ada", older.id)) == list(history)[1:]


def test_merges_are_followed_to_their_sources(graph):
    added = change(graph, ADD, n="Ada", a=1)
    graph.branches.create("agent/1")
    there = change(graph, AGE, "agent/1", n="Ada", a=2, message="by an agent")
    change(graph, ADD, "agent/1", n="Bob")
    change(graph, ADD, n="Cy")
    merge = graph.merge("agent/1").commit
    assert listed(graph.history("Person", "Ada")) == [
        (there.id, "update", 1, 2),
        (added.id, "insert", None, 1),
    ]
    assert graph.history("Person", "Ada")[0].commit == there
    origin = graph.blame("Person", "Ada")["age"]
    assert origin == og.ValueOrigin(
        commit_id=there.id, actor=ACTOR, created_at=there.created_at, message="by an agent"
    )
    assert merge.id != there.id


def test_a_merge_that_combines_values_is_listed_itself(graph):
    added = change(graph, ADD, n="Ada", a=1)
    graph.branches.create("side")
    there = change(graph, SCORE, "side", n="Ada", s=0.5)
    here = change(graph, AGE, n="Ada", a=2)
    merge = graph.merge("side").commit
    history = graph.history("Person", "Ada")
    assert [(e.commit.id, e.changed) for e in history] == [
        (merge.id, ["score"]),
        (here.id, ["age"]),
        (there.id, ["score"]),
        (added.id, []),
    ]
    origins = {name: o.commit_id for name, o in graph.blame("Person", "Ada").items()}
    assert origins["age"] == here.id
    assert origins["score"] == there.id
    assert origins["name"] == origins["born"] == added.id


def test_a_revert_and_a_cherry_pick_are_changes_of_their_own(graph):
    added = change(graph, ADD, n="Ada", a=1)
    graph.branches.create("side")
    wrong = change(graph, AGE, n="Ada", a=2)
    back = graph.revert(wrong.id).commit
    there = change(graph, AGE, "side", n="Ada", a=5)
    picked = graph.cherry_pick(there.id).commit
    assert listed(graph.history("Person", "Ada")) == [
        (picked.id, "update", 1, 5),
        (back.id, "update", 2, 1),
        (wrong.id, "update", 1, 2),
        (added.id, "insert", None, 1),
    ]
    assert [e.commit.operation for e in graph.history("Person", "Ada", limit=2)] == [
        "cherry_pick",
        "revert",
    ]


def test_unknown_names_and_limits_are_refused(graph):
    with pytest.raises(NotFound) as caught:
        graph.history("Persona", "Ada")
    assert caught.value.code == "unknown_type"
    with pytest.raises(NotFound) as caught:
        graph.blame("Person", "Nobody")
    assert caught.value.code == "entity_not_found"
    with pytest.raises(InvalidInput):
        graph.history("Person", "Ada", limit=-1)


# --- on a disk and in a bucket ------------------------------------------------------------------


def test_each_commit_of_a_group_is_found(graph_root):
    options = graph_root.options or None
    graph = og.init(graph_root.uri, PLAIN, storage_options=options)
    first = change(graph, ADD, n="Ada", a=1)
    results = publish_together(
        graph,
        lambda: graph.mutate(ADD, {"n": "Bob", "a": 1}),
        lambda: graph.mutate(ADD, {"n": "Cy", "a": 1}),
        lambda: graph.mutate(AGE, {"n": "Ada", "a": 2}),
        lambda: graph.mutate(ADD, {"n": "Dora", "a": 1}),
    )
    bob, cy, ada, dora = (result.commit for result in results)
    opened = og.open(graph_root.uri, storage_options=options)
    assert listed(opened.history("Person", "Ada")) == [
        (ada.id, "update", 1, 2),
        (first.id, "insert", None, 1),
    ]
    for name, commit in (("Bob", bob), ("Cy", cy), ("Dora", dora)):
        assert listed(opened.history("Person", name)) == [(commit.id, "insert", None, 1)]
    assert list(opened.history("Person", "Cy", bob.id)) == []
    assert opened.blame("Person", "Ada", cy.id)["age"].commit_id == first.id


def test_what_cleanup_removed_is_named_and_not_guessed(graph_root):
    options = graph_root.options or None
    graph = og.init(graph_root.uri, SCHEMA, storage_options=options)
    change(graph, ADD, n="Ada", a=1)
    commits = [change(graph, AGE, n="Ada", a=age) for age in (2, 3, 4)]
    change(graph, ADD, n="Bob", a=1)
    clean_at_once(graph, keep=3)
    opened = og.open(graph_root.uri, storage_options=options)
    history = opened.history("Person", "Ada")
    assert listed(history) == [(commits[2].id, "update", 3, 4)]
    assert history.unknown_before == (commits[1].id,)
    origins = opened.blame("Person", "Ada")
    assert origins["age"].commit_id == commits[2].id
    assert origins["name"] == og.ValueOrigin(unknown_before=commits[1].id)
    assert opened.history("Person", "Bob").unknown_before == ()


def test_a_version_that_a_tag_keeps_stands_for_others(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    added = change(graph, ADD, n="Ada", a=1)
    for name in ("Bob", "Cy", "Dora"):
        change(graph, ADD, n=name)
    graph.tags.create("kept", at=graph.commits.list()[1].id)
    aged = change(graph, AGE, n="Ada", a=2)
    clean_at_once(graph, keep=1)
    history = og.open(tmp_path / "g").history("Person", "Ada")
    assert listed(history) == [(aged.id, "update", 1, 2), (added.id, "insert", None, 1)]
    assert history.unknown_before == ()


def test_a_merge_whose_target_was_cleaned_up_is_not_followed(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    change(graph, ADD, n="Ada", a=1)
    graph.branches.create("side")
    change(graph, AGE, "side", n="Ada", a=7)
    change(graph, AGE, n="Ada", a=5)
    merge = graph.merge("side", resolve="source").commit
    clean_at_once(graph, keep=1)
    opened = og.open(tmp_path / "g")
    assert opened.entity_at("Person", "Ada", "side")["age"] == 7
    history = opened.history("Person", "Ada")
    assert (listed(history), history.unknown_before) == ([], (merge.id,))
    assert opened.blame("Person", "Ada")["age"] == og.ValueOrigin(unknown_before=merge.id)


def test_a_merge_whose_source_was_cleaned_up_is_listed_itself(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    added = change(graph, ADD, n="Ada", a=1)
    graph.branches.create("side")
    for age in (6, 7):
        change(graph, AGE, "side", n="Ada", a=age)
    change(graph, ADD, n="Bob")  # so that the merge writes a version of its own
    graph.tags.create("before")
    merge = graph.merge("side", delete_branch=True).commit
    clean_at_once(graph, keep=1)
    history = og.open(tmp_path / "g").history("Person", "Ada")
    assert listed(history) == [(merge.id, "update", 1, 7), (added.id, "insert", None, 1)]
    assert history.unknown_before == (merge.id,)
    origins = og.open(tmp_path / "g").blame("Person", "Ada")
    assert origins["age"] == og.ValueOrigin(unknown_before=merge.id)
    assert origins["name"].commit_id == added.id


def test_entities_of_a_type_that_a_merge_added_have_a_history(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.branches.create("side")
    graph.schema.apply(SCHEMA + "node Port { code: String @key }", branch="side")
    added = graph.load({"Port": [{"code": "BGO"}]}, branch="side").commit
    change(graph, ADD, n="Ada")
    graph.merge("side", delete_branch=True)
    opened = og.open(tmp_path / "g")
    [entry] = opened.history("Port", "BGO")
    assert (entry.commit, entry.op) == (added, "insert")
    assert opened.blame("Port", "BGO")["code"].commit_id == added.id


def test_a_merge_that_fills_a_new_property_is_listed_itself(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.branches.create("side")
    wider = SCHEMA.replace("age: I32?", "age: I32?\n  rank: I64 @default(5)")
    graph.schema.apply(wider, branch="side")
    added = change(graph, ADD, n="Ada", a=1)
    merge = graph.merge("side", delete_branch=True).commit
    opened = og.open(tmp_path / "g")
    assert opened.entity_at("Person", "Ada")["rank"] == 5
    history = opened.history("Person", "Ada")
    assert [(entry.commit.id, entry.changed) for entry in history] == [
        (merge.id, ["rank"]),
        (added.id, []),
    ]
    assert opened.blame("Person", "Ada")["rank"].commit_id == merge.id


def test_a_clock_that_is_ahead_repeats_and_hides_nothing(tmp_path, monkeypatch):
    graph = og.init(tmp_path / "g", SCHEMA)
    added = change(graph, ADD, n="Ada", a=1)
    for name in ("one", "two"):
        graph.branches.create(name)
    ahead = datetime.now(UTC) + timedelta(days=1)
    with monkeypatch.context() as patched:
        patched.setattr(publish, "_commit_time", lambda *_: ahead)
        there = change(graph, SCORE, "one", n="Ada", s=0.5)
    graph.merge("one", into="two")
    here = change(graph, AGE, "two", n="Ada", a=2)
    change(graph, ADD, n="Bob")
    graph.merge("one")
    graph.merge("two")
    history = graph.history("Person", "Ada")
    assert {entry.commit.id for entry in history} == {added.id, there.id, here.id}
    assert len(history) == 3
    origins = {name: o.commit_id for name, o in graph.blame("Person", "Ada").items()}
    assert (origins["score"], origins["age"], origins["name"]) == (there.id, here.id, added.id)


def test_the_history_of_a_merged_branch_outlives_it(graph_root):
    options = graph_root.options or None
    graph = og.init(graph_root.uri, SCHEMA, storage_options=options)
    change(graph, ADD, n="Ada", a=1)
    graph.branches.create("side")
    there = change(graph, AGE, "side", n="Ada", a=2)
    change(graph, ADD, n="Bob")
    graph.merge("side", delete_branch=True)
    clean_at_once(graph, keep=9)
    opened = og.open(graph_root.uri, storage_options=options)
    assert listed(opened.history("Person", "Ada"))[0] == (there.id, "update", 1, 2)
    assert opened.blame("Person", "Ada")["age"].commit_id == there.id


def test_an_archive_with_history_has_the_same_histories(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    change(graph, ADD, n="Ada", a=1)
    graph.branches.create("side")
    change(graph, AGE, "side", n="Ada", a=2)
    change(graph, SCORE, n="Ada", s=0.5)
    graph.merge("side", delete_branch=True)
    graph.export_archive(tmp_path / "a", history=True)
    import_archive(tmp_path / "a", tmp_path / "h")
    copy = og.open(tmp_path / "h")
    assert listed(copy.history("Person", "Ada")) == listed(graph.history("Person", "Ada"))
    assert copy.blame("Person", "Ada") == graph.blame("Person", "Ada")


@pytest.mark.parametrize("release", RELEASES)
def test_graphs_of_earlier_releases_have_histories(release, tmp_path):
    graph = og.open(unpack(FIXTURES / release, "graph", tmp_path))
    naive, count = NaiveHistory(graph), 0
    for type_ in graph.snapshot().schema.of_kind(TypeKind.NODE):
        ids = graph.query(f"query q() {{ match {{ $e: {type_.name} }} return {{ $e.id as id }} }}")
        for row in ids:
            history = graph.history(type_.entity, row["id"])
            found = [(entry.commit.id, *describe(entry)) for entry in history]
            assert found == naive.history("main", type_, row["id"])
            count += len(found)
    assert count > 3
