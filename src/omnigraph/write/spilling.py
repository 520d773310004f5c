"""Collect rows of many batches, and spill those that do not fit memory to a file.

Readers get one Arrow table: the part in the file is memory mapped, so that the system
may drop its pages whenever it needs the memory.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from omnigraph.errors import StorageUnavailable

SPILL_THRESHOLD_BYTES = 1024 * 1024 * 1024
"""Rows of one change that are kept in memory before some go to a file."""


class SpillableRows:
    """Rows of one type."""

    def __init__(self, spill: SpillManager, schema: pa.Schema) -> None:
        self._spill = spill
        self.schema = schema
        self._waiting: list[pa.RecordBatch] = []
        self._writer: pa.RecordBatchFileWriter | None = None
        self._path: Path | None = None
        self.rows = 0
        self.bytes = 0

    def add(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Take more rows."""
        batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
        self._waiting += [batch for batch in batches if batch.num_rows]
        self.rows += rows.num_rows
        self.bytes += rows.nbytes
        self._spill.add_bytes(rows.nbytes)

    def write(self) -> int:
        """Move what waits in memory to the file; return how much that was."""
        try:
            if self._writer is None:
                self._path = self._spill.fresh_path()
                self._writer = pa.ipc.new_file(str(self._path), self.schema)
            for batch in self._waiting:
                self._writer.write_batch(batch)
        except OSError as error:
            raise _spill_failed(error) from error
        freed, self.bytes, self._waiting = self.bytes, 0, []
        return freed

    def table(self) -> pa.Table:
        """Return all rows, in the order they came; nothing can be added after."""
        if self._writer is None:
            return pa.Table.from_batches(self._waiting, self.schema)
        self.write()
        try:
            self._writer.close()
        except OSError as error:
            raise _spill_failed(error) from error
        return pa.ipc.open_file(pa.memory_map(str(self._path))).read_all()


def _spill_failed(error: OSError) -> StorageUnavailable:
    message = (
        f"cannot write rows to the temporary folder {tempfile.gettempdir()}: {error}; free space "
        "there, or set TMPDIR to another folder"
    )
    return StorageUnavailable(message, code="spill_failed")


class SpillManager:
    """The memory and the folder the gathered rows of one change share."""

    def __init__(self, memory_bytes: int = SPILL_THRESHOLD_BYTES) -> None:
        self._limit = memory_bytes
        self._used = 0
        self._gathered: list[SpillableRows] = []
        self._folder: Path | None = None

    @property
    def folder(self) -> Path:
        """Where files are; made when first needed."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="omnigraph-spill-"))
        return self._folder

    def new_rows(self, schema: pa.Schema) -> SpillableRows:
        """Return a place for rows of one type."""
        rows = SpillableRows(self, schema)
        self._gathered.append(rows)
        return rows

    def fresh_path(self) -> Path:
        """Return a path where nothing is."""
        number = sum(1 for _ in self.folder.iterdir())
        return self.folder / f"{number}.arrow"

    def add_bytes(self, size: int) -> None:
        """Count new rows, and spill some to a file when there are too many."""
        self._used += size
        while self._used > self._limit:
            largest = max(self._gathered, key=lambda gathered: gathered.bytes)
            self._used -= largest.write()

    def __enter__(self) -> SpillManager:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
