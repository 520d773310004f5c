"""Scratch files: rows on their way from executors to a commit, stored beside the graph.

An executor writes its rows as one object when it has all of them, so that a failed or repeated task
leaves nothing, or an object without references. The commit reads exactly the objects it was given,
and removes the folder. `cleanup` removes what a dead job left.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from ulid import ULID

from omnigraph.errors import Category, OmniError, translate_disk_errors
from omnigraph.pipeline.connector.table_scan import manifest_at
from omnigraph.pipeline.sessions.tasks import map_tasks
from omnigraph.storage import Location, ObjectStore
from omnigraph.storage.layout import SCRATCH

_IN_MEMORY = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ScratchFiles:
    """A folder for the rows of one job; plain data that executors get as it is."""

    location: Location
    folder: str

    @classmethod
    def new(cls, location: Location) -> ScratchFiles:
        """Return a new folder of a graph."""
        return cls(location, f"{SCRATCH}/{ULID()}")

    @property
    def _objects(self) -> ObjectStore:
        return manifest_at(self.location).objects

    def put(self, batches: Iterable[pa.RecordBatch]) -> str | None:
        """Write rows and return the name of the object, None without rows."""
        writer: pa.RecordBatchStreamWriter | None = None
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
            for batch in batches:
                if not batch.num_rows:
                    continue
                with translate_disk_errors(tempfile.gettempdir()):
                    writer = writer or pa.ipc.new_stream(file, batch.schema)
                    writer.write_batch(batch)
            if writer is None:
                return None
            with translate_disk_errors(tempfile.gettempdir()):
                writer.close()
                file.seek(0)
            path = f"{self.folder}/{ULID()}.arrow"
            self._objects.put_file(path, file)
        return path

    def rows(self, paths: Sequence[str], empty: pa.Schema) -> pa.RecordBatchReader:
        """Return the rows of some objects, read when they are taken; `empty` if there are none."""
        there = {info.path for info in self._objects.list(self.folder)} if paths else set()
        missing = sorted(set(paths) - there)
        if missing:
            raise _scratch_removed(missing[0])
        batches = self._batches(paths)
        first = next(batches, None)
        if first is None:
            return pa.RecordBatchReader.from_batches(empty, [])
        return pa.RecordBatchReader.from_batches(first.schema, _chain_batches(first, batches))

    def frame(
        self, spark: SparkSession, paths: Sequence[str], schema: StructType | str
    ) -> DataFrame:
        """Return the rows of some objects as a data frame."""
        return map_tasks(spark, paths, lambda path: self._batches([path]), schema)

    def _batches(self, paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for path in paths:
            found = self._objects.open(path)
            if found is None:
                raise _scratch_removed(path)
            with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
                for chunk in found[1]:
                    with translate_disk_errors(tempfile.gettempdir()):
                        file.write(chunk)
                file.seek(0)
                yield from pa.ipc.open_stream(file)

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        self._objects.delete([info.path for info in self._objects.list(self.folder)])


def _scratch_removed(path: str) -> OmniError:
    message = f"{path} was removed before its rows were committed; run the job again"
    return OmniError(message, code="scratch_removed", category=Category.CONTENTION)


def _chain_batches(
    first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
