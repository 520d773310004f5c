"""The commands that merge, revert and pick, and the drawing of history."""

import json

import pytest

import omnigraph.graph as og
from tests.support.program import omnigraph

SCHEMA = "node Person { name: String @key  age: I64?  city: String? }"


@pytest.fixture
def uri(tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA)
    change(graph.uri, "main", 'insert Person { name: "Ada", age: 1 }')
    graph.branches.create("side")
    return graph.uri


def change(uri, branch, statement):
    return og.open(uri).mutate(f"query q() {{ {statement} }}", branch=branch).commit.id


def set_age(uri, branch, age):
    return change(uri, branch, f'update Person set {{ age: {age} }} where name = "Ada"')


def age(uri):
    return og.open(uri).entity_at("Person", "Ada")["age"]


@pytest.mark.parametrize("command", [("merge",), ("branch", "merge")])
def test_a_merge_prints_its_outcome(uri, command):
    set_age(uri, "side", 2)
    ran = omnigraph(*command, "--uri", uri, "side", "--delete-branch")
    reported = f"omnigraph {' '.join(command)} → {uri} (direct, local)\n"
    assert (ran.code, ran.err) == (0, reported)
    assert ran.out == (
        "merged side into main: fast_forward\n  node:Person: +0 ~1 -0\ndeleted branch side\n"
    )
    assert age(uri) == 2


def test_json_has_the_wire_shape(uri):
    made = set_age(uri, "side", 2)
    facts = json.loads(omnigraph("merge", "--uri", uri, "side", "--as", "ada", "--json").out)
    commit = facts.pop("commit")
    assert commit["merged_parent_commit_id"] == made
    assert facts == {
        "source": "side",
        "target": "main",
        "outcome": "fast_forward",
        "actor_id": "ada",
        "counts": {"node:Person": {"inserted": 0, "updated": 1, "deleted": 0}},
        "conflicts": [],
    }


CONFLICT = """\
divergent_update node Person Ada
  divergent update for id 'Ada': both changed age
  base:   age = 1
  source: age = 2
  target: age = 3
"""


def test_conflicts_are_shown_and_change_nothing(uri):
    set_age(uri, "side", 2)
    set_age(uri, "main", 3)
    preview = omnigraph("merge", "--uri", uri, "side", "--dry-run", "--quiet")
    assert (preview.code, preview.err) == (1, "")
    assert preview.out == f"{CONFLICT}1 conflict; nothing would be changed\n"
    ran = omnigraph("merge", "--uri", uri, "side", "--quiet")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        f"error[merge_conflict]: 1 conflict; nothing was changed\n{CONFLICT}"
        "resolve them with --resolve source, --resolve target or --resolve FILE\n"
    )
    facts = json.loads(omnigraph("merge", "--uri", uri, "side", "--json").out)
    [reported] = facts["error"]["details"]["merge_conflicts"]
    assert (reported["kind"], reported["entity_id"]) == ("divergent_update", "Ada")
    assert age(uri) == 3


def test_a_file_decides(uri, tmp_path):
    set_age(uri, "side", 2)
    set_age(uri, "main", 3)
    decisions = tmp_path / "decisions.json"
    entity = {"type": "Person", "id": "Ada", "set": {"age": 5}}
    decisions.write_text(json.dumps({"entities": [entity]}))
    assert omnigraph("merge", "--uri", uri, "side", "--resolve", decisions).code == 0
    assert age(uri) == 5


def test_invalid_usage_is_reported(uri):
    ran = omnigraph("merge", "--uri", uri, "nowhere", "--quiet")
    assert (ran.code, ran.err) == (1, "error[branch_not_found]: branch 'nowhere' does not exist\n")
    ran = omnigraph("merge", "--uri", uri, "side", "--resolve", "missing.json")
    assert ran.code == 1
    assert "cannot read the decisions in missing.json" in ran.err


def test_revert_and_cherry_pick(uri):
    made = set_age(uri, "side", 2)
    assert omnigraph("cherry-pick", "--uri", uri, made).out == (
        f"picked {made} into main: merged\n  node:Person: +0 ~1 -0\n"
    )
    assert age(uri) == 2
    [newest] = og.open(uri).commits.list(limit=1)
    ran = omnigraph("revert", "--uri", uri, newest.id, "--message", "no")
    assert ran.code == 0
    assert age(uri) == 1


def test_history_is_drawn(uri):
    set_age(uri, "side", 2)
    change(uri, "main", 'update Person set { city: "Oslo" } where name = "Ada"')
    omnigraph("merge", "--uri", uri, "side", "-m", "together")
    lines = omnigraph("commit", "log", uri, "--draw").out.splitlines()
    assert [line[:3] for line in lines] == ["* 0", "|\\", "* |", "| *", "|/", "* 0", "* 0"]
    assert lines[0].endswith("merge: together +0 ~1 -0")
    assert "(main)" in lines[0]
    logged = json.loads(omnigraph("commit", "log", uri, "--json").out)["commits"]
    listed = json.loads(omnigraph("commit", "list", uri, "--json").out)["commits"]
    assert [{**commit, "names": None} for commit in logged] == [
        {**c, "names": None} for c in listed
    ]
    assert [commit["names"] for commit in logged] == [["main"], [], ["side"], [], []]
    plain = omnigraph("commit", "log", uri, "--limit", "2").out.splitlines()
    assert plain == [line.lstrip("*| ") for line in (lines[0], lines[2])]
