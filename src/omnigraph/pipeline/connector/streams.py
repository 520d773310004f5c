"""Start Spark streams: the changes of a graph as a stream, and streams into a graph."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from omnigraph.embed.config import VectorsFrom, read_models
from omnigraph.errors import Category, InvalidInput, OmniError
from omnigraph.pipeline.connector.change_stream import CHANGES, SCHEMA
from omnigraph.pipeline.connector.data_source import FORMAT, register
from omnigraph.pipeline.connector.frames import GraphOrUri, graph_reader_options, resolve_graph
from omnigraph.pipeline.connector.stream_writer import STREAM, StreamBatchWriter
from omnigraph.pipeline.graph_handle import GraphHandle
from omnigraph.write.load import parse_load_mode

MAX_STARTS = 6
"""Tries to start a stream: Spark Connect waits ten seconds for a process of Python, no longer."""
_TOO_SLOW = "Python worker failed to connect back"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """Options of a stream.

    `checkpoint` is the checkpoint location of Spark. Rows are changes, as returned by
    `read_changes`, unless `type_name` names their type; then they are loaded with `mode`.
    `trigger` is a trigger of Spark, such as `{"availableNow": True}`. `vectors_from` is the model
    that made the vectors of the rows, as `provider/model`.
    """

    checkpoint: str
    branch: str | None = None
    type_name: str | None = None
    mode: str = "merge"
    trigger: Mapping[str, Any] | None = None
    vectors_from: VectorsFrom = None


def read_changes(
    spark: SparkSession, graph: GraphOrUri, *, branch: str | None = None, **options: str
) -> DataFrame:
    """Return the changes of a branch as a stream.

    `start` is `now` (by default), `beginning` or `after:ID`; `kinds`, `types` and `ops` limit what
    is returned, `maxChangesPerBatch` limits the size of a batch.
    """
    manifest, bound = resolve_graph(graph)
    if not isinstance(graph, str | os.PathLike):
        graph.snapshot(branch)  # requires `read` on the branch
    reader = (
        register(spark).readStream.format(FORMAT).options(**graph_reader_options(manifest.location))
    )
    return reader.option(CHANGES, branch or bound).options(**options).load()


def stream_into(frame: DataFrame, graph: GraphHandle, options: StreamOptions) -> StreamingQuery:
    """Start a stream into a graph: every batch that changes something becomes one commit."""
    parse_load_mode(options.mode)
    request = replace(
        graph._request(STREAM, options.branch, None),
        vectors_from=read_models(options.vectors_from),
    )
    if options.type_name is None:
        _check_changes(frame)
    writer = frame.writeStream.option("checkpointLocation", options.checkpoint)
    if options.trigger is not None:
        writer = writer.trigger(**options.trigger)
    batches = StreamBatchWriter(
        graph._manifest.location, request, options.checkpoint, options.type_name, options.mode
    )
    batches.manifest = graph._manifest
    return _started(writer.foreachBatch(batches))


def _started(writer: DataStreamWriter) -> StreamingQuery:
    """Start a stream; retry while the server is too busy, nothing has been written yet."""
    for _ in range(MAX_STARTS):
        try:
            return writer.start()
        except PySparkException as error:
            if _TOO_SLOW not in str(error):
                raise
            failure = error
    message = (
        f"the Spark server did not start a process for the stream in {MAX_STARTS} tries: it is too "
        "busy, or has no Python to run it; start the stream again, it continues where it stopped"
    )
    raise OmniError(message, code="stream_not_started", category=Category.UNAVAILABLE) from failure


def _check_changes(frame: DataFrame) -> None:
    missing = [name for name in SCHEMA.names if name not in frame.columns]
    if missing:
        message = (
            f"a stream of changes needs the columns {', '.join(missing)}; "
            "for rows of one type set `type_name`"
        )
        raise InvalidInput(message, code="stream_columns_missing", columns=missing)
