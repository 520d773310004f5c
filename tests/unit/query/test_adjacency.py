"""Arrays, kernels and overlays walk the same edges as plain lists do."""

from random import Random

import numpy as np
import pytest

from omnigraph.query import kernel_library, kernels
from omnigraph.query.adjacency import CsrAdjacency
from omnigraph.query.delta_adjacency import AddedEdges, DeltaAdjacency, PositionMap
from omnigraph.query.distinct import distinct_pairs
from omnigraph.storage.lru_cache import LruCache

NODES = 12
SEEDS = range(40)


def some_edges(chance, count=40):
    return [(chance.randrange(NODES), chance.randrange(NODES)) for _ in range(count)]


def adjacency(edges, nodes=NODES):
    here, there = (np.array([e[end] for e in edges], np.int64) for end in (0, 1))
    return CsrAdjacency.build(here, there, (nodes, nodes))


def walked(adjacency, positions):
    rows, nodes, edges = adjacency.neighbours(np.array(positions, np.int64))
    return sorted(zip(rows.tolist(), nodes.tolist(), edges.tolist(), strict=True))


def expected(edges, positions):
    return sorted(
        (row, there, number)
        for row, position in enumerate(positions)
        for number, (here, there) in enumerate(edges)
        if here == position
    )


@pytest.fixture(params=["kernel", "sort"])
def kernels_or_numpy(request, monkeypatch):
    if request.param == "sort":
        monkeypatch.setattr(kernel_library, "LIBRARY", None)
    elif kernel_library.LIBRARY is None:
        pytest.skip("there are no compiled kernels")


@pytest.mark.usefixtures("kernels_or_numpy")
@pytest.mark.parametrize("seed", SEEDS)
def test_edges_are_grouped_by_node_and_ordered_by_neighbour(seed):
    chance = Random(seed)
    edges = some_edges(chance, chance.randrange(40))
    made = adjacency(edges)
    positions = [chance.randrange(NODES) for _ in range(5)]
    assert walked(made, positions) == expected(edges, positions)
    for node in range(NODES):
        neighbours = made.nodes[made.starts[node] : made.starts[node + 1]].tolist()
        assert neighbours == sorted(there for here, there in edges if here == node)
    every = np.arange(NODES)
    rows, nodes = made.reached(every)
    assert list(zip(rows.tolist(), nodes.tolist(), strict=True)) == sorted(set(edges))
    assert made.counts(every).tolist() == [len({t for h, t in edges if h == n}) for n in every]
    here, there = (grid.ravel() for grid in np.meshgrid(every, every))
    pairs = zip(here.tolist(), there.tolist(), strict=True)
    assert made.connects(here, there).tolist() == [pair in edges for pair in pairs]


@pytest.mark.skipif(kernel_library.LIBRARY is None, reason="there are no compiled kernels")
@pytest.mark.parametrize("seed", SEEDS)
def test_neighbours_in_common_are_counted(seed):
    chance = Random(seed)
    one, other = some_edges(chance), some_edges(chance)
    here, there = (np.array([chance.randrange(NODES) for _ in range(30)]) for _ in range(2))
    pairs = adjacency(one).simple.arrays, here, adjacency(other).simple.arrays, there
    found = kernels.count_common_neighbours(*pairs, NODES, lambda: None)
    both = [
        len({t for h, t in one if h == a} & {t for h, t in other if h == b})
        for a, b in zip(here.tolist(), there.tolist(), strict=True)
    ]
    assert found.tolist() == both


@pytest.mark.parametrize("seed", SEEDS)
def test_an_overlay_walks_like_arrays_made_anew(seed):
    """Rows are removed and added: nodes that are gone, written anew or new, edges likewise."""
    chance = Random(seed)
    old_nodes = [f"n{number}" for number in range(NODES)]
    old_edges = [(f"n{a}", f"n{b}") for a, b in some_edges(chance)]
    rewritten = chance.sample(old_nodes, 2)
    gone = set(chance.sample(old_nodes, 2)) - set(rewritten)
    nodes = [n for n in old_nodes if n not in gone and n not in rewritten]
    shared_nodes = len(nodes)
    nodes += [*rewritten, "new"]
    kept = [e for e in old_edges if not gone & set(e) and chance.random() < 0.8]
    left = [number for number, edge in enumerate(old_edges) if edge in kept]
    edges = [old_edges[number] for number in left]
    shared_edges = len(edges)
    edges += [(chance.choice(nodes), chance.choice(nodes)) for _ in range(4)]

    def places(pairs, names):
        return [(names.index(a), names.index(b)) for a, b in pairs]

    removed = [old_nodes.index(n) for n in old_nodes if n in gone or n in rewritten]
    again = sorted(old_nodes.index(n) for n in rewritten)
    shift = PositionMap(
        np.array(removed, np.int64),
        shared_nodes,
        (np.array(again), np.array([nodes.index(old_nodes[p]) for p in again])),
    )
    lost = np.array(sorted(set(range(len(old_edges))) - set(left)), np.int64)
    more = places(edges[shared_edges:], nodes)
    added = AddedEdges(
        np.array([a for a, _ in more]),
        np.array([b for _, b in more]),
        np.arange(shared_edges, len(edges)),
    )
    laid = DeltaAdjacency(
        adjacency(places(old_edges, old_nodes)),
        shift,
        shift,
        PositionMap(lost, shared_edges),
        added,
        (len(nodes), len(nodes)),
        LruCache(4),
    )
    anew = adjacency(places(edges, nodes), len(nodes))
    every = np.arange(len(nodes))
    some = np.array([chance.randrange(len(nodes))])
    for positions in (some, every):
        assert walked(laid, positions) == walked(anew, positions)
        assert laid.counts(positions).tolist() == anew.counts(positions).tolist()
        pairs = [distinct_pairs(*a.reached(positions), len(nodes)) for a in (laid, anew)]
        assert [p.tolist() for p in pairs[0]] == [p.tolist() for p in pairs[1]]
    here, there = (grid.ravel() for grid in np.meshgrid(every, every))
    assert laid.connects(some, some).tolist() == anew.connects(some, some).tolist()
    assert laid.connects(here, there).tolist() == anew.connects(here, there).tolist()
    assert laid.whole.starts.tolist() == anew.starts.tolist()
    assert laid.whole.nodes.tolist() == anew.nodes.tolist()
    assert walked(laid.whole, every) == walked(anew, every)
