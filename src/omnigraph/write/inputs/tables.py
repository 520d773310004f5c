"""This module opens the tables people have: Parquet, CSV, Arrow files, and tables in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.errors import InvalidInput
from omnigraph.write.inputs.columnar import SLICE_ROWS, Table
from omnigraph.write.inputs.csv_files import Dialect, open_csv
from omnigraph.write.inputs.streams import (
    UNREADABLE,
    Broken,
    file_opened,
    opened,
    unreadable,
)
from omnigraph.write.progress import Meter

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
def opened_table(
    path: Path, meter: Meter, groups: range | None = None, encoding: str | None = None
) -> Iterator[Table]:
    """Open a file with a table; its name says what kind it is.

    `groups` are the row groups of a Parquet file to read, if not all; `encoding` is that of CSV,
    UTF-8 by default.

    Raises:
        InvalidInput: there is no such file, or its name says nothing.
        Broken: it is not what its name says.
    """
    kind = _kind(path)
    if kind in _CSV:
        with opened(path, meter, encoding) as stream, _csv(stream, _CSV[kind]) as table:
            yield table
        return
    with ExitStack() as stack:
        file = stack.enter_context(file_opened(path))
        try:
            if kind in _PARQUET:
                table = _parquet(stack, file, meter, groups)
            else:
                table = _arrow(stack, file)
        except UNREADABLE as error:
            raise Broken(unreadable(error)) from error
        yield table


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in _PACKED
    kind = suffixes[-2] if packed and len(suffixes) > 1 else suffixes[-1] if suffixes else ""
    if kind not in (*_CSV, *(() if packed else (*_PARQUET, *_ARROW))):
        message = f"{path} is no Parquet, CSV or Arrow file by its name"
        raise InvalidInput(message, code="input_unknown", file=str(path))
    return kind


def _parquet(stack: ExitStack, file: IO[bytes], meter: Meter, groups: range | None) -> Table:
    parquet = stack.enter_context(pq.ParquetFile(file))
    wanted = range(parquet.num_row_groups) if groups is None else groups
    before = sum(parquet.metadata.row_group(number).num_rows for number in range(wanted.start))
    batches = _row_groups(parquet, wanted, meter)
    return Table(parquet.schema_arrow.names, batches, before=before)


def _row_groups(parquet: pq.ParquetFile, groups: range, meter: Meter) -> Iterator[pa.RecordBatch]:
    for number in groups:
        yield from parquet.iter_batches(batch_size=SLICE_ROWS, row_groups=[number])
        meter.read(parquet.metadata.row_group(number).total_byte_size)


def _arrow(stack: ExitStack, file: IO[bytes]) -> Table:
    is_file = file.read(len(_ARROW_MAGIC)) == _ARROW_MAGIC
    file.seek(0)
    if not is_file:
        reader = stack.enter_context(pa.ipc.open_stream(file))
        return Table(reader.schema.names, reader)
    arrow = stack.enter_context(pa.ipc.open_file(file))
    batches = (arrow.get_batch(number) for number in range(arrow.num_record_batches))
    return Table(arrow.schema.names, batches)


@contextmanager
def _csv(stream: IO[bytes], delimiter: str) -> Iterator[Table]:
    """Read cells as bytes: what they mean, and whether they are UTF-8, is told cell by cell."""
    with open_csv(stream, Dialect(delimiter)) as file:
        yield Table(file.names, file.batches, text=True, skipped=file.skipped)


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
