"""Choose how edges are followed: by probing an index, or through adjacency arrays.

Costs are rough times in microseconds on a local disk. Only their order matters, and the answer is
the same either way.
"""

from __future__ import annotations

from dataclasses import dataclass

PROBE_COST, PROBED_NODE_COST, PROBED_EDGE_COST = 1500.0, 200.0, 200.0
"""Cost of one probe, of each node that is looked up, and of each edge in the result."""
SCANNED_EDGE_COST = 0.05
"""What it takes to look at an edge that no index covers."""
ARRAYS_BUILD_COST, ARRAYS_BUILD_EDGE_COST = 500.0, 0.4
"""What it takes to make arrays, and what each edge adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionCost:
    """What is known before edges are followed from some nodes."""

    frontier: int
    edges: int
    nodes: int
    """Nodes at the end that edges are followed from."""
    covered: float = 0.0
    """The share of edges an index covers."""
    arrays_at_hand: bool = False
    """Whether arrays are in memory or in files, or can be had from some that nearly fit."""
    spent: float = 0.0
    """What was spent on probes so far that arrays would have saved."""

    @property
    def probes_cost(self) -> float:
        """What it takes to find the edges through indexes, scanning what they do not cover."""
        matches = self.frontier * self.edges / max(1, self.nodes)
        looked_up = self.frontier * PROBED_NODE_COST + matches * PROBED_EDGE_COST
        return PROBE_COST + looked_up + (1 - self.covered) * self.edges * SCANNED_EDGE_COST

    @property
    def arrays_cost(self) -> float:
        """What it takes until arrays are there; following them takes no time."""
        return (
            0.0 if self.arrays_at_hand else ARRAYS_BUILD_COST + self.edges * ARRAYS_BUILD_EDGE_COST
        )

    @property
    def takes_arrays(self) -> bool:
        """Return whether arrays pay: now, or because probes have cost as much by now."""
        return self.arrays_cost <= self.probes_cost + self.spent
