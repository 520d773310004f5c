"""Changes made elsewhere are repeated as one commit, on top of whatever is there."""

import json

import pytest

import omnigraph as og
from omnigraph.errors import NotFound, OmniError
from omnigraph.write.load import ReplayedChanges, replay_changes

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.load({"Person": [{"name": name, "age": 1} for name in ("ada", "bo", "cy")]})
    graph.load({"Knows": [{"id": "1", "from": "ada", "to": "bo"}]})
    return graph


def line(name, **data):
    return json.dumps({"type": "Person", "data": {"id": name, "name": name, **data}})


def again(graph, lines=(), gone=None):
    return replay_changes(
        graph._manifest,
        graph._request("stream", None, "reported"),
        ReplayedChanges(lines, gone or {}),
    )


def state(graph):
    return [json.loads(text)["data"]["id"] for text in graph.export()]


def test_entities_are_replaced_added_and_removed_in_one_commit(graph):
    before = len(graph.commits.list())
    commit = again(graph, [line("ada", age=5), line("di")], {"node:Person": ["cy", "nobody"]})
    assert (commit.operation, commit.message) == ("stream", "reported")
    assert len(graph.commits.list()) == before + 1
    assert state(graph) == ["1", "ada", "bo", "di"]
    assert graph.entity_at("Person", "ada")["age"] == 5


def test_edges_of_a_node_that_is_gone_go_with_it(graph):
    commit = again(graph, gone={"node:Person": ["bo"]})
    assert state(graph) == ["ada", "cy"]
    assert {key: counts.deleted for key, counts in commit.counts.items()} == {
        "node:Person": 1,
        "edge:Knows": 1,
    }


def test_what_happens_meanwhile_is_taken_into_account(graph):
    steps = []

    def observe(step):
        if step == "swap: begun" and not steps:
            steps.append(step)
            og.open(graph.uri).load({"Knows": [{"id": "2", "from": "cy", "to": "bo"}]})

    graph._manifest.datasets.observe = observe
    again(graph, [line("di")], {"node:Person": ["bo"]})
    assert steps
    assert state(graph) == ["ada", "cy", "di"], "the new edge went with its node"
    assert graph.verify().ok


def test_what_breaks_a_rule_changes_nothing(graph):
    before = list(graph.export())
    edge = json.dumps({"edge": "Knows", "from": "ada", "to": "bo", "data": {"id": "3"}})
    with pytest.raises(OmniError):
        again(graph, [edge], {"node:Person": ["bo"]})
    with pytest.raises(OmniError, match="age"):
        again(graph, [line("ada", age="old")])
    with pytest.raises(NotFound, match="unknown type 'node:Ghost'"):
        again(graph, gone={"node:Ghost": ["x"]})
    assert list(graph.export()) == before
