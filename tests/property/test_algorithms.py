"""Algorithms on any small graph give the values of plain references, and those of networkx.

Graphs have loops, parallel edges, nodes by themselves, nodes and edges of several types, and some
were changed after their arrays were made.
"""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph.graph as og
from tests.support import reference_algorithms as reference
from tests.support.effort import examples

SCHEMA = """
node Person { name: String @key }
node Paper { title: String @key }
edge Knows: Person -> Person { years: F64 }
edge Wrote: Person -> Paper { years: I32 }
"""
PEOPLE, PAPERS = [f"p{n}" for n in (0, 1, 10, 2, 3, 4, 5, 6)], ["a", "p1", "zé"]
ENDS = {"Knows": (PEOPLE, PEOPLE), "Wrote": (PEOPLE, PAPERS)}


def edges_of(name):
    src, dst = ENDS[name]
    edge = st.tuples(st.sampled_from(src), st.sampled_from(dst), st.integers(0, 5))
    return st.lists(edge, max_size=24)


@cache
def empty():
    return og.init(Path(mkdtemp()) / "g", SCHEMA)


def load(graph, people, papers, edges):
    graph.load(
        {
            "Person": [{"name": name} for name in people],
            "Paper": [{"title": title} for title in papers],
            **{
                name: [{"from": src, "to": dst, "years": years} for src, dst, years in rows]
                for name, rows in edges.items()
            },
        },
        mode="overwrite",
    )


def values(graph, algorithm, edges, **options):
    rows = graph.analyze(algorithm, edges, **options).rows
    names = [(row["type"], row["id"]) for row in rows]
    assert names == sorted(names), "the order of rows does not depend on storage"
    return {f"{row['type']}/{row['id']}": row["value"] for row in rows}


def named(values):
    """Return values that are nodes, with the types that are left out beside their own."""
    own = {node: node.partition("/")[0] + "/" for node in values}
    return {node: value.removeprefix(own[node]) for node, value in values.items()}


def stated(edges, names):
    """Return all nodes of the types that edges connect, the edges, and their weights."""
    types = {"Knows": ("Person", "Person"), "Wrote": ("Person", "Paper")}
    nodes = [f"Person/{name}" for name in PEOPLE]
    nodes += [f"Paper/{name}" for name in PAPERS if "Wrote" in names]
    pairs, weights = [], []
    for name in names:
        src, dst = types[name]
        pairs += [(f"{src}/{s}", f"{dst}/{d}") for s, d, _ in edges[name]]
        weights += [float(years) for _, _, years in edges[name]]
    return nodes, pairs, weights


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(edges_of("Knows"), edges_of("Wrote"), st.sampled_from([("Knows",), ("Wrote", "Knows")]))
def test_algorithms_give_the_values_of_plain_references(knows, wrote, names):
    graph, edges = empty(), {"Knows": knows, "Wrote": wrote}
    load(graph, PEOPLE, PAPERS, edges)
    nodes, pairs, weights = stated(edges, names)
    for direction in ("out", "in", "both"):
        expected = reference.degrees(nodes, pairs, direction)
        assert values(graph, "degrees", names, direction=direction) == expected
        options = {"direction": direction, "source": "Person/p1"}
        expected = reference.distances(nodes, pairs, "Person/p1", direction=direction)
        assert values(graph, "shortest_paths", names, **options) == expected
        expected = reference.distances(
            nodes, pairs, "Person/p1", direction=direction, weights=weights
        )
        assert values(graph, "shortest_paths", names, weight="years", **options) == expected
    expected = reference.first_of_component(nodes, pairs)
    assert values(graph, "components", names) == named(expected)
    for rounds in (1, 3):
        expected = reference.communities(nodes, pairs, rounds)
        assert values(graph, "labels", names, iterations=rounds) == named(expected)
    expected = reference.ranks(nodes, pairs, rounds=4)
    found = values(graph, "pagerank", names, iterations=4, tolerance=0)
    assert found == pytest.approx(expected, abs=1e-15 * len(nodes))
    assert values(graph, "kcore", names) == reference.cores(nodes, pairs)
    assert values(graph, "triangles", names) == reference.triangles(nodes, pairs)
    check_networkx(graph, names, nodes, list(zip(pairs, weights, strict=True)))


def check_networkx(graph, names, nodes, edges):
    network = nx.MultiDiGraph()
    network.add_nodes_from(nodes)
    for (src, dst), years in edges:
        network.add_edge(src, dst, years=years)
    lengths = nx.single_source_dijkstra_path_length(network, "Person/p1", weight="years")
    found = values(graph, "shortest_paths", names, source="Person/p1", weight="years")
    assert found == {node: lengths.get(node) for node in nodes}
    first = {n: min(part) for part in nx.weakly_connected_components(network) for n in part}
    assert values(graph, "components", names) == named(first)
    simple = nx.Graph(network.to_undirected())
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    assert values(graph, "kcore", names) == nx.core_number(simple)
    assert values(graph, "triangles", names) == nx.triangles(simple)
    assert values(graph, "degrees", names) == dict(network.degree())
    transitions = np.asarray(nx.google_matrix(network, alpha=0.85))
    ranks = np.full(len(nodes), 1 / len(nodes))
    for _ in range(60):
        ranks = ranks @ transitions
    found = values(graph, "pagerank", names, iterations=60, tolerance=0)
    assert found == pytest.approx(dict(zip(nodes, ranks, strict=True)), abs=1e-9)


def test_algorithms_agree_on_arrays_that_were_changed_by_small_commits():
    chance = np.random.default_rng(5)
    graph = og.init(Path(mkdtemp()) / "g", SCHEMA)
    edges = [(*chance.choice(PEOPLE, 2).tolist(), int(chance.integers(6))) for _ in range(40)]
    load(graph, PEOPLE, PAPERS, {"Knows": edges[:30]})
    values(graph, "degrees", ["Knows"])
    for src, dst, years in edges[30:]:
        graph.load({"Knows": [{"from": src, "to": dst, "years": years}]}, mode="append")
        names, stands = ["Knows"], edges[: edges.index((src, dst, years), 30) + 1]
        nodes, pairs, weights = stated({"Knows": stands}, names)
        assert values(graph, "triangles", names) == reference.triangles(nodes, pairs)
        expected = reference.distances(nodes, pairs, "Person/p1", weights=weights)
        assert values(graph, "shortest_paths", names, source="p1", weight="years") == expected
