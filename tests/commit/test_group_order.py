"""Groups of changes: what they look up, and what happens between preparation and turn."""

from functools import partial

import pytest

import omnigraph.graph as og
from omnigraph.merge.conflicts import MergeConflicts
from omnigraph.write import group_commit, load
from omnigraph.write.violations import ValidationFailed
from tests.support.graphs import clean_at_once
from tests.support.groups import make_together, other_durability, turn_of_another

SCHEMA = """
node Port { code: String @key  depth: I32?  name: String? }
node Note { text: String @key }
"""
INSERT = 'query i() { insert Port { code: "z", depth: 1 } }'
UPDATE = 'query u() { insert Note { text: "n" }  update Port set { depth: 9 } where code = "z" }'
DELETE = 'query d() { delete Note where text = "x"  delete Port where code = "z" }'
EMPTY = 'query e() { insert Note { text: "m" }  update Port set { depth: 9 } where code = "no" }'


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.insert("Note", [{"text": "x"}])
    return graph


def ports(graph, at=None):
    text = "query q() { match { $p: Port } return { $p.code, $p.depth } order { $p.code } }"
    return graph.query(text, at=at).rows


@pytest.mark.parametrize(("text", "after"), [(UPDATE, [9]), (DELETE, [])])
def test_change_after_an_insert_finds_what_was_inserted(graph, text, after):
    changes = [lambda: graph.mutate(INSERT), lambda: graph.mutate(text)]
    assert [caller.error for caller in make_together(graph, *changes)] == [None, None]
    first, second = reversed(graph.commits.list(limit=2))
    assert ports(graph, first.id) == [{"p.code": "z", "p.depth": 1}]
    assert set(second.counts) == {"node:Note", "node:Port"}
    assert [row["p.depth"] for row in ports(graph)] == after


def test_update_that_finds_nothing_joins_a_group(graph):
    texts = [f'query i() {{ insert Port {{ code: "{code}" }} }}' for code in "abc"]
    changes = [lambda text=text: graph.mutate(text) for text in (*texts, EMPTY)]
    assert [caller.error for caller in make_together(graph, *changes)] == [None] * 4
    assert [row["p.code"] for row in ports(graph)] == ["a", "b", "c"]


def test_update_prepared_before_the_turn_keeps_what_another_process_wrote(graph):
    graph.mutate(INSERT)
    other = og.open(graph.uri, durability=other_durability(graph))
    rename = 'query r() { update Port set { name: "Zurich" } where code = "z" }'
    with turn_of_another(graph, [lambda: other.mutate(rename)]):
        graph.mutate('query u() { update Port set { depth: 9 } where code = "z" }')
    text = "query q() { match { $p: Port } return { $p.depth, $p.name } }"
    assert graph.query(text).rows == [{"p.depth": 9, "p.name": "Zurich"}]


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("fields", [", depth: 1", ""])
def test_row_that_was_unchanged_before_the_turn_is_written_if_it_was_deleted_meanwhile(
    graph, monkeypatch, fields, alone
):
    graph.mutate(INSERT)
    if alone:
        monkeypatch.setattr(group_commit, "MAX_ROWS", 0)
    other = og.open(graph.uri, durability=other_durability(graph))
    delete = 'query d() { delete Port where code = "z" }'
    text = f'query i() {{ insert Port {{ code: "z"{fields} }}  insert Note {{ text: "n" }} }}'
    with turn_of_another(graph, [lambda: other.mutate(delete)]):
        graph.mutate(text)
    assert [row["p.code"] for row in ports(graph)] == ["z"]


def test_rows_that_were_unchanged_before_the_turn_are_written_if_they_were_deleted_meanwhile(graph):
    graph.mutate(INSERT)
    other = og.open(graph.uri, durability=other_durability(graph))
    delete = 'query d() { delete Port where code = "z" }'
    graph.load({"Port": [{"code": "x", "depth": 1}]})
    rows = {"Port": [{"code": "z", "depth": 1}, {"code": "x", "depth": 2}]}
    changes = [lambda one=one: graph.load(one) for one in (rows, {"Note": [{"text": "n"}]})]
    with turn_of_another(graph, [lambda: None, lambda: other.mutate(delete)]):  # the first gathers
        assert [caller.error for caller in make_together(graph, *changes)] == [None, None]
    assert ports(graph) == [{"p.code": "x", "p.depth": 2}, {"p.code": "z", "p.depth": 1}]


