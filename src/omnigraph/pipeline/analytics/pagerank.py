"""Rank nodes by PageRank, iterated until ranks converge.

Ranks are fixed-point integers: sums of integers do not depend on the order of addition, so every
run gives the same result.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from omnigraph.pipeline.analytics.network import DST, NODE, SRC, VALUE, Network, materialize
from omnigraph.query.analytics.options import PageRankOptions
from omnigraph.query.analytics.ranks import FIXED_POINT_ONE


def pagerank(network: Network, options: PageRankOptions) -> tuple[DataFrame, int]:
    """Return the rank of each node, all together 1, and how often ranks were passed on.

    What a node without outgoing edges has goes to all nodes alike. An edge counts as often as it
    is there.
    """
    count = network.nodes.count()
    if not count:
        return network.nodes.withColumn(VALUE, F.lit(0.0)), 0
    degrees = network.edges.groupBy(F.col(SRC).alias("from")).agg(F.count("*").alias("degree"))
    known = network.nodes.join(degrees, F.col(NODE) == F.col("from"), "left").drop("from")
    first = F.lit(FIXED_POINT_ONE // count).alias("rank")
    nodes = materialize(known.select(NODE, "degree", first, F.lit(0).alias("change")))
    rounds = 0
    while rounds < options.iterations:
        change, stuck = _convergence(nodes)
        if rounds and change <= options.tolerance * FIXED_POINT_ONE:
            break
        everyone = ((1 - options.damping) * FIXED_POINT_ONE + options.damping * stuck) / count
        nodes = materialize(_distribute_ranks(network, nodes, everyone, options.damping))
        rounds += 1
    return nodes.select(NODE, (F.col("rank") / float(FIXED_POINT_ONE)).alias(VALUE)), rounds


def _convergence(nodes: DataFrame) -> tuple[int, int]:
    """Return by how much ranks changed, and how much is at nodes that lead nowhere."""
    stuck = F.sum(F.when(F.col("degree").isNull(), F.col("rank")).otherwise(0))
    row = nodes.agg(F.sum("change"), stuck).first()
    assert row is not None, "an aggregate has one row"
    return row[0], row[1]


def _distribute_ranks(
    network: Network, nodes: DataFrame, everyone: float, damping: float
) -> DataFrame:
    """Return nodes with new ranks: what everyone gets, and what edges bring."""
    given = network.edges.join(nodes, F.col(SRC) == F.col(NODE)).select(
        F.col(DST).alias("to"), F.expr("rank div degree").alias("part")
    )
    sums = given.groupBy("to").agg(F.sum("part").alias("got"))
    got = F.coalesce(F.col("got"), F.lit(0)) * F.lit(damping)
    joined = nodes.join(sums, F.col(NODE) == F.col("to"), "left")
    found = joined.withColumn("new", F.round(got + F.lit(everyone)).cast("bigint"))
    change = F.abs(F.col("new") - F.col("rank")).alias("change")
    return found.select(NODE, "degree", F.col("new").alias("rank"), change)
