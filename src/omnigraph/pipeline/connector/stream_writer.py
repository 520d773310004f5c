"""Write the batches of a stream into a graph, each as one commit, exactly once.

The commit message names the stream and the batch. A batch that is delivered again, because a
process died after it was published and before Spark recorded that, is recognised and skipped.

Executors stage the rows of a batch beside the graph. A small batch is loaded from there by this
process, a large one by workers, so that no batch has to fit the memory of one process. Deletions
count as rows: their ids are staged, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from omnigraph.commit.commit_log import CommitLog, first_parents
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.commit.torn_recovery import set_aside_torn_versions
from omnigraph.errors import OmniError
from omnigraph.pipeline.connector.columns import arrow_schema
from omnigraph.pipeline.connector.scratch import ScratchFiles
from omnigraph.pipeline.connector.table_scan import manifest_at
from omnigraph.pipeline.connector.writer import stage_frame
from omnigraph.pipeline.load.entry_points import load_frames, load_lines
from omnigraph.pipeline.load.model import SparkLoadOptions, TypeFrame
from omnigraph.pipeline.load.removals import ID_SCHEMA, StagedRemoval
from omnigraph.pipeline.load.stage_tasks import LINE_COLUMN
from omnigraph.query.entities import find_type
from omnigraph.storage import Location
from omnigraph.write.load import LoadOptions, ReplayedChanges, load, parse_load_mode, replay_changes
from omnigraph.write.request import WriteRequest

STREAM = "stream"
"""The operation of commits that are batches of streams."""
SMALL_BATCH_ROWS = 50_000
"""Up to this number of rows a batch is loaded faster by one process."""
_BATCH = re.compile(r"batch (?P<number>\d+) of stream (?P<stream>\S+)")
_ENTITY = ("kind", "type", "id")
_WRITTEN_SCHEMA = "path string, rows long, removed string"
_LINES = pa.schema([(LINE_COLUMN, pa.string())])


@dataclass
class StreamBatchWriter:
    """Writes the batches of one stream; with Spark Connect it runs on the server.

    Rows are changes, unless `type_name` says of which type they are.
    """

    location: Location
    request: WriteRequest
    checkpoint: str
    type_name: str | None
    mode: str

    @cached_property
    def manifest(self) -> Manifest:
        """The graph, opened where it is first needed."""
        manifest = manifest_at(self.location)
        set_aside_torn_versions(manifest)
        return manifest

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "manifest"}

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Write a batch, unless it was written before."""
        with _unchanged_active_session(batch.sparkSession):
            self._write(batch, number)

    def _write(self, batch: DataFrame, number: int) -> None:
        stream = self._stream(batch.sparkSession)
        if number <= last_batch(self.manifest, self.request.branch, stream):
            return
        request = replace(self.request, message=f"batch {number} of stream {stream}")
        scratch = ScratchFiles.new(self.location)
        try:
            if self.type_name is None:
                self._replay(batch, request, scratch)
            else:
                self._load(batch, request, scratch, self.type_name)
        finally:
            with suppress(OmniError):  # cleanup removes what is left
                scratch.remove()

    def _stream(self, spark: SparkSession) -> str:
        """Return the id of the stream, which Spark notes before it gives the first batch."""
        row = spark.read.text(f"{self.checkpoint.rstrip('/')}/metadata").first()
        assert row is not None, "Spark writes down which stream a checkpoint belongs to"
        return str(json.loads(row[0])["id"])

    def _load(
        self, batch: DataFrame, request: WriteRequest, scratch: ScratchFiles, type_name: str
    ) -> None:
        """Load rows of one type."""
        puts = stage_frame(batch, scratch)
        rows, paths = sum(put.rows for put in puts), [put.path for put in puts]
        mode = parse_load_mode(self.mode)
        if not rows:
            return
        if rows <= SMALL_BATCH_ROWS:
            read = scratch.rows(paths, arrow_schema(batch.schema))
            load(self.manifest, request, {type_name: read}, LoadOptions(mode=mode, always=True))
            return
        spark = batch.sparkSession
        found = find_type(head_snapshot(self.manifest, request.branch), type_name)
        given = [TypeFrame(found.entity, scratch.frame(spark, paths, batch.schema))]
        load_frames(self.manifest, request, given, SparkLoadOptions(mode=mode), spark)

    def _replay(self, batch: DataFrame, request: WriteRequest, scratch: ScratchFiles) -> None:
        """Apply the last change of each entity."""
        written = (
            _final_changes(batch).mapInArrow(_batch_writer(scratch), _WRITTEN_SCHEMA).collect()
        )
        rows = sum(row["rows"] for row in written)
        paths = [row["path"] for row in written if row["path"] is not None]
        source = head_snapshot(self.manifest, request.branch)
        removals = [
            replace(one, table_key=find_type(source, one.table_key).entity)
            for one in _merged_removals(row["removed"] for row in written)
        ]
        number = rows + sum(one.rows for one in removals)
        if not number:
            return
        if number <= SMALL_BATCH_ROWS:
            lines = _batch_lines(scratch.rows(paths, _LINES))
            gone = {one.table_key: _ids(scratch, one) for one in removals}
            replay_changes(self.manifest, request, ReplayedChanges(lines, gone))
            return
        spark = batch.sparkSession
        frame = scratch.frame(spark, paths, f"`{LINE_COLUMN}` string")
        load_lines(self.manifest, request, frame, SparkLoadOptions(), spark, removals)


