"""Traverse edges by joins: one hop or many hops, in one direction or both.

Several hops are a search for the least distance: a state of (start, node, hops) in which each join
uses the previous state once, so that the plan grows linearly with the number of hops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from omnigraph.catalog import Catalog, TypeKind
from omnigraph.catalog.model import endpoint_column_names
from omnigraph.pipeline.query.tables import SnapshotTables
from omnigraph.plan.expressions import Direction, Hops

NEAR, FAR = "near", "far"
"""The columns of what is reached: the node it is reached from, and the node."""
LAZY_HOPS = 6
"""Every this many hops the state is materialised, and the search ends if nothing is new."""
_START, _NODE, _HOPS, _NEXT = "start", "node", "hops", "next"


@dataclass(frozen=True, slots=True)
class EdgeTraversal:
    """The edges of one type, to be followed in one direction."""

    tables: SnapshotTables
    catalog: Catalog
    edge: str
    direction: Direction

    def edges(self, own: Mapping[str, str] | None = None) -> DataFrame:
        """Return every edge as NEAR, FAR and `own` columns renamed; a self-loop is one edge."""
        src, dst = endpoint_column_names(self.catalog.edges[self.edge].properties).values()
        names = {src: NEAR, dst: FAR, **(own or {})}
        forwards = self.tables.frame(TypeKind.EDGE, self.edge, names)
        if self.direction is Direction.OUT:
            return forwards
        ends = F.col(FAR).alias(NEAR), F.col(NEAR).alias(FAR)
        backwards = forwards.select(*ends, *list(names.values())[2:])
        if self.direction is Direction.IN:
            return backwards
        return forwards.unionAll(backwards.where(F.col(NEAR) != F.col(FAR)))

    def reach(self, starts: DataFrame, hops: Hops, *, is_reversed: bool = False) -> DataFrame:
        """Return NEAR and FAR for every node reached from starts (a column NEAR), each once.

        With `is_reversed`, FAR are the nodes from which each start is reached.
        """
        pairs = self.edges().distinct()
        if not hops.is_single and not self._chains:
            if hops.minimum > 1:
                return pairs.limit(0)
            hops = Hops(1, 1)
        if hops.is_single:
            return pairs
        state = self._distances(starts.select(NEAR).distinct(), pairs, hops.maximum)
        loops = pairs.where(F.col(NEAR) == F.col(FAR)).select(F.col(NEAR).alias(_NEXT))
        # A loop leads to the node it is at, one hop after that was reached, and not on from there.
        looping = F.col(_START if is_reversed else _NODE) == F.col(_NEXT)
        state = state.join(loops, looping, "left")
        by_loop = F.col(_NEXT).isNotNull() & _within(F.col(_HOPS) + 1, hops)
        found = state.where(_within(F.col(_HOPS), hops) | by_loop)
        return found.select(F.col(_START).alias(NEAR), F.col(_NODE).alias(FAR))

    @property
    def _chains(self) -> bool:
        """Return whether edges can be chained: both ends have the same type."""
        edge = self.catalog.edges[self.edge]
        return edge.src == edge.dst

    def _distances(self, starts: DataFrame, pairs: DataFrame, most: int) -> DataFrame:
        """Return the least number of hops from each start to each node it reaches."""
        steps = pairs.where(F.col(NEAR) != F.col(FAR))
        state = starts.select(
            F.col(NEAR).alias(_START), F.col(NEAR).alias(_NODE), F.lit(0).alias(_HOPS)
        )
        for hop in range(1, most + 1):
            state = _expand_frontier(state, steps, hop)
            if hop % LAZY_HOPS == 0 and hop < most:
                state = state.localCheckpoint()
                if state.where(F.col(_HOPS) == hop).isEmpty():
                    break
        return state


def _expand_frontier(state: DataFrame, steps: DataFrame, hop: int) -> DataFrame:
    """Add what is one hop away from what was reached last; a node keeps its least distance."""
    last = (F.col(_NODE) == F.col(NEAR)) & (F.col(_HOPS) == hop - 1)
    stays = F.struct(F.col(_NODE), F.col(_HOPS))
    leads = F.struct(F.col(FAR).alias(_NODE), F.lit(hop).alias(_HOPS))
    both = F.when(F.col(FAR).isNull(), F.array(stays)).otherwise(F.array(stays, leads))
    spread = state.join(steps, last, "left").select(_START, F.explode(both).alias("at"))
    return spread.groupBy(_START, F.col("at.node").alias(_NODE)).agg(F.min("at.hops").alias(_HOPS))


def _within(count: Column, hops: Hops) -> Column:
    return (count >= hops.minimum) & (count <= hops.maximum)
