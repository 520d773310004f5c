"""Compile a query for Spark: one snapshot, one plan, one data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from omnigraph.catalog import Metric, TypeKind, vector_metric
from omnigraph.commit.model import Snapshot
from omnigraph.pipeline.query import unsupported
from omnigraph.pipeline.query.checked import translate_number_overflow
from omnigraph.pipeline.query.expressions import (
    ExpressionCompiler,
    FrameColumnNames,
    VectorRanking,
)
from omnigraph.pipeline.query.results import ResultCompiler
from omnigraph.pipeline.query.rows import RowCompiler, needed_properties
from omnigraph.pipeline.query.tables import SnapshotTables, TableReader
from omnigraph.pipeline.query.values import from_spark
from omnigraph.plan import ReadPlan, bind_parameters
from omnigraph.plan import operators as op
from omnigraph.plan.expressions import Binding, PropertyRef
from omnigraph.query.engine import Engine
from omnigraph.query.executor import max_result_rows
from omnigraph.query.expressions import Constants
from omnigraph.query.result import ResultStream
from omnigraph.query.vector_search import QueryEmbeddings


@dataclass(frozen=True, slots=True)
class QueryFrame:
    """The rows of a query, not made yet, and the state they are of."""

    plan: ReadPlan
    frame: DataFrame
    graph_commit_id: str

    def collect(self) -> ResultStream:
        """Make all rows, in this process, as the local engine gives them."""
        types = {column.name: column.type for column in self.plan.columns}
        with translate_number_overflow():
            rows = self.frame.toArrow()
        columns = [from_spark(rows.column(n), t) for n, t in enumerate(types.values())]
        table = pa.table(columns, names=list(types))
        return ResultStream(
            self.plan.name, types, self.graph_commit_id, table.num_rows, iter([table])
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryInput:
    """A query as text, which of several it is, and its parameters."""

    source: str
    name: str | None = None
    params: Mapping[str, Any] | None = None


def build_query_frame(
    engine: Engine, snapshot: Snapshot, question: QueryInput, read: TableReader
) -> QueryFrame:
    """Turn a query into a data frame over what `read` gives of a snapshot."""
    plan = engine.plan(snapshot, question.source, question.name)
    bound = bind_parameters(plan.parameters, question.params)
    unsupported.check_supported(plan)
    constants = Constants(bound, datetime.now(UTC))
    max_result_rows(plan.root, constants)  # refuses a negative limit even where nothing is read
    ranking = _ranking(engine, snapshot, plan)
    rows = RowCompiler(
        tables=SnapshotTables(read),
        catalog=snapshot.catalog,
        expressions=ExpressionCompiler(FrameColumnNames(), constants, ranking),
        needed=needed_properties(plan.root),
    )
    return QueryFrame(plan, ResultCompiler(rows).of(plan.root), snapshot.commit_id)


def _ranking(engine: Engine, snapshot: Snapshot, plan: ReadPlan) -> VectorRanking:
    bindings = _bindings(plan.root)
    vectors = QueryEmbeddings(engine.embedder)

    def metric(target: PropertyRef) -> Metric:
        definition = snapshot.catalog.nodes[bindings[target.variable].type_name]
        return vector_metric(definition, target.property)

    def embedded(target: PropertyRef, text: str) -> Sequence[float]:
        name = bindings[target.variable].type_name
        table = engine.store.table(snapshot, TypeKind.NODE, name)
        found: list[float] = vectors.of(table, target.property, [text])[text].tolist()
        return found

    return VectorRanking(metric, embedded)


def _bindings(root: op.ResultOperator) -> dict[str, Binding]:
    """Return the variables of the match; rankings stand nowhere else."""
    below: op.PlanOperator = root
    while isinstance(below, op.ResultOperator):
        below = below.input
    return below.variables
