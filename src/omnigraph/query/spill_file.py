"""A temporary file of Arrow record batches, for rows that do not fit the memory of a query.

The file has no name, so the operating system deletes it with the process, however that ends.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.errors import StorageUnavailable

_MAX_WRITE_BYTES = 64 * 1024 * 1024
"""Bytes that are written by one call; the system writes at most 2 GiB."""


@dataclass(frozen=True, slots=True)
class SpilledBatch:
    """The place of a record batch in the file, and what reads it."""

    file: SpillFile
    schema: pa.Schema
    offset: int
    size: int
    rows: int

    def read(self) -> pa.RecordBatch:
        """Return the rows."""
        return self.file.read(self)


class SpillFile:
    """An anonymous file in the temporary folder, to which Arrow IPC messages are appended.

    A message is a record batch; `size` is the bytes of all.
    """

    def __init__(self) -> None:
        try:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed with the query
        except OSError as error:
            raise _spill_failed(error) from error
        self.size = 0

    @staticmethod
    def written_size(batch: pa.RecordBatch) -> int:
        """Return how many bytes a record batch takes in the file."""
        return int(pa.ipc.get_record_batch_size(batch))

    def write(self, batch: pa.RecordBatch) -> SpilledBatch:
        """Append a record batch."""
        data = memoryview(batch.serialize())
        place, at = SpilledBatch(self, batch.schema, self.size, len(data), batch.num_rows), 0
        try:
            while at < len(data):
                part = data[at : at + _MAX_WRITE_BYTES]
                at += os.pwrite(self._file.fileno(), part, place.offset + at)
        except OSError as error:
            raise _spill_failed(error) from error
        self.size += place.size
        return place

    def read(self, place: SpilledBatch) -> pa.RecordBatch:
        """Return a record batch of the file."""
        data, at = pa.allocate_buffer(place.size), 0
        view = memoryview(data)
        while at < place.size:
            count = os.preadv(self._file.fileno(), [view[at:]], place.offset + at)
            if not count:
                raise _spill_failed(OSError("the file ends early"))
            at += count
        return pa.ipc.read_record_batch(data, place.schema)

    def close(self) -> None:
        """Delete the file."""
        self._file.close()


def _spill_failed(error: OSError) -> StorageUnavailable:
    message = (
        f"cannot write rows of a query to the temporary folder {tempfile.gettempdir()}: {error}; "
        "free space there, or set TMPDIR to another folder"
    )
    return StorageUnavailable(message, code="spill_failed")
