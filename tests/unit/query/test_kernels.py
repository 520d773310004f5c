"""Compiled kernels and NumPy give the same answers, and both stop when a query is to end."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import hatch_build
import omnigraph.graph as og
from omnigraph.catalog import TypeKind
from omnigraph.plan.expressions import Direction, Hops
from omnigraph.query import kernel_library, kernels
from omnigraph.query.adjacency import CsrAdjacency
from omnigraph.query.analytics import kernels as analytics
from omnigraph.query.expansion import EdgeExpansion, ExpandMode
from omnigraph.query.limits import Cancellation, QueryBudget, QueryCancelled, QueryLimit

NODES = 400
SOURCE = Path(kernel_library.__file__).with_name("kernels.c")
SCHEMA = """
node P { name: String @key }
edge Knows: P -> P
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernels") / "kernels.so"
    if not hatch_build.compile_kernels(SOURCE, path):
        pytest.skip("there is no C compiler")
    loaded = kernel_library.load_library(path)
    assert loaded is not None
    return loaded


@pytest.fixture
def both(library, monkeypatch):
    """Return what a function gives with compiled kernels and with NumPy."""

    def run(work):
        answers = []
        for one in (library, None):
            monkeypatch.setattr(kernel_library, "LIBRARY", one)
            answers.append(work())
        return answers

    return run


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A ring in which each node knows the next two and itself, some of them twice."""
    made = og.init(tmp_path_factory.mktemp("compiling") / "g", SCHEMA)
    names = [f"n{number:03d}" for number in range(NODES)]
    ends = [(n, (n + step) % NODES) for n in range(NODES) for step in (0, 1, 2, NODES - 3)]
    ends += ends[:50]
    edges = {"from": [names[a] for a, _ in ends], "to": [names[b] for _, b in ends]}
    made.load({"P": pa.table({"name": names}), "Knows": pa.table(edges)})
    return made


def walk_of(graph, direction=Direction.OUT, budget=None):
    snapshot, store = graph.snapshot(), graph._engine.store
    nodes = store.table(snapshot, TypeKind.NODE, "P")
    return EdgeExpansion(
        edge=store.table(snapshot, TypeKind.EDGE, "Knows"),
        src=nodes,
        dst=nodes,
        direction=direction,
        topologies=graph._engine.topologies,
        budget=budget or QueryBudget(),
        mode=ExpandMode.TOPOLOGY,
    )


def random_adjacency(seed, nodes=60, edges=300, kind=np.int32):
    """Return edges with hubs, loops and parallel edges."""
    chance = np.random.default_rng(seed)
    here, there = (chance.random((2, edges)) ** 2 * nodes).astype(kind)
    return CsrAdjacency.build(here, there, (nodes, nodes))


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("step", [1, 7, 1_000_000])
def test_members_are_grouped_in_order(library, monkeypatch, kind, wide, step):
    monkeypatch.setattr(kernel_library, "LIBRARY", library)
    monkeypatch.setattr(kernels, "STEP_EDGES", step)
    keys = np.array([3, 0, 3, 1, 0, 3, 0], kind)
    order = np.array([6, 5, 4, 3, 2, 1, 0], np.int64 if wide else np.int32)
    grouped = kernels.group_by_key(keys, order, np.array([0, 3, 4, 4, 7]), lambda: None)
    assert grouped.tolist() == [6, 4, 1, 3, 5, 2, 0]
    assert grouped.dtype == order.dtype


@pytest.mark.parametrize("direction", [Direction.OUT, Direction.IN])
@pytest.mark.parametrize("step", [1, 13, 1_000_000])
def test_both_ways_of_counting_and_searching_agree(graph, both, monkeypatch, direction, step):
    monkeypatch.setattr(kernels, "STEP_EDGES", step)
    walk, back = walk_of(graph, direction), walk_of(graph, direction.reversed)
    here, there = np.random.default_rng(3).integers(0, NODES, (2, 500))
    every = np.arange(NODES)
    counted = both(lambda: walk.common(here, back, there).tolist())
    assert counted[0] == counted[1]
    assert sum(counted[0]) > 0
    for hops in (Hops(1, 3), Hops(2, 4), Hops(3, 3)):
        compiled, plain = both(lambda h=hops: walk.reach(every, h))
        assert sorted(zip(*compiled, strict=True)) == sorted(zip(*plain, strict=True))


@pytest.mark.parametrize("step", [1, 5, 1_000_000])
@pytest.mark.parametrize("most", [1, 3, 1_000])
@pytest.mark.parametrize("seed", range(8))
def test_a_search_that_pauses_finds_the_same(library, monkeypatch, seed, most, step):
    monkeypatch.setattr(kernel_library, "LIBRARY", library)
    monkeypatch.setattr(kernels, "STEP_EDGES", step)
    kind = np.int64 if seed % 2 else np.int32
    adjacency = random_adjacency(seed, 30, 70, kind)
    starts = np.array([7, 0, 7, 29, 3])
    parts = kernels.search_breadth_first(adjacency.arrays, starts, (2, 3), most, lambda: None)
    sizes, found = [], []
    for rows, nodes in parts:
        sizes.append(len(rows))
        found += zip(rows.tolist(), nodes.tolist(), strict=True)
    assert all(size == most for size in sizes[:-1])
    assert sizes[-1] <= most
    assert sorted(found) == sorted(
        (row, node) for row, start in enumerate(starts) for node in reached(adjacency, start, 2, 3)
    )


def reached(adjacency, start, minimum, maximum):
    """Return the nodes at the end of a search, by the words of the language reference."""
    edges = {
        node: set(adjacency.nodes[adjacency.starts[node] : adjacency.starts[node + 1]].tolist())
        for node in range(adjacency.count)
    }
    met, frontier, answer = {int(start)}, {int(start)}, set()
    for hop in range(1, maximum + 1):
        loops = {node for node in frontier if node in edges[node]}
        frontier = {target for node in frontier for target in edges[node]} - met
        met |= frontier
        if hop >= minimum:
            answer |= frontier | loops
    return answer


@pytest.mark.parametrize("step", [1, 40, 1_000_000])
@pytest.mark.parametrize("seed", range(12))
def test_algorithms_agree(both, monkeypatch, seed, step):
    monkeypatch.setattr(analytics, "STEP_EDGES", step)
    chance = Random(seed)
    nodes = chance.choice([1, 2, 40, 300])
    kind = chance.choice([np.int32, np.int64])
    adjacency = random_adjacency(seed, nodes, nodes * chance.randrange(4), kind)
    budget, ranks = QueryBudget(), np.random.default_rng(seed).permutation(nodes)
    ends = np.repeat(np.arange(nodes), adjacency.degrees)
    apart = ends != adjacency.nodes
    here, there = ends[apart], adjacency.nodes[apart].astype(np.int64)
    joined = np.concatenate([here, there]), np.concatenate([there, here])
    simple = CsrAdjacency.build(*joined, (nodes, nodes)).simple
    acyclic = CsrAdjacency.build(
        np.minimum(here, there), np.maximum(here, there), (nodes, nodes)
    ).simple
    weights = np.random.default_rng(seed).random(len(adjacency.nodes)).round(1)
    runs = {
        "components": lambda: analytics.component_roots(adjacency, ranks, budget),
        "labels": lambda: analytics.choose_labels(simple, ranks, budget),
        "distances": lambda: analytics.nearest_distances(adjacency, weights, 0, budget),
        "cores": lambda: analytics.core_numbers(simple, budget),
        "triangles": lambda: analytics.count_triangles(acyclic, budget),
    }
    for name, run in runs.items():
        compiled, plain = both(run)
        assert compiled.tolist() == plain.tolist(), name


@pytest.mark.parametrize("name", ["search", "common", "group"])
def test_a_kernel_stops_when_the_query_is_cancelled(graph, library, monkeypatch, name):
    """The query is cancelled while the kernel is at work: at its third check."""
    monkeypatch.setattr(kernel_library, "LIBRARY", library)
    monkeypatch.setattr(kernels, "STEP_EDGES", 100)
    cancellation, checks = Cancellation(), []

    def cancel_later(operator: str) -> None:
        checks.append(operator)
        if len(checks) == 3:
            cancellation.set()

    budget = cancellation.run(QueryBudget)
    walk_of(graph).reach(np.arange(3), Hops(1, 1))  # the topology is there
    monkeypatch.setattr(Cancellation, "check", watched(Cancellation.check, cancel_later))
    walk, every = walk_of(graph, budget=budget), np.arange(NODES)
    sizes, check = (NODES, NODES), lambda: budget.check("Expand")
    work = {
        "search": lambda: walk.reach(every, Hops(1, 9)),
        "common": lambda: walk.common(np.repeat(every, 999), walk, np.tile(every, 999)),
        "group": lambda: CsrAdjacency.build(every, every, sizes, check),
    }
    with pytest.raises(QueryCancelled):
        work[name]()


def watched(check, note):
    def run(self, operator):
        note(operator)
        check(self, operator)

    return run


@pytest.mark.parametrize("algorithm", ["labels", "cores", "triangles", "distances", "components"])
def test_an_algorithm_looks_at_the_clock_on_its_way(library, monkeypatch, algorithm):
    monkeypatch.setattr(kernel_library, "LIBRARY", library)
    monkeypatch.setattr(analytics, "STEP_EDGES", 10)
    adjacency, checks = random_adjacency(1), []

    class Budget:
        def check(self, operator):
            checks.append(operator)
            if len(checks) == 3:
                raise QueryLimit("up", code="query_timeout", operator=operator, limit=0)

    runs = {
        "components": lambda: analytics.component_roots(adjacency, np.arange(60), Budget()),
        "labels": lambda: analytics.choose_labels(adjacency, np.arange(60), Budget()),
        "distances": lambda: analytics.nearest_distances(adjacency, np.ones(300), 0, Budget()),
        "cores": lambda: analytics.core_numbers(adjacency.simple, Budget()),
        "triangles": lambda: analytics.count_triangles(adjacency.simple, Budget()),
    }
    with pytest.raises(QueryLimit):
        runs[algorithm]()
    assert len(checks) == 3


def test_a_library_that_is_damaged_or_of_another_version_is_not_used(tmp_path, monkeypatch):
    damaged = tmp_path / "kernels.so"
    damaged.write_bytes(b"\x7fELF nothing")
    assert kernel_library.load_library(damaged) is None
    assert kernel_library.load_library(tmp_path / "missing.so") is None
    built = tmp_path / "built.so"
    if hatch_build.compile_kernels(SOURCE, built):
        assert kernel_library.load_library(built) is not None
        monkeypatch.setattr(kernel_library, "VERSION", 0)
        assert kernel_library.load_library(built) is None


def test_nothing_is_left_where_no_compiler_works(tmp_path, monkeypatch, capfd):
    """An older library is removed, and the build goes on."""
    library = tmp_path / "_kernels.so"
    library.write_bytes(b"old")
    os.utime(library, (1, 1))
    monkeypatch.setattr(hatch_build, "_system_compilers", lambda: iter([["false"]]))
    monkeypatch.setattr(hatch_build, "_packaged_compilers", lambda: iter([]))
    assert not hatch_build.compile_kernels(SOURCE, library)
    assert "No C compiler works" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_queries_import_no_compiler():
    program = (
        "import sys, omnigraph.graph, omnigraph.query.analytics.run\n"
        "print('numba' in sys.modules, 'llvmlite' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False False\n"
