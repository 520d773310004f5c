"""What the algorithms of `analyze` mean, over plain lists: written for being obvious, not fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

Edges = Sequence[tuple[str, str]]


def ranks(
    nodes: Sequence[str], edges: Edges, *, rounds: int, damping: float = 0.85
) -> dict[str, float]:
    """Return PageRank after so many rounds."""
    rank = dict.fromkeys(nodes, 1 / len(nodes))
    degree = Counter(src for src, _ in edges)
    for _ in range(rounds):
        stuck = sum(rank[node] for node in nodes if not degree[node])
        new = dict.fromkeys(nodes, (1 - damping + damping * stuck) / len(nodes))
        for src, dst in edges:
            new[dst] += damping * rank[src] / degree[src]
        rank = new
    return rank


def first_of_component(nodes: Sequence[str], edges: Edges) -> dict[str, str]:
    """Return for each node the smallest it hangs together with."""
    found: dict[str, str] = {}
    for start in sorted(nodes):
        reached = [start] if start not in found else []
        while reached:
            node = reached.pop()
            found[node] = start
            ends = [d for s, d in edges if s == node] + [s for s, d in edges if d == node]
            reached += [other for other in ends if other not in found]
    return found


def communities(nodes: Sequence[str], edges: Edges, rounds: int) -> dict[str, str]:
    """Return the label of each node after so many rounds at most."""
    labels = {node: node for node in nodes}
    for _ in range(rounds):
        votes = {node: Counter([labels[node]]) for node in nodes}
        for src, dst in edges:
            if src != dst:
                votes[src][labels[dst]] += 1
                votes[dst][labels[src]] += 1
        new = {n: min((-count, label) for label, count in v.items())[1] for n, v in votes.items()}
        if new == labels:
            break
        labels = new
    return labels


def degrees(nodes: Sequence[str], edges: Edges, direction: str) -> dict[str, int]:
    """Return how many edges leave or reach each node; a loop does both."""
    places = {"out": (0,), "in": (1,), "both": (0, 1)}[direction]
    counts = Counter(edge[place] for edge in edges for place in places)
    return {node: counts[node] for node in nodes}


def distances(
    nodes: Sequence[str],
    edges: Edges,
    source: str,
    *,
    weights: Sequence[float] | None = None,
    direction: str = "out",
) -> dict[str, float | None]:
    """Return the length of the shortest path from a node to each, None where there is none."""
    lengths = weights or [1.0] * len(edges)
    steps = [(s, d, w) for (s, d), w in zip(edges, lengths, strict=True)]
    back = [(d, s, w) for s, d, w in steps]
    steps = {"out": steps, "in": back, "both": steps + back}[direction]
    found = {source: 0.0}
    for _ in nodes:
        for here, there, length in steps:
            if here in found:
                found[there] = min(found.get(there, float("inf")), found[here] + length)
    return {node: found.get(node) for node in nodes}


def neighbours(nodes: Sequence[str], edges: Edges) -> dict[str, set[str]]:
    """Return the other nodes that edges connect each node with."""
    near: dict[str, set[str]] = {node: set() for node in nodes}
    for src, dst in edges:
        if src != dst:
            near[src].add(dst)
            near[dst].add(src)
    return near


def cores(nodes: Sequence[str], edges: Edges) -> dict[str, int]:
    """Return the core number of each node: which k-cores it is in."""
    near, core = neighbours(nodes, edges), dict.fromkeys(nodes, 0)
    for k in range(1, len(nodes) + 1):
        left = set(nodes)
        while any(len(near[node] & left) < k for node in left):
            left = {node for node in left if len(near[node] & left) >= k}
        core.update(dict.fromkeys(left, k))
    return core


def triangles(nodes: Sequence[str], edges: Edges) -> dict[str, int]:
    """Return in how many triangles each node is."""
    near = neighbours(nodes, edges)
    return {
        node: sum(b in near[a] for a, b in combinations(sorted(near[node]), 2)) for node in nodes
    }
