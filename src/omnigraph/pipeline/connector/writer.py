"""Write data frames into a graph: executors stage rows, one commit publishes them.

The commit runs the ordinary loader over the rows of all tasks, so that checks and violations are
the same as for any other load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN
from omnigraph.commit.torn_recovery import set_aside_torn_versions
from omnigraph.embed.config import read_models
from omnigraph.errors import InvalidInput, OmniError
from omnigraph.pipeline.connector.columns import arrow_schema
from omnigraph.pipeline.connector.permission import SourcePermission
from omnigraph.pipeline.connector.scratch import ScratchFiles
from omnigraph.pipeline.connector.table_scan import manifest_at
from omnigraph.write.load import LoadOptions, WriteMode, load, parse_load_mode
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
    """The scratch file of a task."""

    path: str | None


class GraphDataWriter(DataSourceArrowWriter):
    """Writes the rows of `df.write`; Spark commits in a process of its own."""

    def __init__(self, scratch: ScratchFiles, target: WriteTarget, schema: StructType) -> None:
        target.options  # noqa: B018 - refuse what cannot be before any row is written
        self.scratch = scratch
        self.target = target
        self.schema = schema

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _TaskCommitMessage:
        """Write the rows of a task to scratch files."""
        return _TaskCommitMessage(self.scratch.put(iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Load the rows of all tasks as one commit."""
        puts = [message for message in messages if isinstance(message, _TaskCommitMessage)]
        paths = [put.path for put in puts if put.path is not None]
        rows = self.scratch.rows(paths, arrow_schema(self.schema))
        target = self.target
        manifest = manifest_at(self.scratch.location)
        set_aside_torn_versions(manifest)
        load(manifest, target.request(manifest), {target.type_name: rows}, target.options)
        self._remove()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the rows."""
        self._remove()

    def _remove(self) -> None:
        # Cleanup removes what is left; the result is the same.
        with suppress(OmniError):
            self.scratch.remove()


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
