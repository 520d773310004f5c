"""The way between two versions leaves out what only upkeep did, whatever the history looks like."""

import pytest

import omnigraph.graph as og
from omnigraph.changes import type_delta
from omnigraph.changes.version_history import VersionHistory
from tests.support.graphs import NOTE, clean_at_once, insert, upsert


@pytest.fixture(autouse=True)
def many(monkeypatch):
    """Take the way of large types for small ones."""
    monkeypatch.setattr(type_delta, "REWRITTEN_ROWS_THRESHOLD", 0)


@pytest.fixture
def states(graph):
    """Return states by name: two of them, an upkeep, two more; and a branch from before it."""
    found = {}

    def note(name, at="main"):
        found[name] = graph.snapshot(at)

    insert(graph, NOTE, {"a": {"text": "1"}, "b": {"text": "1"}})
    note("first")
    insert(graph, NOTE, {"c": {"text": "1"}})
    note("second")
    graph.branches.create("old")
    assert graph.optimize().commit is not None
    note("tidy")
    upsert(graph, NOTE, {"a": {"text": "2"}})
    note("third")
    assert graph.indexes.ensure().commit is not None
    note("indexed")
    insert(graph, NOTE, {"d": {"text": "1"}})
    note("fourth")
    upsert(graph, NOTE, {"b": {"text": "2"}}, branch="old")
    note("branch", "old")
    return found


def runs(graph, states, one, other):
    """Return the pairs of states that are compared, by name."""
    names = {state.entry(NOTE).physical: name for name, state in reversed(states.items())}
    steps = VersionHistory(graph._manifest, (states[one], states[other]))
    found = steps.ranges(states[one].entry(NOTE), states[other].entry(NOTE))
    return [(names[old.physical], names[new.physical]) for old, new in found]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("first", "second", [("first", "second")]),
        ("first", "first", []),
        ("second", "tidy", []),
        ("tidy", "second", []),
        ("first", "tidy", [("first", "second")]),
        ("second", "third", [("tidy", "third")]),
        ("first", "fourth", [("first", "second"), ("tidy", "third"), ("indexed", "fourth")]),
        ("fourth", "tidy", [("fourth", "indexed"), ("third", "tidy")]),
        ("branch", "tidy", [("branch", "second")]),
        ("branch", "third", [("branch", "second"), ("tidy", "third")]),
        ("third", "branch", [("third", "tidy"), ("second", "branch")]),
    ],
)
def test_pairs_lead_around_upkeep(graph, states, one, other, expected):
    assert runs(graph, states, one, other) == expected


def shown(graph, one, other):
    return [(str(c.op), c.id) for c in graph.diff(one, other)]


def test_difference_across_upkeep_is_exact(graph, states):
    found = shown(graph, states["first"], states["fourth"])
    assert found == [("update", "a"), ("insert", "c"), ("insert", "d")]
    assert shown(graph, states["branch"], states["third"]) == [("update", "a"), ("update", "b")]
    assert shown(graph, states["second"], states["tidy"]) == []


def test_difference_is_exact_when_versions_between_are_gone(graph, states):
    clean_at_once(graph, keep=1)
    graph.tags.create("end")
    fresh = og.open(graph.uri, mode="ro")
    found = shown(fresh, states["branch"], "main")
    assert found == [("update", "a"), ("update", "b"), ("insert", "d")]


def test_difference_with_a_branch_that_is_gone_is_exact(graph, states):
    graph.branches.delete("old")
    assert shown(graph, states["branch"], states["third"]) == [("update", "a"), ("update", "b")]


def test_version_adopted_by_a_merge_leads_back_to_where_it_was_made(graph):
    insert(graph, NOTE, {"a": {"text": "1"}})
    insert(graph, NOTE, {"b": {"text": "1"}})
    base = graph.snapshot()
    graph.branches.create("work")
    assert graph.optimize(branch="work").commit is not None
    tidy = graph.snapshot("work")
    insert(graph, NOTE, {"c": {"text": "1"}}, branch="work")
    made = graph.merge("work").commit
    assert made is not None
    merged = graph.snapshot()
    assert merged.entry(NOTE).physical == graph.snapshot("work").entry(NOTE).physical
    steps = VersionHistory(graph._manifest, (base, merged))
    [(old, new)] = steps.ranges(base.entry(NOTE), merged.entry(NOTE))
    assert (old.physical, new.physical) == (tidy.entry(NOTE).physical, merged.entry(NOTE).physical)
    assert [c.id for c in graph.commits.changes(made.id).changes] == ["c"]


def test_what_was_deleted_on_both_sides_of_an_upkeep_is_reported(tmp_path):
    graph = og.init(tmp_path / "graph", "node Note { k: String @key  text: String? }")
    graph.insert("Note", [{"k": f"n{number:03d}", "text": "1"} for number in range(50)])
    first = graph.snapshot()
    graph.insert("Note", [{"k": "late", "text": "1"}])
    graph.mutate('query q() { delete Note where k = "n007" }')
    assert graph.optimize().commit is not None
    graph.mutate('query q() { delete Note where k = "n008" }')
    graph.mutate('query q() { delete Note where k = "late" }')
    graph.mutate('query q() { update Note set { text: "2" } where k = "n009" }')
    reported = {(change.id, str(change.op)) for change in graph.diff(first, "main")}
    assert reported == {("n007", "delete"), ("n008", "delete"), ("n009", "update")}
    back = {(change.id, str(change.op)) for change in graph.diff("main", first)}
    assert back == {("n007", "insert"), ("n008", "insert"), ("n009", "update")}
