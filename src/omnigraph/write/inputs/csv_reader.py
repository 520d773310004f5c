"""Read CSV (RFC 4180) as batches of text cells; every loader reads CSV with this parser.

Arrow parses in a thread that reads ahead from a Python stream. A reader that is left open would
call into an interpreter that is shutting down, so it is always drained and closed first.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from omnigraph.write.inputs.byte_streams import (
    CHUNK_BYTES,
    READ_ERRORS,
    UnreadableInput,
    describe_read_error,
)

HEADER_BYTES = 1024 * 1024
"""The names of the columns stand in the first bytes of a file."""

_END_MARKER = "\x02omnigraph end of file\x02"
"""The cells of a record appended to every file: an unclosed quote swallows it."""


_BAD_ROW = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """How cells are separated and quoted, and whether the first record names the columns."""

    delimiter: str = ","
    quote: str = '"'
    header: bool = True


@dataclass(frozen=True, slots=True)
class BadCsvRow:
    """A record that does not have the number of cells of the header."""

    number: int
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class CsvFile:
    """An open CSV file: cells are bytes viewed as text, checked for UTF-8 by their consumer.

    `skipped` grows while batches are read. Records are numbered from 1 behind the header.
    """

    names: Sequence[str]
    batches: Iterator[pa.RecordBatch]
    skipped: list[BadCsvRow] = field(default_factory=list)


@contextmanager
def open_csv(stream: IO[bytes], dialect: CsvDialect) -> Iterator[CsvFile]:
    """Open a CSV file; an empty unquoted cell is null, a quoted one is empty text.

    Raises:
        UnreadableInput: the file has no header, or its header is not UTF-8. Reading batches raises
            it where a quoted cell is not closed.
    """
    try:
        head = stream.read(HEADER_BYTES)
    except READ_ERRORS as error:
        raise UnreadableInput(describe_read_error(error)) from error
    names = _first_record(head, dialect)
    input_ = _CsvInput(head, stream, dialect.delimiter.join([_END_MARKER] * len(names)).encode())
    skipped: list[BadCsvRow] = []
    reader = _open_arrow_reader(input_, len(names), dialect, skipped)
    batches = _strip_end_marker(reader, skipped)
    try:
        yield CsvFile(names, batches, skipped)
    finally:
        batches.close()
        input_.stop()
        _drain(reader)


def _open_arrow_reader(
    input_: _CsvInput, columns: int, dialect: CsvDialect, skipped: list[BadCsvRow]
) -> pa_csv.CSVStreamingReader:
    def skip(row: pa_csv.InvalidRow) -> str:
        reason = f"expected {row.expected_columns} cells, got {row.actual_columns}"
        skipped.append(BadCsvRow(row.number - dialect.header, reason, row.text))
        return "skip"

    names = [str(number) for number in range(columns)]
    try:
        return pa_csv.open_csv(
            io.BufferedReader(input_),
            read_options=pa_csv.ReadOptions(
                use_threads=False,  # only then are bad rows numbered
                block_size=CHUNK_BYTES,
                column_names=names,
                skip_rows_after_names=int(dialect.header),
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char=dialect.quote,
                newlines_in_values=True,
                invalid_row_handler=skip,
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.binary()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except READ_ERRORS as error:
        input_.stop()
        raise UnreadableInput(_error_reason(error)) from error


def _first_record(head: bytes, dialect: CsvDialect) -> list[str]:
    # Bytes that are not UTF-8 may follow the header: they are reported with their row.
    text = io.StringIO(head.decode("utf-8-sig", "surrogateescape"), newline="")
    records = csv.reader(text, delimiter=dialect.delimiter, quotechar=dialect.quote)
    names = next(records, [])
    if not names:
        first = "name the columns" if dialect.header else "have cells"
        raise UnreadableInput(f"the file is empty; its first line should {first}")
    if not dialect.header:
        return [f"_c{number}" for number in range(len(names))]
    for name in names:
        if not is_unicode(name):
            message = "the header is not UTF-8; give its encoding, such as latin-1"
            raise UnreadableInput(message)
    # Data frames are often written with an index that has no name; Spark names it like this, too.
    return [name or f"_c{number}" for number, name in enumerate(names)]


def is_unicode(text: str) -> bool:
    """Return whether text has no half of a surrogate pair, so that it can be stored as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _strip_end_marker(
    reader: pa_csv.CSVStreamingReader, skipped: list[BadCsvRow]
) -> Generator[pa.RecordBatch, None, None]:
    """Yield batches without the appended record; raise UnreadableInput if it was swallowed."""
    before: pa.RecordBatch | None = None
    rows = 0
    for batch in _parse_batches(reader):
        if before is not None:
            yield _as_text(before)
        if batch.num_rows:
            before = batch
            rows += batch.num_rows
    last = None if before is None else before.slice(before.num_rows - 1)
    if last is None or any(column[0].as_py() != _END_MARKER.encode() for column in last.columns):
        number = max(
            [rows + len(skipped), *(bad.number for bad in skipped if _END_MARKER in bad.text)]
        )
        skipped[:] = [bad for bad in skipped if _END_MARKER not in bad.text]
        raise UnreadableInput(f"row {number}: a quoted cell is not closed")
    assert before is not None, "it has a last row"
    yield _as_text(before.slice(0, before.num_rows - 1))


def _parse_batches(reader: pa_csv.CSVStreamingReader) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    except READ_ERRORS as error:
        raise UnreadableInput(_error_reason(error)) from error


def _error_reason(error: Exception) -> str:
    # Arrow cannot report a bad row whose text is not UTF-8.
    match = _BAD_ROW.search(str(error))
    if match is None:
        return describe_read_error(error)
    number, expected, got = match.groups()
    return f"row {int(number) - 1}: expected {expected} cells, got {got}, not all of them UTF-8"


def _as_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [column.view(pa.string()) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _drain(reader: pa_csv.CSVStreamingReader) -> None:
    """Read on until the thread that reads ahead is done; the input ends at once."""
    while True:
        try:
            reader.read_next_batch()
        except StopIteration:
            break
        except READ_ERRORS:
            break
    reader.close()


class _CsvInput(io.RawIOBase):
    """The beginning of a stream that was read already, the rest of it, and one more record."""

    def __init__(self, head: bytes, rest: IO[bytes], end: bytes) -> None:
        super().__init__()
        self._parts: list[IO[bytes]] = [io.BytesIO(head), rest, io.BytesIO(b"\n" + end + b"\n")]

    def readable(self) -> bool:
        return True

    def stop(self) -> None:
        """End here: whatever is read from now on is empty."""
        self._parts = []

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
        parts = self._parts
        while parts:
            data = parts[0].read(len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)
            del parts[0]
        return 0
