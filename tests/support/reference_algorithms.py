"""What the algorithms of `analyze` mean, over plain lists: written for being obvious, not fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

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
