"""Find communities by label propagation: each node takes the most frequent label of its
neighbours.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from omnigraph.pipeline.analytics.network import DST, NODE, SRC, VALUE, Network, materialize
from omnigraph.query.analytics.options import LabelOptions


def label_propagation(network: Network, options: LabelOptions) -> tuple[DataFrame, int]:
    """Return the label of each node, and how many rounds it took until none changed, or the limit.

    At first each node is its own label. In a round all nodes look at once: each neighbour votes by
    each edge, whichever way it leads, and the node itself votes for the label it has. Of the labels
    with most votes the first is taken.
    """
    labels = network.nodes.select(NODE, F.col(NODE).alias("label"))
    neighbours, rounds = network.both_ways.persist(), 0
    for rounds in range(1, options.iterations + 1):  # noqa: B007 - returned below
        heard = neighbours.join(labels, F.col(SRC) == F.col(NODE)).select(
            F.col(DST).alias(NODE), "label"
        )
        votes = heard.unionAll(labels).groupBy(NODE, "label").agg(F.count("*").alias("votes"))
        # The greatest number of votes, and of those the first label.
        best = F.min(F.struct(-F.col("votes"), F.col("label").alias("chosen")))
        chosen = votes.groupBy(NODE).agg(best.alias("best"))
        new = chosen.select(F.col(NODE).alias("who"), F.col("best.chosen").alias("chosen"))
        found = materialize(labels.join(new, F.col(NODE) == F.col("who")).drop("who"))
        changed = not found.where(F.col("label") != F.col("chosen")).isEmpty()
        labels = found.select(NODE, F.col("chosen").alias("label"))
        if not changed:
            break
    neighbours.unpersist()
    return labels.withColumnRenamed("label", VALUE), rounds
