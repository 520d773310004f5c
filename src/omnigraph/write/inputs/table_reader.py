"""Read tables of one type: columns are checked first, then rows are streamed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.catalog import TypeKind
from omnigraph.catalog.model import resolve_endpoint_columns
from omnigraph.errors import InvalidInput
from omnigraph.types import PropertyType, Scalar
from omnigraph.write.change_set import RowSchema
from omnigraph.write.coercion import is_text_type
from omnigraph.write.inputs.byte_streams import (
    READ_ERRORS,
    UnreadableInput,
    describe_read_error,
    open_input_file,
    open_source,
    prefetch,
)
from omnigraph.write.inputs.csv_reader import BadCsvRow, CsvDialect, open_csv
from omnigraph.write.inputs.line_parser import unknown_member_message
from omnigraph.write.progress import ProgressMeter
from omnigraph.write.row_builder import InputRows, RowBuilder
from omnigraph.write.violations import ViolationRule

SLICE_ROWS = 131_072
SLICE_BYTES = 64 * 1024 * 1024
"""What is taken in at a time."""

RowNumbers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class InputTable:
    """A table to be read: its columns, and its rows piece by piece.

    `text` says that cells are text to be parsed. `skipped` are rows the reader could make nothing
    of; it grows while rows are read. `before` is how many rows of the same file
    are read by others. `positions` gives the rows of a batch other positions than their numbers.
    """

    names: Sequence[str]
    batches: Iterable[pa.RecordBatch]
    text: bool = False
    skipped: Sequence[BadCsvRow] = ()
    before: int = 0
    positions: Callable[[pa.RecordBatch, int], pa.Array] | None = None


def read_table(
    table: InputTable, name: str, shape: RowSchema, builder: RowBuilder, meter: ProgressMeter
) -> None:
    """Read a table of one type."""
    base = builder.open_file(name, "row")
    builder.include_type(shape)
    targets = _column_targets(table.names, shape, builder)
    if targets is None:
        return
    names, rows = frozenset(targets), table.before
    with closing(prefetch(checked_batches(table.batches))) as batches:
        try:
            for batch in _slices(batches):
                if not _check_column_types(batch, targets, table, shape, builder):
                    break
                columns = {target: batch.column(i) for i, target in enumerate(targets)}
                if table.positions is not None:
                    at = table.positions(batch, rows)
                else:
                    at = pa.array(base + row_numbers(rows, batch.num_rows, table.skipped))
                builder.add(shape, [InputRows(columns, at, text=table.text, given=names)])
                rows += batch.num_rows
                meter.add_rows(batch.num_rows)
        except UnreadableInput as error:
            builder.report_file_error(ViolationRule.SYNTAX, str(error), shape)
    for bad in table.skipped:
        builder.problem(ViolationRule.SYNTAX, bad.reason, base + bad.number, shape, record=bad.text)


def checked_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same; raise UnreadableInput when the file behind it cannot be read on."""
    reading = iter(batches)
    while True:
        try:
            batch = next(reading)
        except StopIteration:
            return
        except READ_ERRORS as error:
            raise UnreadableInput(describe_read_error(error)) from error
        yield batch


def row_numbers(before: int, count: int, skipped: Sequence[BadCsvRow]) -> RowNumbers:
    """Return the numbers of rows, which the skipped ones have moved on."""
    numbers = np.arange(before, before + count, dtype=np.int64) + 1
    if not skipped:
        return numbers
    gaps = np.array(sorted(bad.number for bad in skipped)) - np.arange(len(skipped))
    return numbers + np.searchsorted(gaps, numbers, side="right")


