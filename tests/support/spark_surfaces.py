"""The ways on which rows of one type reach a graph through Spark, each given the same Parquet file.

A way that cannot be used with the options of a load raises `Inexpressible`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import omnigraph.graph as og
from omnigraph import pipeline
from omnigraph.write.violations import ValidationFailed
from tests.support.surfaces import Inexpressible


@dataclass(frozen=True)
class LoadedRows:
    """Rows of one type in a file, and how they are loaded."""

    spark: SparkSession
    folder: Path
    type_name: str
    mode: str
    partial: bool
    is_edge: bool

    @property
    def file(self) -> Path:
        """The file, in a folder of its own."""
        return self.folder / "rows" / "0.parquet"

    @property
    def frame(self) -> DataFrame:
        """The rows as a frame."""
        return self.spark.read.parquet(str(self.file))

    def write(self, rows: pa.Table) -> None:
        """Write the file."""
        self.file.parent.mkdir(parents=True)
        pq.write_table(rows.combine_chunks(), self.file)

    def table(self) -> pa.Table:
        """Return what the file has."""
        return pq.read_table(self.file)


def _write(rows: LoadedRows, graph: og.Graph) -> None:
    pipeline.write(rows.frame, graph, rows.type_name, mode=rows.mode, partial=rows.partial)


def _save(rows: LoadedRows, graph: og.Graph) -> None:
    options = {"type": rows.type_name, "mode": rows.mode, "partial": str(rows.partial).lower()}
    save_mode = "overwrite" if rows.mode == "overwrite" else "append"
    rows.frame.write.format("omnigraph").mode(save_mode).options(**options).save(graph.uri)


def _stream(rows: LoadedRows, graph: og.Graph) -> None:
    if rows.partial:
        raise Inexpressible("the rows of a stream are whole")
    source = rows.spark.readStream.schema(rows.frame.schema).parquet(str(rows.file.parent))
    options = pipeline.StreamOptions(
        checkpoint=str(rows.folder / "checkpoint"),
        type_name=rows.type_name,
        mode=rows.mode,
        trigger={"availableNow": True},
    )
    pipeline.stream_into(source, graph, options).awaitTermination()


def _run(rows: LoadedRows, graph: og.Graph) -> None:
    ends = ", from: src, to: dst" if rows.is_edge else ""
    file = rows.folder / "pipeline.yaml"
    file.write_text(
        f"version: 1\nname: rows\nsources:\n  rows: {{parquet: {rows.file}}}\n"
        f"{'edges' if rows.is_edge else 'nodes'}:\n  {rows.type_name}: {{source: rows{ends}}}\n"
        f"mode: {rows.mode}\npartial: {str(rows.partial).lower()}\n"
    )
    graph.pipeline.run(file)


WAYS: Mapping[str, Callable[[LoadedRows, og.Graph], None]] = MappingProxyType(
    {
        "pipeline.write": _write,
        "df.write": _save,
        "stream": _stream,
        "pipeline run": _run,
    }
)


def violations(way: str, rows: LoadedRows, graph: og.Graph) -> list[str] | str:
    """Load rows; return the messages of all violations, or the text of an exception of Spark."""
    try:
        WAYS[way](rows, graph)
    except ValidationFailed as error:
        return sorted(violation.message for violation in error.violations)
    except PySparkException as error:
        return str(error)
    return []