@pytest.mark.parametrize("commits", [False, True])
def test_rows_written_before_a_cleanup_are_written_again(graph, commits):
    other = og.open(graph.uri, durability=other_durability(graph))

    def clean():
        if commits:
            other.insert("Port", [{"code": "y"}])
        clean_at_once(other, keep=1)

    with turn_of_another(graph, [clean]):
        graph.mutate(INSERT)
    expected = {"y", "z"} if commits else {"z"}
    assert {row["p.code"] for row in ports(og.open(graph.uri))} == expected
    assert graph.verify().ok


def test_picked_commit_writes_what_was_there_before_the_turn_and_was_deleted_meanwhile(graph):
    picked = graph.mutate('query b() { insert Port { code: "z" }  insert Note { text: "n" } }')
    graph.mutate('query d() { delete Note where text = "n" }')
    other = og.open(graph.uri, durability=other_durability(graph))
    delete = 'query d() { delete Port where code = "z" }'
    with turn_of_another(graph, [lambda: other.mutate(delete)]):
        graph.cherry_pick(picked.commit.id)
    assert [row["p.code"] for row in ports(graph)] == ["z"]
    assert graph.query(
        "query q() { match { $n: Note } return { $n.text } order { $n.text } }"
    ).rows == [
        {"n.text": "n"},
        {"n.text": "x"},
    ]


def test_merge_into_a_branch_that_changed_before_the_turn_is_no_fast_forward(graph):
    graph.branches.create("side")
    graph.branch("side").mutate(INSERT)
    other = og.open(graph.uri, durability=other_durability(graph))
    with turn_of_another(graph, [lambda: other.insert("Note", [{"text": "n"}])]):
        assert graph.merge("side").outcome == "merged"


RULES = SCHEMA.replace("depth: I32?", "depth: I32?  @range(depth, 0..10)")
FEWER = SCHEMA.replace("depth: I32?", "")


@pytest.mark.parametrize("schema", [RULES, FEWER], ids=["rule", "property"])
def test_merged_schema_is_compared_with_what_was_inserted_before_the_turn(graph, schema):
    graph.branches.create("changed")
    graph.branch("changed").schema.apply(schema)
    other = og.open(graph.uri, durability=other_durability(graph))
    insert = partial(other.insert, "Port", [{"code": "y", "depth": 50}])
    with turn_of_another(graph, [insert]), pytest.raises(MergeConflicts, match="depth"):
        graph.merge("changed")
    assert ports(graph) == [{"p.code": "y", "p.depth": 50}]


@pytest.mark.parametrize("act", ["insert", "optimize"])
def test_merged_branch_that_changed_before_the_turn_is_not_deleted(graph, act):
    graph.branches.create("side")
    graph.branch("side").mutate(INSERT)
    other = og.open(graph.uri, durability=other_durability(graph)).branch("side")
    acts = {"insert": partial(other.insert, "Note", [{"text": "n"}]), "optimize": other.optimize}
    with turn_of_another(graph, [acts[act]]):
        result = graph.merge("side", delete_branch=True)
    assert result.branch_deleted is (act == "optimize")
    assert graph.branches.exists("side") is (act == "insert")
    if act == "insert":
        assert "the branch is at commit" in (result.branch_delete_error or "")
        result = graph.merge("side", delete_branch=True)
        assert result.branch_deleted
        assert result.counts["node:Note"].inserted == 1


def test_branch_of_a_failed_load_that_another_process_uses_is_not_deleted(graph, monkeypatch):
    other, delete = og.open(graph.uri), load.delete_branch

    def use_and_delete(*arguments, **options):
        other.load({"Port": [{"code": "y"}]}, branch="new")
        delete(*arguments, **options)

    monkeypatch.setattr(load, "delete_branch", use_and_delete)
    rows = {"Port": [{"code": "x"}, {"code": "x"}]}
    with pytest.raises(ValidationFailed):
        graph.load(rows, branch="new", from_="main")
    assert [row["p.code"] for row in ports(graph.branch("new"))] == ["y"]
