"""This module starts streams: the changes of a graph as one, and rows of one into a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from omnigraph.errors import InvalidInput
from omnigraph.pipeline.batches import STREAM, Batches
from omnigraph.pipeline.feed import CHANGES, SCHEMA
from omnigraph.pipeline.frames import Place, addressed, opened
from omnigraph.pipeline.graphs import OpenGraph
from omnigraph.pipeline.source import FORMAT, register
from omnigraph.write.load import mode_of


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """How a stream flows.

    `checkpoint` is where Spark notes how far it is. Rows are changes, as the stream of a graph
    gives them, unless `type_name` says of which type they are; then they are loaded by `mode`.
    `trigger` says when, in Spark's words, as `{"availableNow": True}`.
    """

    checkpoint: str
    branch: str | None = None
    type_name: str | None = None
    mode: str = "merge"
    trigger: Mapping[str, Any] | None = None


def read_changes(
    spark: SparkSession, graph: Place, *, branch: str | None = None, **options: str
) -> DataFrame:
    """Return the changes of a branch as a stream.

    `start` is `now` (by default), `beginning` or `after:ID`; `kinds`, `types` and `ops` limit what
    is told, `maxChangesPerBatch` how much at a time.
    """
    manifest, bound = opened(graph)
    reader = register(spark).readStream.format(FORMAT).options(**addressed(manifest.location))
    return reader.option(CHANGES, branch or bound).options(**options).load()


def stream_into(frame: DataFrame, graph: OpenGraph, options: StreamOptions) -> StreamingQuery:
    """Start a stream into a graph: every batch that changes something becomes one commit."""
    mode_of(options.mode)
    request = graph._request(STREAM, options.branch, None)
    if options.type_name is None:
        _check_changes(frame)
    writer = frame.writeStream.option("checkpointLocation", options.checkpoint)
    if options.trigger is not None:
        writer = writer.trigger(**options.trigger)
    batches = Batches(
        graph._manifest.location, request, options.checkpoint, options.type_name, options.mode
    )
    batches.manifest = graph._manifest
    return writer.foreachBatch(batches).start()


def _check_changes(frame: DataFrame) -> None:
    missing = [name for name in SCHEMA.names if name not in frame.columns]
    if missing:
        message = (
            f"a stream of changes has the columns {', '.join(missing)}; "
            "say of which type other rows are"
        )
        raise InvalidInput(message, code="stream_columns_missing", columns=missing)