@contextmanager
def _unchanged_active_session(of_batch: SparkSession) -> Iterator[None]:
    """Restore the active session if that of a batch replaced it.

    `createDataFrame` activates its session for the whole process. The session of a batch is a copy
    from when the stream started: later settings of the user would have no effect on it.
    """
    before = SparkSession._activeSession
    try:
        yield
    finally:
        if SparkSession._activeSession is of_batch:
            SparkSession._activeSession = before


def last_batch(manifest: Manifest, branch: str, stream: str) -> int:
    """Return the number of the newest batch of a stream on a branch; -1 when there is none."""
    snapshot = head_snapshot(manifest, branch)
    state = manifest.lineage(snapshot.lineage_id).state()
    commits = CommitLog(manifest.history_states(state))
    for commit_id in first_parents(commits, snapshot.commit_id):
        commit = commits[commit_id].commit
        match = _BATCH.fullmatch(commit.message or "") if commit.operation == STREAM else None
        if match is not None and match["stream"] == stream:
            return int(match["number"])
    return -1


# --- changes -----------------------------------------------------------------------------------


def _final_changes(batch: DataFrame) -> DataFrame:
    """Return the last change of each entity."""
    last = F.max_by(F.struct("op", "from", "to", "after"), "place").alias("last")
    return batch.groupBy(*_ENTITY).agg(last).select(*_ENTITY, "last.*")


def _batch_writer(scratch: ScratchFiles) -> Any:  # noqa: ANN401 - what Spark runs on executors
    """Return a function that writes entities as graph batch lines, and the ids of deleted ones."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        deleted: dict[str, list[str]] = {}
        count = 0

        def lines() -> Iterator[pa.RecordBatch]:
            nonlocal count
            for batch in batches:
                rows = batch.to_pylist()
                texts = [_line(row) for row in rows if row["op"] != "delete"]
                for row in rows:
                    if row["op"] == "delete":
                        deleted.setdefault(f"{row['kind']}:{row['type']}", []).append(row["id"])
                count += len(texts)
                yield pa.record_batch([pa.array(texts, pa.string())], schema=_LINES)

        path = scratch.put(lines())
        removed = {
            key: [scratch.put([pa.record_batch([ids], schema=ID_SCHEMA)]), len(ids)]
            for key, ids in deleted.items()
        }
        facts = {"path": pa.array([path], pa.string()), "rows": pa.array([count], pa.int64())}
        yield pa.record_batch({**facts, "removed": [json.dumps(removed)]})

    return run


def _merged_removals(written: Iterable[str]) -> list[StagedRemoval]:
    """Return the ids that all tasks wrote, by type."""
    found: dict[str, StagedRemoval] = {}
    for text in written:
        for key, (path, rows) in json.loads(text).items():
            old = found.get(key, StagedRemoval(key))
            found[key] = replace(old, rows=old.rows + rows, paths=(*old.paths, path))
    return list(found.values())


def _ids(scratch: ScratchFiles, removal: StagedRemoval) -> Iterator[str]:
    for batch in scratch.rows(removal.paths, ID_SCHEMA):
        yield from batch["id"].to_pylist()


def _line(row: Mapping[str, Any]) -> str:
    data = {"id": row["id"], **json.loads(row["after"])}
    record = {"type": row["type"], "data": data}
    if row["kind"] == "edge":
        record = {"edge": row["type"], "from": row["from"], "to": row["to"], "data": data}
    return json.dumps(record, ensure_ascii=False)


def _batch_lines(rows: pa.RecordBatchReader) -> Iterator[str]:
    for batch in rows:
        yield from batch[LINE_COLUMN].to_pylist()
