"""This module lets streams flow into a graph: each batch is one commit, and exactly once.

A commit says which batch of which stream it is. A batch that is given again, because a process died
after it was published and before Spark noted that, is recognised by that and left alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from omnigraph.commit.history import first_parents, read_commits
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.errors import InvalidInput
from omnigraph.pipeline.feed import CHANGES, SCHEMA
from omnigraph.pipeline.frames import OpenGraph, Place, addressed, opened
from omnigraph.pipeline.source import FORMAT, register
from omnigraph.write.load import LoadOptions, load, mode_of
from omnigraph.write.replay import Replay, replay
from omnigraph.write.request import Request

STREAM = "stream"
"""The operation of commits that are batches of streams."""
_BATCH = re.compile(r"batch (?P<number>\d+) of stream (?P<stream>\S+)")
_ENTITY = ("kind", "type", "id")


class WritableGraph(OpenGraph, Protocol):
    """What is used of a graph that a stream flows into."""

    def _request(self, operation: str, branch: str | None, message: str | None) -> Request:
        """Return what a write says about itself."""


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


def stream_into(frame: DataFrame, graph: WritableGraph, options: StreamOptions) -> StreamingQuery:
    """Start a stream into a graph: every batch that changes something becomes one commit."""
    mode_of(options.mode)
    graph._request(STREAM, options.branch, None)  # refuses a graph that cannot be written
    if options.type_name is None:
        _check_changes(frame)
    writer = frame.writeStream.option("checkpointLocation", options.checkpoint)
    if options.trigger is not None:
        writer = writer.trigger(**options.trigger)
    return writer.foreachBatch(_batches(graph, options)).start()


def _check_changes(frame: DataFrame) -> None:
    missing = [name for name in SCHEMA.names if name not in frame.columns]
    if missing:
        message = (
            f"a stream of changes has the columns {', '.join(missing)}; "
            "say of which type other rows are"
        )
        raise InvalidInput(message, code="stream_columns_missing", columns=missing)


def _batches(graph: WritableGraph, options: StreamOptions) -> Callable[[DataFrame, int], None]:
    def take(batch: DataFrame, number: int) -> None:
        stream = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        assert stream is not None, "Spark tells a batch to which stream it belongs"
        request = graph._request(STREAM, options.branch, f"batch {number} of stream {stream}")
        if number <= last_batch(graph._manifest, request.branch, stream) or batch.isEmpty():
            return
        if options.type_name is None:
            replay(graph._manifest, request, _net(batch))
        else:
            rows = {options.type_name: batch.toArrow()}
            load(graph._manifest, request, rows, LoadOptions(mode=mode_of(options.mode)))

    return take


def last_batch(manifest: Manifest, branch: str, stream: str) -> int:
    """Return the number of the newest batch of a stream on a branch; -1 when there is none."""
    snapshot = head_snapshot(manifest, branch)
    state = manifest.lineage(snapshot.native).state()
    commits = read_commits(manifest.line(state))
    for commit_id in first_parents(commits, snapshot.commit_id):
        commit = commits[commit_id].commit
        told = _BATCH.fullmatch(commit.message or "") if commit.operation == STREAM else None
        if told is not None and told["stream"] == stream:
            return int(told["number"])
    return -1


def _net(batch: DataFrame) -> Replay:
    """Return what became of each entity in the end."""
    last = F.max_by(F.struct("op", "from", "to", "after"), "place").alias("last")
    rows = batch.groupBy(*_ENTITY).agg(last).select(*_ENTITY, "last.*").toArrow().to_pylist()
    gone: dict[str, list[str]] = {}
    for row in rows:
        if row["op"] == "delete":
            gone.setdefault(f"{row['kind']}:{row['type']}", []).append(row["id"])
    return Replay(_lines(rows), gone)


def _lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in sorted(rows, key=lambda row: row["kind"], reverse=True):
        if row["op"] == "delete":
            continue
        data = {"id": row["id"], **json.loads(row["after"])}
        record = {"type": row["type"], "data": data}
        if row["kind"] == "edge":
            record = {"edge": row["type"], "from": row["from"], "to": row["to"], "data": data}
        yield json.dumps(record, ensure_ascii=False)
