"""Count the edges of each node."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from omnigraph.pipeline.analytics.network import DST, NODE, SRC, VALUE, Network
from omnigraph.plan.expressions import Direction
from omnigraph.query.analytics.options import DegreeOptions

_ENDS = {Direction.OUT: (SRC,), Direction.IN: (DST,), Direction.BOTH: (SRC, DST)}


def degrees(network: Network, options: DegreeOptions) -> tuple[DataFrame, int]:
    """Return how many edges leave each node, arrive at it, or both; a loop does both."""
    ends = (network.edges.select(F.col(end).alias("at")) for end in _ENDS[options.direction])
    counts = reduce(DataFrame.unionAll, ends).groupBy("at").agg(F.count("*").alias("count"))
    found = network.nodes.join(counts, F.col(NODE) == F.col("at"), "left")
    return found.select(NODE, F.coalesce(F.col("count"), F.lit(0)).alias(VALUE)), 1
