"""Write `df.write` into a graph: executors stage the rows, one commit publishes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN
from omnigraph.commit.protection import check_publish
from omnigraph.commit.snapshot import apply_scope
from omnigraph.commit.torn_recovery import set_aside_torn_versions
from omnigraph.embed.config import read_models
from omnigraph.errors import InvalidInput, OmniError, OutcomeUnknown
from omnigraph.pipeline.connector.permission import SourcePermission
from omnigraph.pipeline.connector.scratch import ScratchFiles
from omnigraph.pipeline.connector.table_scan import manifest_at
from omnigraph.pipeline.load.entry_points import check_type_allowed
from omnigraph.pipeline.load.local_commit import publish_staged_rows
from omnigraph.pipeline.load.stage_tasks import FrameStager, find_shape
from omnigraph.pipeline.load.staged_load import merge_results
from omnigraph.pipeline.load.staging import StagingJob
from omnigraph.pipeline.runs.recovery import remove_staged_files
from omnigraph.query.entities import find_type
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.load import (
    LoadOptions,
    WriteMode,
    find_start_snapshot,
    fork_branch_if_missing,
    parse_load_mode,
)
from omnigraph.write.request import WriteRequest, permit_for


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTarget:
    """The target of a write: the options of a writer."""

    type_name: str
    mode: WriteMode
    branch: str = MAIN
    from_: str | None = None
    partial: bool = False
    vectors_from: str | None = None
    permission: SourcePermission = field(default_factory=SourcePermission)
    message: str | None = None

    @classmethod
    def by_options(
        cls, options: Mapping[str, str], type_name: str, *, overwrite: bool
    ) -> WriteTarget:
        """Read the options of `df.write`, whose own mode is `append` or `overwrite`."""
        given = options.get("mode")
        mode = parse_load_mode(given or ("overwrite" if overwrite else "append"))
        if overwrite != (mode is WriteMode.OVERWRITE):
            message = (
                f"the option mode={given} and .mode(...) disagree: use .mode('overwrite') alone, "
                "or .mode('append') with the option mode=append or mode=merge"
            )
            raise InvalidInput(message, code="load_mode_invalid")
        return cls(
            type_name=type_name,
            mode=mode,
            branch=options.get("branch", MAIN),
            from_=options.get("from"),
            partial=options.get("partial", "false").lower() == "true",
            vectors_from=options.get("vectors_from"),
            permission=SourcePermission.by_options(options),
            message=options.get("message"),
        )

    @property
    def options(self) -> LoadOptions:
        """The options of the loader."""
        return LoadOptions(mode=self.mode, partial=self.partial, from_=self.from_)

    def request(self, manifest: Manifest) -> WriteRequest:
        """Return the write request, if the policy allows it."""
        return WriteRequest(
            branch=self.branch,
            operation="load",
            actor=self.permission.actor,
            message=self.message,
            vectors_from=read_models(self.vectors_from),
            rights=self.permission.rights(manifest, self.branch, self.from_),
            permit=permit_for(self.permission.gate, self.branch),
        )


@dataclass(frozen=True)
class _TaskCommitMessage(WriterCommitMessage):
    """What a task staged, as JSON."""

    result: str


class GraphDataWriter(DataSourceArrowWriter):
    """Writes the rows of `df.write`: executors stage them, one process checks and publishes them.

    That process has no session of Spark.
    """

    def __init__(self, scratch: ScratchFiles, target: WriteTarget, schema: StructType) -> None:
        options, manifest = target.options, manifest_at(scratch.location)
        request = target.request(manifest)
        source, exists = find_start_snapshot(manifest, target.branch, target.from_)
        if exists:
            check_publish(source.branch, source.head, request.permit)
        shown = apply_scope(manifest, source, request.rights.named)
        found = find_type(shown, target.type_name)
        check_type_allowed(found, request, CommittedState(manifest, source), options.mode)
        self.target = target
        self.job = StagingJob(
            location=scratch.location,
            snapshot=shown,
            mode=options.mode,
            partial=options.partial,
            folder=scratch.folder,
            embedder=request.embedder,
            vectors_from=request.vectors_from,
        )
        shape = find_shape(self.job, found.entity)
        self.stager = FrameStager(self.job, shape, tuple(schema.names))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _TaskCommitMessage:
        """Stage the rows of a task."""
        return _TaskCommitMessage(json.dumps(self.stager.stage(iterator)))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Check the rows of all tasks, and publish them as one commit."""
        parts = [json.loads(m.result) for m in messages if isinstance(m, _TaskCommitMessage)]
        results = [result for _, result in sorted(parts, key=lambda part: part[0])]
        manifest = manifest_at(self.job.location)
        set_aside_torn_versions(manifest)
        try:
            self._publish(manifest, [self.stager.no_rows(), *results])
        except OutcomeUnknown:
            raise  # the commit may refer to the files
        except OmniError:
            with suppress(OmniError):
                remove_staged_files(manifest, self.job.folder)
            raise
        finally:
            self._remove()

    def _publish(self, manifest: Manifest, results: list[dict[str, Any]]) -> None:
        target, request = self.target, self.target.request(manifest)
        source, exists = find_start_snapshot(manifest, target.branch, target.from_)
        staged = merge_results(results, self.job.files)
        with fork_branch_if_missing(manifest, request, source, exists=exists):
            publish_staged_rows(manifest, request, self.job, staged)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the files of the job; cleanup removes fragments that no commit refers to."""
        self._remove()

    def _remove(self) -> None:
        # Cleanup removes what is left; the result is the same.
        with suppress(OmniError):
            ScratchFiles(self.job.location, self.job.folder).remove()


@dataclass(frozen=True, slots=True)
class StagedObject:
    """An object with rows of a data frame."""

    path: str
    rows: int


def stage_frame(frame: DataFrame, scratch: ScratchFiles) -> list[StagedObject]:
    """Write the rows of a data frame to scratch files on executors; return the objects."""

    def put(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        count = 0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal count
            for batch in batches:
                count += batch.num_rows
                yield batch

        path = pa.array([scratch.put(counted())], pa.string())
        yield pa.record_batch({"path": path, "rows": pa.array([count], pa.int64())})

    found = frame.mapInArrow(put, "path string, rows long").collect()
    return [StagedObject(row["path"], row["rows"]) for row in found if row["path"] is not None]
