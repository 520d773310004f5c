"""A policy asks nothing of storage: whoever is allowed something pays what it costs without one."""

from pathlib import Path

import pytest

import omnigraph as og
from tests.support.counting_s3 import counting_server

SCHEMA = """
node Person { name: String @key  salary: I32? }
node Secret { text: String? }
edge Knows: Person -> Person
"""
POLICY = """
version: 1
groups: { team: [act-ada] }
rules:
  - id: reads
    allow:
      actors: { group: team }
      actions: [read, export]
      types: [Person, Knows]
      mask: { Person: [salary] }
  - id: changes
    allow: { actors: { group: team }, actions: [change], types: [Person, Knows] }
"""
SEEN = ["Person", "Knows"]
DEEDS = {
    "query": lambda g: g.query("query q() { match { $p knows $q } return { $q.name } }").rows,
    "entity": lambda g: g.entity_at("Person", "ada")["name"],
    "difference": lambda g: [change.id for change in g.diff("before", "main", types=SEEN)],
    "feed": lambda g: len(g.changes.poll(start="beginning", types=SEEN).blocks),
    "export": lambda g: len(list(g.export(types=["Knows"]))),
    "mutation": lambda g: g.mutate('query m() { insert Person { name: "cy" } }').affected_nodes,
    "load": lambda g: g.insert("Person", [{"name": "dy"}]).total,
}


@pytest.fixture(scope="module")
def server():
    with counting_server() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    graph = og.init(tmp_path_factory.mktemp("policy") / "g", SCHEMA)
    graph.insert("Person", [{"name": "ada", "salary": 1}, {"name": "bo"}])
    graph.tags.create("before")
    graph.load({"Knows": [{"from": "ada", "to": "bo"}], "Secret": [{"text": "x"}]})
    return Path(graph.uri)


@pytest.mark.parametrize("name", DEEDS)
def test_policy_asks_nothing_of_storage(server, folder, name):
    found = {}
    for number, options in enumerate(({}, {"policy": POLICY, "actor": "act-ada"})):
        uri = server.load(folder, f"policy-{name}-{number}")
        graph = og.open(uri, storage_options=server.options, **options)
        with server.counted() as requests:
            answer = DEEDS[name](graph)
        found[number] = (answer, dict(requests.kinds))
    assert found[0] == found[1]
