"""This module opens the tables people have: Parquet, CSV, Arrow files, and tables in memory."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from omnigraph.errors import InvalidInput
from omnigraph.write.inputs.columnar import SLICE_ROWS, Table
from omnigraph.write.inputs.streams import (
    CHUNK_BYTES,
    UNREADABLE,
    Broken,
    file_opened,
    opened,
    unreadable,
)
from omnigraph.write.progress import Meter

HEADER_BYTES = 1024 * 1024
"""The names of the columns of a CSV file stand in its first bytes."""

_PARQUET = (".parquet", ".pq")
_CSV = {".csv": ",", ".tsv": "\t"}
_ARROW = (".arrow", ".feather", ".ipc")
_ARROW_MAGIC = b"ARROW1"
_PACKED = (".gz", ".zst")


def table_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files behind a path: itself, or the Parquet files in a folder, by name."""
    found = Path(path)
    if not found.is_dir():
        return [found]
    files = sorted(file for file in found.rglob("*.parquet") if file.is_file())
    if not files:
        message = f"{path} is a folder without Parquet files"
        raise InvalidInput(message, code="input_unreadable", file=str(path))
    return files


@contextmanager
def opened_table(path: Path, meter: Meter, groups: range | None = None) -> Iterator[Table]:
    """Open a file with a table; its name says what kind it is.

    `groups` are the row groups of a Parquet file to read, if not all.

    Raises:
        InvalidInput: there is no such file, or its name says nothing.
        Broken: it is not what its name says.
    """
    kind = _kind(path)
    if kind in _CSV:
        with opened(path, meter) as stream:
            yield _making(_csv, stream, _CSV[kind])
        return
    with file_opened(path) as file:
        if kind in _PARQUET:
            yield _making(_parquet, file, meter, groups)
        else:
            yield _making(_arrow, file, meter)


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in _PACKED
    kind = suffixes[-2] if packed and len(suffixes) > 1 else suffixes[-1] if suffixes else ""
    if kind not in (*_CSV, *(() if packed else (*_PARQUET, *_ARROW))):
        message = f"{path} is no Parquet, CSV or Arrow file by its name"
        raise InvalidInput(message, code="input_unknown", file=str(path))
    return kind


def _making(make: Any, *args: Any) -> Table:  # noqa: ANN401 - one of the functions below
    try:
        table: Table = make(*args)
    except UNREADABLE as error:
        raise Broken(unreadable(error)) from error
    return table


def _parquet(file: IO[bytes], meter: Meter, groups: range | None) -> Table:
    parquet = pq.ParquetFile(file)
    wanted = range(parquet.num_row_groups) if groups is None else groups
    before = sum(parquet.metadata.row_group(number).num_rows for number in range(wanted.start))
    batches = _row_groups(parquet, wanted, meter)
    return Table(parquet.schema_arrow.names, batches, before=before)


def _row_groups(parquet: pq.ParquetFile, groups: range, meter: Meter) -> Iterator[pa.RecordBatch]:
    for number in groups:
        yield from parquet.iter_batches(batch_size=SLICE_ROWS, row_groups=[number])
        meter.read(parquet.metadata.row_group(number).total_byte_size)


def _arrow(file: IO[bytes], meter: Meter) -> Table:
    is_file = file.read(len(_ARROW_MAGIC)) == _ARROW_MAGIC
    file.seek(0)
    if not is_file:
        reader = pa.ipc.open_stream(file)
        return Table(reader.schema.names, reader)
    arrow = pa.ipc.open_file(file)
    batches = (arrow.get_batch(number) for number in range(arrow.num_record_batches))
    return Table(arrow.schema.names, batches)


def _csv(stream: IO[bytes], delimiter: str) -> Table:
    """Read cells as bytes: what they mean, and whether they are UTF-8, is told cell by cell."""
    head = stream.read(HEADER_BYTES)
    names = _header(head, delimiter)
    skipped: list[tuple[int, str]] = []

    def skip(row: pa_csv.InvalidRow) -> str:
        message = f"expected {row.expected_columns} cells, got {row.actual_columns}"
        skipped.append((row.number - 1, message))
        return "skip"

    columns = [str(number) for number in range(len(names))]
    reader = pa_csv.open_csv(
        io.BufferedReader(_Rejoined(head, stream)),
        read_options=pa_csv.ReadOptions(
            use_threads=False,  # only then are bad rows numbered
            block_size=CHUNK_BYTES,
            column_names=columns,
            skip_rows_after_names=1,
        ),
        parse_options=pa_csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.binary()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return Table(names, map(_as_text, reader), text=True, skipped=skipped)


def _header(head: bytes, delimiter: str) -> list[str]:
    text = io.StringIO(head.decode("utf-8-sig", "replace"), newline="")
    names = next(csv.reader(text, delimiter=delimiter), [])
    if not names:
        raise ValueError("the file is empty; its first line should name the columns")
    return names


def _as_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [column.view(pa.string()) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


class _Rejoined(io.RawIOBase):
    """The beginning of a stream that was read already, and the rest of it."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        super().__init__()
        self._parts = [io.BytesIO(head), rest]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
        data = self._parts[0].read(len(buffer))
        if not data and len(self._parts) > 1:
            del self._parts[0]
            return self.readinto(buffer)
        buffer[: len(data)] = data
        return len(data)


# --- in memory ---------------------------------------------------------------------------------


def memory_table(data: Any) -> Table | None:  # noqa: ANN401 - whatever people have
    """Return an Arrow table, a data frame or a stream of batches as a table, else None."""
    if isinstance(data, pa.RecordBatch):
        return Table(data.schema.names, [data])
    if isinstance(data, pa.Table):
        return Table(data.schema.names, data.to_batches())
    if type(data).__module__.partition(".")[0] == "pandas":
        # Its own stream would give the index as one more column.
        return memory_table(pa.Table.from_pandas(data, preserve_index=False))
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return Table(reader.schema.names, reader)
    if hasattr(data, "__arrow_c_array__"):
        return memory_table(pa.record_batch(data))
    return None
