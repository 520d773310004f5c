"""Run an algorithm over a graph on Spark, and store its values or return them as a frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from omnigraph.commit.model import Snapshot
from omnigraph.pipeline.analytics.analysis import ValueTarget
from omnigraph.pipeline.analytics.components import components
from omnigraph.pipeline.analytics.degrees import degrees
from omnigraph.pipeline.analytics.labels import label_propagation
from omnigraph.pipeline.analytics.network import (
    NODE,
    VALUE,
    Network,
    materialize,
    node_key,
    read_network,
)
from omnigraph.pipeline.analytics.pagerank import pagerank
from omnigraph.pipeline.connector.frames import read
from omnigraph.pipeline.graph_handle import GraphHandle
from omnigraph.pipeline.load.entry_points import load_frames, load_result
from omnigraph.pipeline.load.model import SparkLoadOptions, TypeFrame
from omnigraph.pipeline.sessions.session import session
from omnigraph.query.analytics.run import GraphAnalysis
from omnigraph.write.load import LoadResult, WriteMode

SPARK_ALGORITHMS: Mapping[str, Callable[[Network, Any], tuple[DataFrame, int]]] = MappingProxyType(
    {
        "pagerank": pagerank,
        "components": components,
        "labels": label_propagation,
        "degrees": degrees,
    }
)
"""What runs here of `query.analytics.algorithms`: the rows with `on_spark`."""


def store_values(
    graph: GraphHandle, run: GraphAnalysis, target: ValueTarget, spark: SparkSession | None
) -> tuple[int, LoadResult]:
    """Compute values on executors, which stage them, too; return the number of rounds as well."""
    options = SparkLoadOptions(mode=WriteMode.MERGE, partial=True, from_=target.from_)
    found = spark or session()
    network = read_network(found, graph, run.snapshot, run.types)
    try:
        values, rounds = SPARK_ALGORITHMS[run.algorithm.name](network, run.options)
        rows = _rows(found, graph, run.snapshot, target, values)
        given = [TypeFrame(target.load_key, rows)]
        outcome = load_frames(graph._manifest, target.request, given, options, found)
    finally:
        network.release()
    return rounds, load_result(outcome, target.request, options)


def value_frame(graph: GraphHandle, run: GraphAnalysis) -> DataFrame:
    """Return all nodes with their values, in the order of type and ID."""
    network = read_network(session(), graph, run.snapshot, run.types)
    try:
        values, _ = SPARK_ALGORITHMS[run.algorithm.name](network, run.options)
        values = materialize(values)
    finally:
        network.release()
    key, value = F.col(NODE), F.col(VALUE)
    type_name = F.substring_index(key, "/", 1)
    id_ = F.substr(key, F.length(type_name) + 2)
    if run.algorithm.value_type.text:
        for name in run.types.nodes:
            value = F.when(type_name == name, _own_id(F.col(VALUE), name)).otherwise(value)
    return values.orderBy(key).select(type_name.alias("type"), id_.alias("id"), value.alias(VALUE))


def _rows(
    spark: SparkSession,
    graph: GraphHandle,
    snapshot: Snapshot,
    target: ValueTarget,
    values: DataFrame,
) -> DataFrame:
    """Return the nodes of a type with what names them, and their new values."""
    type_name = target.type_name
    keys = list(snapshot.catalog.nodes[type_name].key)
    columns = list(dict.fromkeys(["id", *keys]))
    nodes = read(spark, graph, target.load_key, at=snapshot, columns=columns)
    known = nodes.withColumn("@node", node_key(type_name, F.col("id")))
    joined = known.join(values.withColumnRenamed(NODE, "@key"), F.col("@node") == F.col("@key"))
    value = _own_id(F.col(VALUE), type_name) if target.property_type.text else F.col(VALUE)
    named = (F.col(f"`{name}`") for name in keys or ["id"])
    return joined.select(*named, value.alias(target.property_name))


def _own_id(key: Column, type_name: str) -> Column:
    """Return the id of a node of the same type; of another type, the type stands before it."""
    own = f"{type_name}/"
    return F.when(key.startswith(own), F.substr(key, F.lit(len(own) + 1))).otherwise(key)
