"""Every commit of a group has a state of its own, whatever is done with it."""

import os
import stat
from itertools import pairwise

import pytest

import omnigraph.graph as og
from omnigraph.errors import VersionReclaimed
from tests.support.graphs import clean_at_once
from tests.support.groups import publish_together
from tests.support.independent_reader import Reader

SCHEMA = """
node Person { name: String @key  age: I64?  text: String? @index }
edge Knows: Person -> Person { since: I64? }
"""
ADD = "query add($n: String, $a: I64) { insert Person { name: $n, age: $a, text: $n } }"
LINK = "query link($a: String, $b: String) { insert Knows { from: $a, to: $b, since: 1 } }"
AGE = "query age($n: String, $a: I64) { update Person set { age: $a } where name = $n }"
NAMES = "query names() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
EDGES = """
query edges() { match { $p: Person  $p knows $q } return { $p.name as a, $q.name as b } }
"""
FIND = 'query find() { match { $p: Person  search($p.text, "grace") } return { $p.name } }'

PEOPLE = [
    {"ann": 1, "ben": 2},
    {"ann": 1, "ben": 2, "cy": 3},
    {"ann": 1, "ben": 2, "cy": 3, "dora": 4},
    {"ann": 10, "ben": 2, "cy": 3, "dora": 4},
    {"ann": 10, "ben": 2, "cy": 3, "dora": 4, "grace": 5},
    {"ann": 10, "ben": 2, "cy": 3, "dora": 4, "grace": 5},
]
"""The ages after the commit before the group, and after each of its commits."""
LINKS = [[], [], [], [], [], [("ann", "ben")]]


@pytest.fixture
def group(graph_root):
    """A graph and the six commits whose states are compared: one, and a group of five."""
    graph = og.init(graph_root.uri, SCHEMA, storage_options=graph_root.options or None)
    first = graph.load({"Person": [{"name": "ann", "age": 1}, {"name": "ben", "age": 2}]})
    results = publish_together(
        graph,
        lambda: graph.mutate(ADD, {"n": "cy", "a": 3}),
        lambda: graph.mutate(ADD, {"n": "dora", "a": 4}),
        lambda: graph.mutate(AGE, {"n": "ann", "a": 10}),
        lambda: graph.mutate(ADD, {"n": "grace", "a": 5}),
        lambda: graph.mutate(LINK, {"a": "ann", "b": "ben"}),
    )
    return graph, [first.commit, *(result.commit for result in results)]


def people(graph, at):
    return {row["p.name"]: row["p.age"] for row in graph.query(NAMES, at=at).rows}


def links(graph, at):
    return sorted((row["a"], row["b"]) for row in graph.query(EDGES, at=at).rows)


def reopened(graph):
    return og.open(graph.uri, storage_options=graph._manifest.location.options or None)


def check_states(graph, commits):
    for number, commit in enumerate(commits):
        assert people(graph, commit.id) == PEOPLE[number]
        assert links(graph, commit.id) == LINKS[number]


def test_commits_are_in_a_line_with_growing_times(group):
    graph, commits = group
    assert [c.id for c in reversed(graph.commits.list(limit=6))] == [c.id for c in commits]
    for before, after in pairwise(commits):
        assert after.parents == (before.id,)
        assert after.created_at > before.created_at
    assert {c.manifest_version for c in commits[1:]} == {commits[-1].manifest_version}
    counts = [c.counts for c in graph.commits.list(limit=5)]
    assert [sum(x.inserted + x.updated for x in count.values()) for count in counts] == [1] * 5


def test_queries_and_search_read_each_state(group):
    graph, commits = group
    check_states(graph, commits)
    check_states(reopened(graph), commits)
    found = [[row["p.name"] for row in graph.query(FIND, at=c.id).rows] for c in commits]
    assert found == [[], [], [], [], ["grace"], ["grace"]]
    ages = [graph.entity_at("Person", "ann", commit.id)["age"] for commit in commits]
    assert ages == [1, 1, 1, 10, 10, 10]
    assert graph.entity_at("Person", "dora", commits[1].id) is None


def test_the_manifest_version_and_times_lead_to_commits_of_the_group(group):
    graph, commits = group
    last = graph.snapshot(commits[-1].manifest_version)
    assert last.commit_id == commits[-1].id
    for commit in commits:
        assert graph.snapshot(commit.created_at).commit_id == commit.id


def test_differences_between_any_two_states(group):
    graph, commits = group
    for i, old in enumerate(commits):
        for j, new in enumerate(commits):
            changes = {c.id: c.op for c in graph.diff(old.id, new.id, kinds=["node"])}
            expected = {}
            for name in PEOPLE[-1]:
                a, b = PEOPLE[i].get(name), PEOPLE[j].get(name)
                if a != b:
                    expected[name] = "insert" if a is None else "delete" if b is None else "update"
            assert changes == expected


