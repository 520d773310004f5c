"""This module chooses how edges are followed: by probing an index, or through arrays.

Costs are rough times in microseconds on a local disk. Only their order matters, and the answer is
the same either way.
"""

from __future__ import annotations

from dataclasses import dataclass

PROBE, PROBED_NODE, PROBED_EDGE = 1500.0, 200.0, 200.0
"""What one probe takes, and what each node asked about and each edge found add."""
SCANNED_EDGE = 0.05
"""What it takes to look at an edge that no index covers."""
MADE, MADE_EDGE = 500.0, 0.4
"""What it takes to make arrays, and what each edge adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
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
        found = self.frontier * self.edges / max(1, self.nodes)
        looked_up = self.frontier * PROBED_NODE + found * PROBED_EDGE
        return PROBE + looked_up + (1 - self.covered) * self.edges * SCANNED_EDGE

    @property
    def arrays_cost(self) -> float:
        """What it takes until arrays are there; following them takes no time."""
        return 0.0 if self.arrays_at_hand else MADE + self.edges * MADE_EDGE

    @property
    def takes_arrays(self) -> bool:
        """Tell whether arrays pay: now, or because probes have cost as much by now."""
        return self.arrays_cost <= self.probes_cost + self.spent