def _column_targets(
    names: Sequence[str], shape: RowSchema, builder: RowBuilder
) -> list[str] | None:
    """Return what each column is called in a change; None when the columns cannot be used."""
    is_edge = shape.kind is TypeKind.EDGE
    ends = resolve_endpoint_columns(names, shape.properties) if is_edge else {}
    targets = [ends.get(name, name) for name in names]
    fits = True

    def refuse(rule: ViolationRule, message: str, name: str) -> None:
        nonlocal fits
        fits = False
        builder.report_file_error(rule, message, shape, property=name[:80])

    columns = shape.schema.names
    for name, target in zip(names, targets, strict=True):
        if target not in columns:
            refuse(
                ViolationRule.UNKNOWN_PROPERTY,
                f"column: {unknown_member_message(name, TypeKind.NODE)}",
                name,
            )
        elif targets.count(target) > 1:
            refuse(ViolationRule.SYNTAX, f"column `{name}` is given more than once", name)
    for name in _required_columns(shape, builder):
        if name not in targets:
            word = {"src": "from", "dst": "to"}.get(name, name) if is_edge else name
            refuse(ViolationRule.REQUIRED, f"column `{word}` of {shape.name} is missing", word)
    return targets if fits else None


def _required_columns(shape: RowSchema, builder: RowBuilder) -> list[str]:
    """Return the columns that must be there."""
    ends = [name for name in shape.system if name != "id"]
    if builder.partial:
        return list(dict.fromkeys([*ends, *shape.key]))
    properties = shape.properties.values()
    return [*ends, *(p.name for p in properties if not p.type.nullable and p.embed is None)]


def _check_column_types(
    batch: pa.RecordBatch,
    targets: Sequence[str],
    table: InputTable,
    shape: RowSchema,
    builder: RowBuilder,
) -> bool:
    """Return whether all columns may hold what their properties want, and report those that not."""
    if table.text:
        return True
    fits = True
    for name, target, column in zip(table.names, targets, batch.columns, strict=True):
        property_ = shape.properties.get(target)
        type_ = PropertyType(Scalar.STRING) if property_ is None else property_.type
        if column.null_count < len(column) and not can_hold(column.type, type_):
            fits = False
            expected = f"{shape.name}.{name} is {type_}" if property_ is not None else "it is text"
            message = f"column `{name}` has type {column.type}, but {expected}"
            builder.report_file_error(ViolationRule.VALUE, message, shape, property=name)
    return fits


def can_hold(kind: pa.DataType, type_: PropertyType) -> bool:
    """Return whether some values of an Arrow type may be values of a property."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return can_hold(kind.storage_type, type_)
    if types.is_dictionary(kind):
        return can_hold(kind.value_type, type_)
    if types.is_null(kind):
        return True
    if type_.is_list or type_.dimension is not None:
        item = PropertyType(Scalar.F32) if type_.dimension is not None else type_.element
        return hasattr(kind, "value_type") and can_hold(kind.value_type, item)
    is_text = is_text_type(kind)
    is_time = types.is_date(kind) or types.is_timestamp(kind)
    match type_.scalar:
        case Scalar.STRING:
            return bool(is_text)
        case Scalar.BOOL:
            return bool(types.is_boolean(kind))
        case Scalar.DATE | Scalar.DATE_TIME:
            return bool(is_text or is_time or types.is_integer(kind))
        case Scalar.BLOB:
            is_bytes = types.is_binary(kind) or types.is_large_binary(kind)
            return bool(is_text or is_bytes or types.is_binary_view(kind))
        case Scalar.F32 | Scalar.F64:
            is_number = types.is_integer(kind) or types.is_floating(kind)
            return bool(is_number or types.is_decimal(kind))
        case _:
            return bool(types.is_integer(kind) or types.is_decimal(kind))


def _slices(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        size = max(1, batch.nbytes)
        step = min(SLICE_ROWS, max(1, batch.num_rows * SLICE_BYTES // size))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


# ----------------------------------------------------------------------
# Table formats: Parquet, CSV, Arrow files, and tables in memory.


_PARQUET = (".parquet", ".pq")
_CSV = {".csv": ",", ".tsv": "\t"}
_ARROW = (".arrow", ".feather", ".ipc")
_ARROW_MAGIC = b"ARROW1"
_COMPRESSED = (".gz", ".zst")


def table_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files behind a path: itself, or the Parquet files in a folder, by name."""
    folder = Path(path)
    if not folder.is_dir():
        return [folder]
    files = sorted(file for file in folder.rglob("*.parquet") if file.is_file())
    if not files:
        message = f"{path} is a folder without Parquet files"
        raise InvalidInput(message, code="input_unreadable", file=str(path))
    return files


