"""The Spark data source `omnigraph`: types of a graph as data frames."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    Filter,
    InputPartition,
)
from pyspark.sql.types import StructType

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Snapshot
from omnigraph.commit.snapshot import (
    head_snapshot,
    resolve_snapshot,
    snapshot_at_time,
    snapshot_of_commit,
)
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.pipeline.connector import change_stream
from omnigraph.pipeline.connector.filters import FilterCondition, apply_conditions, stored_filter
from omnigraph.pipeline.connector.permission import SourcePermission
from omnigraph.pipeline.connector.scratch import ScratchFiles
from omnigraph.pipeline.connector.table_scan import TableScan, manifest_at, pin_table
from omnigraph.pipeline.connector.writer import GraphDataWriter, WriteTarget
from omnigraph.storage import locate

FORMAT = "omnigraph"
STORAGE = "storage."
"""What options for storage begin with."""

_STATES = ("at", "commit", "tag", "timestamp")


def register(spark: SparkSession) -> SparkSession:
    """Make the format `omnigraph` known to a session, and return the session."""
    spark.dataSource.register(OmniGraphSource)
    return spark


class OmniGraphSource(DataSource):
    """One type of a graph.

    The snapshot is resolved when a data frame is created, and never changes afterwards. Only if
    a schema is given, Spark does not request ours, and the state is resolved by each action: all
    its tasks see the same.
    """

    pinned: TableScan | None = None

    @classmethod
    def name(cls) -> str:
        """Return the word of `spark.read.format`."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns of the type, or those the option `columns` names.

        With the option `changes` it is those of changes, which are read as a stream.
        """
        if change_stream.CHANGES in self.options:
            return change_stream.SCHEMA
        names = self.options.get("columns")
        columns = None if names is None else [name.strip() for name in names.split(",")]
        self.pinned = pin_by_options(self.options)
        return self.pinned.named(columns).schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the requested columns."""
        pinned = self.pinned or pin_by_options(self.options)
        is_pushing = self.options.get("pushdown", "false").lower() == "true"
        return (_PushdownReader if is_pushing else _TableScanReader)(pinned.only(schema), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader of the changes of the branch that the option `changes` names."""
        required_option(self.options, change_stream.CHANGES)
        location = manifest_by_options(self.options).location
        return change_stream.ChangeStreamReader(
            change_stream.ChangeFeedOptions.by_options(location, self.options)
        )

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a writer of rows, which become one commit."""
        target = WriteTarget.by_options(
            self.options, required_option(self.options, "type"), overwrite=overwrite
        )
        manifest = manifest_by_options(self.options)
        # Checked before any rows are written.
        target.permission.rights(manifest, target.branch, target.from_)
        return GraphDataWriter(ScratchFiles.new(manifest.location), target, schema)


class _ScanPartition(InputPartition):
    """The fragments of one task."""

    def __init__(self, fragments: list[int]) -> None:
        super().__init__(None)
        self.fragments = fragments


class _TableScanReader(DataSourceReader):
    """Reads pinned rows."""

    def __init__(self, pinned: TableScan, schema: StructType) -> None:
        self.pinned = pinned
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return a task per large fragment and per handful of small ones."""
        return [_ScanPartition(fragments) for fragments in self.pinned.parts() or [[]]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        assert isinstance(partition, _ScanPartition)
        return self.pinned.rows(partition.fragments, self.schema)


class _PushdownReader(_TableScanReader):
    """Lets storage answer the filters of a query, if it can do that exactly.

    Only for data frames that a query uses once: of several uses with different filters, Spark would
    give all the rows of one.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that storage answers; return the others."""
        where, left = stored_filter(filters, self.pinned.columns)
        both = [text for text in (self.pinned.where, where) if text is not None]
        self.pinned = replace(self.pinned, where=" AND ".join(both) or None)
        return left


# --- options -----------------------------------------------------------------------------------


def pin_by_options(options: Mapping[str, str]) -> TableScan:
    """Pin what the options of a reader name."""
    manifest = manifest_by_options(options)
    permission = SourcePermission.by_options(options)
    permission.gate.check_actor()
    shown = permission.shown(manifest, _snapshot(manifest, options))
    pinned = pin_table(manifest, shown, required_option(options, "type"))
    return apply_conditions(pinned, _conditions(options.get("where", "[]")))


def _conditions(text: str) -> list[FilterCondition]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(c, list) and len(c) > 1 for c in found):
        message = f"""the option 'where' must be JSON such as [["tons", ">", 5]], got {text}"""
        raise InvalidInput(message, code="option_invalid", option="where")
    return found


def manifest_by_options(options: Mapping[str, str]) -> Manifest:
    """Return the graph that options name."""
    given = {
        name.removeprefix(STORAGE): value
        for name, value in options.items()
        if name.startswith(STORAGE)
    }
    return manifest_at(locate(required_option(options, "path"), given))


def required_option(options: Mapping[str, str], name: str) -> str:
    """Return an option that must be there."""
    value = options.get(name)
    if not value:
        message = f"the format {FORMAT} needs the option '{name}'"
        raise InvalidInput(message, code="option_missing", option=name)
    return value


def _snapshot(manifest: Manifest, options: Mapping[str, str]) -> Snapshot:
    branch = options.get("branch", MAIN)
    given = [name for name in _STATES if name in options]
    if len(given) > 1:
        message = f"give only one of the options {', '.join(given)}"
        raise InvalidInput(message, code="option_invalid", options=given)
    match given:
        case ["at"]:
            return resolve_snapshot(manifest, options["at"], branch=branch)
        case ["commit"]:
            return snapshot_of_commit(manifest, options["commit"])
        case ["tag"]:
            return _tagged(manifest, options["tag"])
        case ["timestamp"]:
            return snapshot_at_time(manifest, _instant(options["timestamp"]), branch)
        case _:
            return head_snapshot(manifest, branch)


def _tagged(manifest: Manifest, name: str) -> Snapshot:
    tag = manifest.tags().get(name)
    if tag is None:
        raise NotFound(f"tag '{name}' does not exist", code="tag_not_found", tag=name)
    return snapshot_of_commit(manifest, tag.commit_id)


def _instant(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        message = (
            f"the option 'timestamp' must be a time such as 2024-05-01T12:30:00Z, got '{text}'"
        )
        raise InvalidInput(message, code="option_invalid", option="timestamp") from None
