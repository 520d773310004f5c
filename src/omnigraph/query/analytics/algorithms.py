"""The registry of graph algorithms: one row per algorithm, with its options and its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from omnigraph.errors import InvalidInput
from omnigraph.lang import did_you_mean
from omnigraph.query.analytics.cohesion import core_numbers, triangle_counts
from omnigraph.query.analytics.communities import community_nodes, component_nodes
from omnigraph.query.analytics.distances import path_distances
from omnigraph.query.analytics.options import (
    AnalysisOptions,
    DegreeOptions,
    LabelOptions,
    PageRankOptions,
    ShortestPathOptions,
    parse_options,
)
from omnigraph.query.analytics.ranks import node_degrees, page_ranks
from omnigraph.types import PropertyType, Scalar

_TEXT = (Scalar.STRING,)
_NUMBER = (Scalar.F64, Scalar.F32)
_COUNT = (Scalar.I64, Scalar.U64, Scalar.I32, Scalar.U32)
_BASE_NODE_BYTES, _BASE_EDGE_BYTES = 160, 88
"""Memory for the IDs and the order of nodes, and for edges from both ends while they are built."""


@dataclass(frozen=True, slots=True)
class AnalysisAlgorithm:
    """What an algorithm is called, its values, its options, and how it runs in one process.

    The function returns the value of each node and the number of rounds. Values that are text are
    given as the node whose ID it is; a float that is NaN is null.
    """

    name: str
    stored_as: tuple[Scalar, ...]
    options: type[AnalysisOptions]
    run: Callable[..., tuple[Any, int]]
    node_bytes: int
    edge_bytes: int
    """Memory that the function takes for each node and each edge, at most."""
    on_spark: bool = True
    has_nulls: bool = False

    @property
    def value_type(self) -> PropertyType:
        """The type of its values."""
        return PropertyType(self.stored_as[0], nullable=self.has_nulls)

    def parse(self, options: Mapping[str, Any]) -> AnalysisOptions:
        """Return its options from what the caller gave by name."""
        return parse_options(self.options, self.name, options)

    def memory(self, nodes: int, edges: int) -> int:
        """Return how many bytes a run takes at most, about."""
        per_node, per_edge = _BASE_NODE_BYTES + self.node_bytes, _BASE_EDGE_BYTES + self.edge_bytes
        return nodes * per_node + edges * per_edge


ALGORITHMS: Mapping[str, AnalysisAlgorithm] = MappingProxyType(
    {
        algorithm.name: algorithm
        for algorithm in (
            AnalysisAlgorithm("pagerank", _NUMBER, PageRankOptions, page_ranks, 64, 0),
            AnalysisAlgorithm("components", _TEXT, AnalysisOptions, component_nodes, 64, 0),
            AnalysisAlgorithm("labels", _TEXT, LabelOptions, community_nodes, 64, 72),
            AnalysisAlgorithm("degrees", _COUNT, DegreeOptions, node_degrees, 32, 0),
            AnalysisAlgorithm(
                "shortest_paths",
                _NUMBER,
                ShortestPathOptions,
                path_distances,
                node_bytes=64,
                edge_bytes=96,
                on_spark=False,
                has_nulls=True,
            ),
            AnalysisAlgorithm(
                "kcore", _COUNT, AnalysisOptions, core_numbers, 64, 72, on_spark=False
            ),
            AnalysisAlgorithm(
                "triangles", _COUNT, AnalysisOptions, triangle_counts, 64, 96, on_spark=False
            ),
        )
    }
)


def find_algorithm(name: str) -> AnalysisAlgorithm:
    """Return an algorithm by name."""
    algorithm = ALGORITHMS.get(name)
    if algorithm is None:
        hint = did_you_mean(name, ALGORITHMS)
        message = f"unknown algorithm '{name}'; use one of {', '.join(ALGORITHMS)}"
        if hint:
            message += f" ({hint})"
        raise InvalidInput(message, code="analysis_unknown", algorithm=name)
    return algorithm
