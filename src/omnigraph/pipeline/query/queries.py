"""Run queries of a graph on Spark, through the data source, at one snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from omnigraph.catalog import TypeKind
from omnigraph.commit.model import Snapshot
from omnigraph.commit.snapshot import SnapshotRef
from omnigraph.pipeline.connector.filters import FilterCondition
from omnigraph.pipeline.connector.frames import read
from omnigraph.pipeline.graph_handle import GraphHandle
from omnigraph.pipeline.query.execute import QueryFrame, QueryInput, build_query_frame
from omnigraph.pipeline.sessions.session import session
from omnigraph.query.engine import Engine
from omnigraph.query.result import ResultStream


class QueryableGraph(GraphHandle, Protocol):
    """What is used of a graph that is asked."""

    @property
    def _engine(self) -> Engine:
        """What plans queries."""

    def snapshot(self, at: SnapshotRef | None = None) -> Snapshot:
        """Return the state a branch, tag, commit id or time names."""


def query_frame(
    graph: QueryableGraph,
    source: str,
    params: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    at: SnapshotRef | None = None,
    spark: SparkSession | None = None,
) -> DataFrame:
    """Return the rows of a query as a data frame of the state it was asked about."""
    question = QueryInput(source=source, name=name, params=params)
    return _query_frame(graph, question, at, spark).frame


def query_stream(
    graph: QueryableGraph,
    source: str,
    params: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    at: SnapshotRef | None = None,
    spark: SparkSession | None = None,
) -> ResultStream:
    """Return the rows of a query as the local engine gives them."""
    question = QueryInput(source=source, name=name, params=params)
    return _query_frame(graph, question, at, spark).collect()


def _query_frame(
    graph: QueryableGraph, question: QueryInput, at: SnapshotRef | None, spark: SparkSession | None
) -> QueryFrame:
    snapshot = graph.snapshot(at)

    def reader(
        kind: TypeKind, type_name: str, columns: Sequence[str], where: Sequence[FilterCondition]
    ) -> DataFrame:
        found, name = spark or session(), f"{kind}:{type_name}"
        return read(found, graph, name, at=snapshot, columns=columns, where=where)

    return build_query_frame(graph._engine, snapshot, question, reader)
