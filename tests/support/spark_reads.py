"""Asks Spark the questions of generated reads, over frames made in memory.

They are made by what the data source reads with, in this process: a query needs no Python process
for each type, so that many can be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import omnigraph.graph as og
from omnigraph.catalog import TypeKind
from omnigraph.pipeline.connector.columns import arrow_schema
from omnigraph.pipeline.connector.filters import FilterCondition, apply_conditions
from omnigraph.pipeline.connector.table_scan import TableScan, pin_table
from omnigraph.pipeline.query.execute import QueryInput, build_query_frame
from omnigraph.query.result import Result
from tests.support.generated_reads import Read


def ask_in_memory(spark: SparkSession) -> Callable[[og.Graph, Read], Result]:
    """Return what answers a read on Spark over frames in memory."""

    def ask(graph: og.Graph, read: Read) -> Result:
        snapshot = graph.snapshot()
        question = QueryInput(source=read.text, params=read.params)

        def reader(
            kind: TypeKind, name: str, columns: Sequence[str], where: Sequence[FilterCondition]
        ) -> DataFrame:
            pinned = pin_table(graph._manifest, snapshot, f"{kind}:{name}")
            return frame_in_memory(spark, apply_conditions(pinned, where).named(columns))

        [part] = build_query_frame(graph._engine, snapshot, question, reader).collect().parts()
        return part

    return ask


def frame_in_memory(spark: SparkSession, pinned: TableScan) -> DataFrame:
    """Return what the data source gives of a type."""
    rows = [batch for part in pinned.parts() for batch in pinned.rows(part, pinned.schema)]
    table = pa.Table.from_batches(rows, arrow_schema(pinned.schema))
    if not table.num_rows:
        return spark.createDataFrame([], pinned.schema)
    return spark.createDataFrame(table, pinned.schema)