def test_the_feed_has_a_block_for_each_commit(group):
    graph, commits = group
    page = graph.changes.poll(start=f"after:{commits[0].id}")
    assert [block.commit.id for block in page.blocks] == [c.id for c in commits[1:]]
    ids = [[(c.op, c.id) for c in block.changes if c.kind == "node"] for block in page.blocks]
    assert ids == [
        [("insert", "cy")],
        [("insert", "dora")],
        [("update", "ann")],
        [("insert", "grace")],
        [],
    ]


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_branch_from_within_the_group_can_be_written_and_merged(group, number):
    graph, commits = group
    graph.branches.create("side", commits[number].id)
    assert people(graph, "side") == PEOPLE[number]
    graph.mutate(ADD, {"n": "zoe", "a": 9}, branch="side")
    graph.mutate(AGE, {"n": "ben", "a": 20}, branch="side")
    assert people(graph, "side") == {**PEOPLE[number], "zoe": 9, "ben": 20}
    graph.merge("side")
    assert people(graph, "main") == {**PEOPLE[-1], "zoe": 9, "ben": 20}
    assert graph.verify().ok
    check_states(graph, commits)


def test_tags_exports_and_archives_of_each_state(group, tmp_path):
    graph, commits = group
    for number, commit in enumerate(commits):
        graph.tags.create(f"t{number}", commit.id)
        assert people(graph, f"t{number}") == PEOPLE[number]
        archive = tmp_path / f"{number}.tar"
        graph.export_archive(archive, commit.id)
        og.import_archive(archive, tmp_path / f"copy{number}")
        copy = og.open(tmp_path / f"copy{number}")
        assert list(copy.export("main")) == list(graph.export(commit.id))
        assert people(copy, "main") == PEOPLE[number]


def test_an_archive_with_history_keeps_each_state(group, tmp_path):
    graph, commits = group
    graph.export_archive(tmp_path / "all.tar", history=True)
    og.import_archive(tmp_path / "all.tar", tmp_path / "copy")
    copy = og.open(tmp_path / "copy")
    check_states(copy, commits)
    assert copy.verify().ok


def test_verify_optimize_and_cleanup_keep_each_state_until_it_is_removed(group):
    graph, commits = group
    assert graph.verify().ok
    assert graph.verify(deep=True).ok
    graph.optimize()
    check_states(graph, commits)
    graph.tags.create("middle", commits[2].id)
    clean_at_once(graph, keep=1)
    assert graph.verify().ok
    assert people(graph, "main") == PEOPLE[-1]
    assert people(graph, "middle") == PEOPLE[2]
    with pytest.raises(VersionReclaimed):
        people(reopened(graph), commits[0].id)


def test_a_read_only_folder_shows_each_state(tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA)
    results = publish_together(
        graph, *(lambda n=n: graph.mutate(ADD, {"n": n, "a": 1}) for n in ("a", "b", "c"))
    )
    paths = list((tmp_path / "graph").rglob("*"))
    for path in paths:
        os.chmod(path, stat.S_IMODE(path.stat().st_mode) & ~0o222)
    try:
        opened = og.open(tmp_path / "graph", "ro")
        shown = [sorted(people(opened, result.commit.id)) for result in results]
    finally:
        for path in paths:
            os.chmod(path, stat.S_IMODE(path.stat().st_mode) | 0o200)
    assert shown == [["a"], ["a", "b"], ["a", "b", "c"]]


def test_the_format_page_is_enough_to_read_each_state(tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA)
    results = publish_together(
        graph, *(lambda n=n: graph.mutate(ADD, {"n": n, "a": 1}) for n in ("a", "b", "c"))
    )
    reader = Reader(graph.uri)
    shown = [sorted(reader.entities(result.commit.id)["node:Person"]) for result in results]
    assert shown == [["a"], ["a", "b"], ["a", "b", "c"]]


def test_states_are_kept_when_old_manifest_versions_are_removed(group):
    graph, commits = group
    for number in range(40):
        graph.mutate(ADD, {"n": f"x{number}", "a": number})
    graph._manifest.main.compact()
    assert [people(graph, c.id) for c in commits] == PEOPLE


@pytest.mark.parametrize("number", range(1, 5))
def test_a_branch_from_within_the_group_merges_into_one_without_the_types(graph_root, number):
    graph = og.init(graph_root.uri, "node Place { name: String @key }", **_options(graph_root))
    graph.branches.create("empty")
    graph.schema.apply(f"node Place {{ name: String @key }}\n{SCHEMA}")
    graph.load({"Person": [{"name": "p0"}]})
    changes = [(ADD, {"n": f"p{n}", "a": n}) for n in range(1, 6)]
    results = publish_together(graph, *(lambda c=c: graph.mutate(*c) for c in changes))
    graph.branches.create("side", from_=results[number - 1].commit.id)
    graph.merge("side", into="empty")
    names = [f"p{n}" for n in range(number + 1)]
    assert sorted(people(graph, "empty")) == sorted(people(reopened(graph), "empty")) == names
    graph.mutate(ADD, {"n": "later", "a": 0}, branch="empty")
    assert sorted(people(graph, "empty")) == ["later", *names]
    assert graph.verify(deep=True).ok


def _options(graph_root):
    return {"storage_options": graph_root.options or None}