@contextmanager
def open_table(
    path: Path, meter: ProgressMeter, groups: range | None = None, encoding: str | None = None
) -> Iterator[InputTable]:
    """Open a file with a table; its name says what kind it is.

    `groups` are the row groups of a Parquet file to read, if not all; `encoding` is that of CSV,
    UTF-8 by default.

    Raises:
        InvalidInput: there is no such file, or its name says nothing.
        UnreadableInput: it is not what its name says.
    """
    kind = _file_kind(path)
    if kind in _CSV:
        # Cells are bytes: what they mean, and whether they are UTF-8, is reported cell by cell.
        with (
            open_source(path, meter, encoding) as stream,
            open_csv(stream, CsvDialect(_CSV[kind])) as csv,
        ):
            yield InputTable(csv.names, csv.batches, text=True, skipped=csv.skipped)
        return
    with ExitStack() as stack:
        file = stack.enter_context(open_input_file(path))
        try:
            if kind in _PARQUET:
                table = _open_parquet(stack, file, meter, groups)
            else:
                table = _open_arrow(stack, file)
        except READ_ERRORS as error:
            raise UnreadableInput(describe_read_error(error)) from error
        yield table


def _file_kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in _COMPRESSED
    kind = suffixes[-2] if packed and len(suffixes) > 1 else suffixes[-1] if suffixes else ""
    if kind not in (*_CSV, *(() if packed else (*_PARQUET, *_ARROW))):
        message = f"{path} does not have the name of a Parquet, CSV or Arrow file"
        raise InvalidInput(message, code="input_unknown", file=str(path))
    return kind


def _open_parquet(
    stack: ExitStack, file: IO[bytes], meter: ProgressMeter, groups: range | None
) -> InputTable:
    parquet = stack.enter_context(pq.ParquetFile(file))
    chosen = range(parquet.num_row_groups) if groups is None else groups
    before = sum(parquet.metadata.row_group(number).num_rows for number in range(chosen.start))
    batches = _row_groups(parquet, chosen, meter)
    return InputTable(parquet.schema_arrow.names, batches, before=before)


def _row_groups(
    parquet: pq.ParquetFile, groups: range, meter: ProgressMeter
) -> Iterator[pa.RecordBatch]:
    for number in groups:
        yield from parquet.iter_batches(batch_size=SLICE_ROWS, row_groups=[number])
        meter.read(parquet.metadata.row_group(number).total_byte_size)


def _open_arrow(stack: ExitStack, file: IO[bytes]) -> InputTable:
    is_file = file.read(len(_ARROW_MAGIC)) == _ARROW_MAGIC
    file.seek(0)
    if not is_file:
        reader = stack.enter_context(pa.ipc.open_stream(file))
        return InputTable(reader.schema.names, reader)
    arrow = stack.enter_context(pa.ipc.open_file(file))
    batches = (arrow.get_batch(number) for number in range(arrow.num_record_batches))
    return InputTable(arrow.schema.names, batches)


# --- in memory ---------------------------------------------------------------------------------


def memory_table(data: Any) -> InputTable | None:  # noqa: ANN401 - whatever people have
    """Return an Arrow table, a data frame or a stream of batches as a table, else None."""
    if isinstance(data, pa.RecordBatch):
        return InputTable(data.schema.names, [data])
    if isinstance(data, pa.Table):
        return InputTable(data.schema.names, data.to_batches())
    if type(data).__module__.partition(".")[0] == "pandas":
        # Its own stream would give the index as one more column.
        return memory_table(pa.Table.from_pandas(data, preserve_index=False))
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return InputTable(reader.schema.names, reader)
    if hasattr(data, "__arrow_c_array__"):
        return memory_table(pa.record_batch(data))
    return None
