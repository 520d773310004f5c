"""Rows that a process has just published, for the other processes of the machine.

Each process that writes to a branch needs the newest rows of its lineage and the keys of the newest
rows of its datasets. Reading them from Lance costs more than a small commit, so a writer leaves
them in a file beside the lock files of the branch, if others write to it, too. The file names the
data files whose rows it holds; data files never change, so it is never wrong, only useless.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

SLOTS = 32
"""Number of files of a branch: a process that is further behind reads the lineage."""
MAX_BYTES = 1 << 20
_MAGIC = b"omnigraph-rows-1"
_FILE = b"omnigraph:file"
_CHECKSUM_BYTES = 4


@dataclass(frozen=True, slots=True)
class SharedRows:
    """Rows of a lineage by data file; key columns of datasets by path and data file."""

    lineage: Mapping[str, pa.Table]
    keys: Mapping[tuple[str, str], pa.Table]


def write_shared_rows(folder: Path, name: str, version: int, shared: SharedRows) -> None:
    """Leave the rows of a version of a lineage for other processes."""
    sink = pa.BufferOutputStream()
    for file, table in shared.lineage.items():
        _write_table(sink, table, "", file)
    for (path, file), table in shared.keys.items():
        _write_table(sink, table, path, file)
    data = sink.getvalue().to_pybytes()
    if len(data) <= MAX_BYTES:
        checksum = zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "little")
        with suppress(OSError):
            _file(folder, name, version).write_bytes(_MAGIC + checksum + data)


def read_shared_rows(folder: Path, name: str, version: int) -> SharedRows | None:
    """Return the rows that the writer of a version left; None if there are none."""
    try:
        content = _file(folder, name, version).read_bytes()
    except OSError:
        return None
    start = len(_MAGIC) + _CHECKSUM_BYTES
    checksum, data = content[len(_MAGIC) : start], content[start:]
    if content[: len(_MAGIC)] != _MAGIC or int.from_bytes(checksum, "little") != zlib.crc32(data):
        return None  # another process is writing it, or was killed then
    lineage: dict[str, pa.Table] = {}
    keys: dict[tuple[str, str], pa.Table] = {}
    # A reader of the buffer itself would keep all of it in memory as long as one of its tables.
    source = pa.PythonFile(io.BytesIO(data), mode="r")
    while source.tell() < len(data):
        table = pa.ipc.open_stream(source).read_all()
        metadata = dict(table.schema.metadata)
        path, file = metadata.pop(_FILE).decode().split("\x00")
        table = table.replace_schema_metadata(metadata or None)
        if path:
            keys[path, file] = table
        else:
            lineage[file] = table
    return SharedRows(lineage, keys)


def _write_table(sink: pa.BufferOutputStream, table: pa.Table, path: str, file: str) -> None:
    name = {_FILE: f"{path}\x00{file}".encode()}
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **name})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def _file(folder: Path, name: str, version: int) -> Path:
    return folder / f"{name}.rows-{version % SLOTS}"
