"""Read the nodes and edges that an algorithm runs on.

Nodes of several types may take part, so a node is identified by its type and its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from omnigraph.catalog import TypeKind
from omnigraph.catalog.model import endpoint_column_names
from omnigraph.commit.model import Snapshot
from omnigraph.pipeline.connector.frames import read
from omnigraph.pipeline.graph_handle import GraphHandle
from omnigraph.query.analytics.network import AnalysisTypes

NODE, SRC, DST, VALUE = "node", "src", "dst", "value"
"""The columns of nodes, of edges, and of what an algorithm gives."""


@dataclass(frozen=True, slots=True)
class Network:
    """Nodes (NODE) and edges (SRC, DST, as often as there are); it does not change."""

    nodes: DataFrame
    edges: DataFrame

    @property
    def both_ways(self) -> DataFrame:
        """Every edge from each of its ends; a loop leads nowhere."""
        apart = self.edges.where(F.col(SRC) != F.col(DST))
        return apart.unionAll(apart.select(F.col(DST).alias(SRC), F.col(SRC).alias(DST)))

    def release(self) -> None:
        """Let Spark forget what it kept of it."""
        self.nodes.unpersist()
        self.edges.unpersist()


def node_key(type_name: str, id_: Column) -> Column:
    """Return by what a node is known; names of types have no slash."""
    return F.concat(F.lit(f"{type_name}/"), id_)


def read_network(
    spark: SparkSession, graph: GraphHandle, snapshot: Snapshot, types: AnalysisTypes
) -> Network:
    """Read edges of some types, and the nodes of all types that take part."""
    known = [snapshot.catalog.edges[name] for name in types.edges]

    def frame(kind: TypeKind, name: str, columns: Sequence[str]) -> DataFrame:
        return read(spark, graph, f"{kind}:{name}", at=snapshot, columns=columns)

    nodes = [
        frame(TypeKind.NODE, name, ["id"]).select(node_key(name, F.col("id")).alias(NODE))
        for name in types.nodes
    ]
    edges = []
    for edge in known:
        src, dst = endpoint_column_names(edge.properties).values()
        keys = node_key(edge.src, F.col(src)).alias(SRC), node_key(edge.dst, F.col(dst)).alias(DST)
        edges.append(frame(TypeKind.EDGE, edge.name, [src, dst]).select(*keys))
    together = (reduce(DataFrame.unionAll, frames).persist() for frames in (nodes, edges))
    return Network(*together)


def materialize(frame: DataFrame) -> DataFrame:
    """Return rows as they are now, made once: what comes next starts from them.

    They survive the loss of an executor where a checkpoint folder is set.
    """
    folder = frame.sparkSession.conf.get("spark.checkpoint.dir", None)
    return frame.checkpoint() if folder else frame.localCheckpoint()
