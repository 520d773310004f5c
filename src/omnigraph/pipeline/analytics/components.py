"""Compute connected components; the direction of edges does not matter.

Nodes point at ever smaller neighbours, alternately from above and from below, until each points at
the smallest of its component. That takes few rounds even for long paths.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from omnigraph.pipeline.analytics.network import DST, NODE, SRC, VALUE, Network, materialize
from omnigraph.query.analytics.options import AnalysisOptions


def components(network: Network, _: AnalysisOptions) -> tuple[DataFrame, int]:
    """Return the first node of the component of each node, and how many rounds that took."""
    links = materialize(network.edges.where(F.col(SRC) != F.col(DST)).distinct())
    rounds, before = 0, None
    while True:
        links = materialize(_small_star(_large_star(links)))
        rounds += 1
        now = links.agg(F.count("*"), F.sum(F.xxhash64(SRC, DST).cast("decimal(38,0)"))).first()
        if now == before:
            break
        before = now
    # Each node points at the first of its component now; the first points nowhere.
    found = network.nodes.join(links, F.col(NODE) == F.col(SRC), "left")
    return found.select(NODE, F.coalesce(F.col(DST), F.col(NODE)).alias(VALUE)), rounds


def _large_star(links: DataFrame) -> DataFrame:
    """Let the greater neighbours of each node point at the smallest it knows, itself included."""
    both = links.unionAll(links.select(F.col(DST).alias(SRC), F.col(SRC).alias(DST)))
    least = _least(both)
    greater = both.where(F.col(DST) > F.col(SRC))
    return greater.join(least, SRC).select(F.col(DST).alias(SRC), F.col("least").alias(DST))


def _small_star(links: DataFrame) -> DataFrame:
    """Let each node and its smaller neighbours point at the smallest of them."""
    # After a large star every link points at a smaller node.
    least = _least(links)
    joined = links.join(least, SRC)
    among = joined.select(F.col(DST).alias(SRC), F.col("least").alias(DST))
    itself = least.select(SRC, F.col("least").alias(DST))
    return among.unionAll(itself).where(F.col(SRC) != F.col(DST)).distinct()


def _least(links: DataFrame) -> DataFrame:
    """Return the smallest of each node and those it is linked to."""
    least = F.least(F.col("low"), F.col(SRC)).alias("least")
    return links.groupBy(SRC).agg(F.min(DST).alias("low")).select(SRC, least)
