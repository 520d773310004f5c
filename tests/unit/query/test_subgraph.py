"""The subgraph of a query has what its pattern matches."""

import json

import pytest

import omnigraph.graph as og

SCHEMA = """
interface Labelled { label: String }
node Author implements Labelled { key: String @key  name: String  label: String }
node Book implements Labelled { key: String @key  label: String }
node Shop { key: String @key }
edge Wrote: Author -> Book
edge SoldIn: Book -> Shop
edge LivesIn: Author -> Shop
"""
LINES = [
    {"type": "Author", "data": {"key": "same", "name": "Ann", "label": "ann"}},
    {"type": "Author", "data": {"key": "bo", "name": "Bo", "label": "bo"}},
    {"type": "Book", "data": {"key": "same", "label": "book"}},
    {"type": "Shop", "data": {"key": "s"}},
    {"edge": "Wrote", "from": "same", "to": "same"},
    {"edge": "SoldIn", "from": "same", "to": "s"},
    {"edge": "LivesIn", "from": "bo", "to": "s"},
]
AUTHORS = {("Author", "same", "Ann"), ("Author", "bo", "Bo")}
BOOKS = {("Book", "same", "book")}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    made = og.init(tmp_path_factory.mktemp("subgraph") / "g", SCHEMA)
    made.load("\n".join(map(json.dumps, LINES)).encode())
    return made


def found(graph, text, **params):
    subgraph = graph.subgraph(text, params)
    nodes = {(node.type, node.id, node.label) for node in subgraph.nodes}
    edges = {(e.type, e.src_type, e.src, e.dst_type, e.dst) for e in subgraph.edges}
    assert len(nodes) == len(subgraph.nodes)
    assert len(edges) == len(subgraph.edges)
    return nodes, edges


def test_nodes_of_an_interface_have_their_own_types(graph):
    assert found(graph, "match { $x: Labelled } return { $x.id }") == (AUTHORS | BOOKS, set())


def test_a_traversal_from_an_interface_has_edges_of_the_types_it_connects(graph):
    nodes, edges = found(graph, "match { $x: Labelled  $x soldIn $s } return { $s.id }")
    assert nodes == BOOKS | {("Shop", "s", "s")}
    assert edges == {("SoldIn", "Book", "same", "Shop", "s")}
    text = "query q($t: String) { match { $y: Labelled  $x: Labelled { label: $t }  $x wrote $y } "
    nodes, edges = found(graph, text + "return { $y.id } }", t="ann")
    assert nodes == BOOKS | {("Author", "same", "Ann")}
    assert edges == {("Wrote", "Author", "same", "Book", "same")}


def test_nodes_of_all_types_together_are_limited(graph):
    subgraph = graph.subgraph("match { $x: Labelled  $_: Labelled } return { $x.id }", limit=2)
    assert len(subgraph.nodes) == 2
    assert subgraph.truncated


def test_nodes_inside_of_not_and_exists_are_no_part_of_it(graph):
    text = "match { $a: Author  not { $a wrote $b }  optional { $a livesIn $s } } return { $a.id }"
    nodes, edges = found(graph, text)
    assert nodes == {("Author", "bo", "Bo"), ("Shop", "s", "s")}
    assert edges == {("LivesIn", "Author", "bo", "Shop", "s")}
