"""Run an algorithm on a snapshot, within limits of time and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.commit.model import Snapshot
from omnigraph.query.analytics.algorithms import AnalysisAlgorithm, find_algorithm
from omnigraph.query.analytics.kernels import OPERATOR
from omnigraph.query.analytics.network import AnalysisNetwork, AnalysisTypes, read_network
from omnigraph.query.analytics.options import AnalysisOptions
from omnigraph.query.engine import Engine, QuerySettings
from omnigraph.query.limits import QueryBudget, QueryLimit, run_apart
from omnigraph.query.result import Result
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import arrow_type

_ID = PropertyType(Scalar.STRING)


@dataclass(frozen=True)
class GraphAnalysis:
    """An algorithm with its options, and the state and the edges on which it runs.

    Nothing is read before it runs.
    """

    algorithm: AnalysisAlgorithm
    options: AnalysisOptions
    snapshot: Snapshot
    types: AnalysisTypes

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        algorithm: str,
        edges: Sequence[str],
        options: Mapping[str, Any],
        nodes: Sequence[str] = (),
    ) -> GraphAnalysis:
        """Check what the caller gave; `nodes` are types that take part also without edges."""
        known = find_algorithm(algorithm)
        types = AnalysisTypes.of(snapshot, edges, nodes)
        parsed = known.parse(options)
        if parsed.edge_property is not None:
            types.check_weight(snapshot, parsed.edge_property)
        return cls(known, parsed, snapshot, types)

    @cached_property
    def size(self) -> tuple[int, int]:
        """How many nodes and edges take part."""
        kinds = {"node": self.types.nodes, "edge": self.types.edges}
        nodes, edges = (
            sum(self.snapshot.entry(f"{kind}:{name}").rows for name in names)
            for kind, names in kinds.items()
        )
        return nodes, edges

    @property
    def memory(self) -> int:
        """How many bytes a run in this process takes at most, about."""
        return self.algorithm.memory(*self.size)

    def fits(self, settings: QuerySettings) -> bool:
        """Return whether a run in this process stays within the limit of memory."""
        return self.memory <= min(settings.memory, settings.pool.limit)

    def run(self, engine: Engine, settings: QuerySettings) -> NodeValues:
        """Run in this process; memory is reserved before anything is read.

        Raises:
            QueryLimit: it would need more memory than it may take, or took too long.
        """
        about = self._describe()
        budget = engine.budget(self.snapshot, settings, self.algorithm.name, about, lambda: about)
        if not self.fits(settings):
            raise self._too_large(min(settings.memory, settings.pool.limit))
        with budget.kept():
            budget.check_bytes(OPERATOR, self.memory)
            budget.check(OPERATOR)
            network, values, rounds = run_apart(
                lambda: self._computed(engine, budget), lambda: budget.check(OPERATOR)
            )
        return NodeValues(self.algorithm, network, values, rounds)

    def _computed(self, engine: Engine, budget: QueryBudget) -> tuple[AnalysisNetwork, Any, int]:
        network = read_network(engine.store, engine.topologies, self.snapshot, self.types, budget)
        values, rounds = self.algorithm.run(network, self.options, budget)
        budget.check(OPERATOR)
        return network, values, rounds

    def _describe(self) -> str:
        """Return what runs, as a plan; the values of options are not shown."""
        types = f"over {', '.join(self.types.edges)} of {', '.join(self.types.nodes)}"
        return f"{OPERATOR} {self.algorithm.name} {types}"

    def _too_large(self, limit: int) -> QueryLimit:
        nodes, edges = self.size
        spark = ", or choose the engine `spark`" if self.algorithm.on_spark else ""
        message = (
            f"{self.algorithm.name} over {nodes:,} nodes and {edges:,} edges needs about "
            f"{self.memory:,} bytes of memory, and may take {limit:,}: allow more `memory`{spark}"
        )
        return QueryLimit(message, code="query_memory", operator=OPERATOR, limit=limit)


@dataclass(frozen=True, slots=True)
class NodeValues:
    """The value of each node of a network, and how many rounds it took."""

    algorithm: AnalysisAlgorithm
    network: AnalysisNetwork = field(repr=False)
    values: Any = field(repr=False)
    rounds: int

    def column(self, type_name: str) -> pa.Array:
        """Return the values of the nodes of a type, by their position."""
        first = self.network.offsets[type_name]
        values = self.values[first : first + self.network.nodes[type_name].rows]
        type_ = self.algorithm.value_type
        if type_.text:
            return self.network.ids_of(values, type_name)
        return pa.array(values, arrow_type(type_), from_pandas=type_.nullable)

    def result(self, commit_id: str) -> Result:
        """Return all nodes with their values, in the order of type and ID."""
        columns: dict[str, list[pa.Array]] = {"type": [], "id": [], "value": []}
        for name, table in self.network.nodes.items():
            first = self.network.offsets[name]
            rows = pa.array(self.network.order[first : first + table.rows] - first)
            columns["type"].append(pa.array(np.full(table.rows, name), pa.string()))
            columns["id"].append(table.column("id").take(rows))
            columns["value"].append(self.column(name).take(rows))
        types = {"type": _ID, "id": _ID, "value": self.algorithm.value_type}
        arrays = {
            name: pa.chunked_array(chunks, arrow_type(types[name]))
            for name, chunks in columns.items()
        }
        return Result(self.algorithm.name, pa.table(arrays), types, commit_id)
