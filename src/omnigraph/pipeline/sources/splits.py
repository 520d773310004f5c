"""Split the inputs of a load into parts that workers read independently.

A part is a range of whole lines or row groups, so that each is read by the readers of whole files,
and every row keeps its line or row number.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, cast

import pyarrow.parquet as pq

from omnigraph.catalog import TypeKind
from omnigraph.write.inputs.byte_streams import (
    READ_ERRORS,
    check_encoding,
    is_compressed,
    open_input_file,
)
from omnigraph.write.inputs.ndjson_reader import read_ndjson
from omnigraph.write.inputs.sources import (
    check_source,
    find_named_schema,
    read_sources,
    read_table_file,
)
from omnigraph.write.inputs.table_reader import table_files
from omnigraph.write.progress import ProgressMeter
from omnigraph.write.row_builder import RowBuilder

SPLIT_BYTES = 64 * 1024 * 1024
"""About how many bytes of a file one worker reads at a time."""

_PARQUET = (".parquet", ".pq")
_READ = 1024 * 1024


@dataclass(frozen=True, slots=True)
class InputSplit:
    """Some rows of one file: the `number`th of all inputs.

    Lines have no `table_key`; `start` and `stop` are bytes. Tables have one; `start` and `stop` are
    row groups, if the file is cut at all. `before` is how many lines come before. `encoding` is
    that of text, UTF-8 by default.
    """

    number: int
    path: str
    table_key: str | None
    start: int = 0
    stop: int | None = None
    before: int = 0
    encoding: str | None = None

    def read(self, intake: RowBuilder, meter: ProgressMeter) -> None:
        """Read the rows."""
        intake.encoding = self.encoding
        if self.table_key is None:
            if self.stop is None:
                read_ndjson(self.path, intake, meter, before=self.before)
            else:
                with self.span() as span:
                    read_ndjson(cast(IO[bytes], span), intake, meter, before=self.before)
            return
        groups = None if self.stop is None else range(self.start, self.stop)
        shape = intake.shape(*_kind_and_name(self.table_key))
        read_table_file(Path(self.path), shape, intake, meter, groups)

    def span(self) -> _ByteRangeFile:
        """Return the bytes as a stream."""
        assert self.stop is not None, "only a piece of a file is a span"
        return _ByteRangeFile(self.path, self.start, self.stop)


@dataclass(frozen=True, slots=True)
class InputSplits:
    """Everything to load: parts for workers, and what only this process can read.

    `here` are readers of what has no path, with the number of the first input each opens; `files`
    are the names and units of all inputs, by number; `touched` the types that were named.
    """

    parts: tuple[InputSplit, ...] = ()
    here: tuple[tuple[int, Callable[[RowBuilder, ProgressMeter], None]], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    touched: tuple[str, ...] = ()


def split_inputs(
    data: Any,  # noqa: ANN401 - input of the caller
    intake: RowBuilder,
    *,
    strict: bool,
    after: Sequence[tuple[str, str]] = (),
) -> InputSplits:
    """Split the input into parts; `intake` is only used for the types.

    Inputs are numbered on from those they come `after`.
    """
    if not strict:
        # The older grammar lets later lines change what earlier ones mean.
        return _unsplit(_read_everything(data, intake.encoding, strict=False))
    cutting = _InputSplitter(SPLIT_BYTES, after, intake.encoding)
    if isinstance(data, Mapping):
        shapes = [(find_named_schema(str(name), intake), given) for name, given in data.items()]
        for shape, given in shapes:
            cutting.typed(shape.table_key, given)
    else:
        for source in data if isinstance(data, list | tuple) else [data]:
            check_source(source)
            cutting.lines(source)
    return cutting.sources()


def _read_everything(
    data: Any,  # noqa: ANN401 - input of the caller
    encoding: str | None,
    *,
    strict: bool = True,
) -> Callable[[RowBuilder, ProgressMeter], None]:
    """Return what reads everything in this process."""

    def read(intake: RowBuilder, meter: ProgressMeter) -> None:
        intake.encoding = encoding
        read_sources(data, intake, meter, strict=strict)

    return read


def _unsplit(read: Callable[[RowBuilder, ProgressMeter], None]) -> InputSplits:
    return InputSplits(here=((0, read),))


class _InputSplitter:
    """Cuts one input after the other."""

    def __init__(
        self, part_bytes: int, before: Sequence[tuple[str, str]], encoding: str | None
    ) -> None:
        self._bytes = part_bytes
        self._encoding = encoding
        self._parts: list[InputSplit] = []
        self._here: list[tuple[int, Callable[[RowBuilder, ProgressMeter], None]]] = []
        self._files = list(before)
        self._touched: dict[str, None] = {}

    def sources(self) -> InputSplits:
        return InputSplits(
            tuple(self._parts), tuple(self._here), tuple(self._files), tuple(self._touched)
        )

    def lines(self, source: Any) -> None:  # noqa: ANN401 - input of the caller
        number = len(self._files)
        if not isinstance(source, str | os.PathLike):
            self._here.append((number, _read_everything(source, self._encoding)))
            self._files.append(("", "line"))
            return
        path = os.fspath(source)
        self._files.append((path, "line"))
        whole = InputSplit(number, path, None, encoding=self._encoding)
        # The byte of a newline may be half of another character elsewhere.
        spans = line_splits(path, self._bytes) if check_encoding(self._encoding) is None else []
        self._parts += [replace(whole, start=start, stop=stop) for start, stop in spans] or [whole]

    def typed(self, table_key: str, given: Any) -> None:  # noqa: ANN401 - input of the caller
        self._touched[table_key] = None
        if isinstance(given, list | tuple) and given and isinstance(given[0], str | os.PathLike):
            for path in given:
                self.typed(table_key, path)
            return
        if isinstance(given, str | os.PathLike):
            for file in table_files(given):
                self._table(table_key, file)
            return
        number = len(self._files)
        self._here.append((number, _read_everything({table_key: given}, self._encoding)))
        self._files.append((table_key.partition(":")[2], "row"))

    def _table(self, table_key: str, file: Path) -> None:
        whole = InputSplit(len(self._files), str(file), table_key, encoding=self._encoding)
        self._files.append((str(file), "row"))
        self._parts += [
            replace(whole, start=groups.start, stop=groups.stop)
            for groups in _row_group_splits(file, self._bytes)
        ] or [whole]


def line_splits(path: str, size: int) -> list[tuple[int, int]]:
    """Return where to cut a file between lines; nothing when it is to be read whole."""
    with open_input_file(path) as file:
        length = os.fstat(file.fileno()).st_size
        if length <= size or is_compressed(file.read(4)):
            return []
        ends = [0]
        while ends[-1] < length:
            ends.append(_end_of_line(file, min(ends[-1] + size, length), length))
    return list(pairwise(ends))


def _end_of_line(file: IO[bytes], at: int, length: int) -> int:
    """Return where the line ends that goes beyond a place."""
    file.seek(at - 1)
    while at < length:
        data = file.read(_READ)
        found = data.find(b"\n")
        if found >= 0:
            return min(file.tell() - len(data) + found + 1, length)
        at = file.tell()
        if not data:
            break
    return length


def _row_group_splits(path: Path, size: int) -> list[range]:
    """Return row groups of a Parquet file to be read together; nothing when it is not cut."""
    if path.suffix.lower() not in _PARQUET:
        return []
    try:
        with open_input_file(path) as file:
            metadata = pq.read_metadata(file)
            sizes = [metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups)]
    except READ_ERRORS:
        return []  # the reader reports the error
    spans: list[range] = []
    start = held = 0
    for number, bytes_ in enumerate(sizes):
        held += bytes_
        if held >= size or number == len(sizes) - 1:
            spans.append(range(start, number + 1))
            start, held = number + 1, 0
    return spans if len(spans) > 1 else []


def number_lines(parts: Sequence[InputSplit], counts: Sequence[int]) -> tuple[InputSplit, ...]:
    """Return parts that know how many lines come before, from how many lines each has."""
    made: list[InputSplit] = []
    before: dict[int, int] = {}
    for part, count in zip(parts, counts, strict=True):
        made.append(replace(part, before=before.get(part.number, 0)))
        before[part.number] = before.get(part.number, 0) + count
    return tuple(made)


def count_lines(part: InputSplit) -> int:
    """Return how many lines a part of a file has."""
    with part.span() as stream:
        return sum(data.count(b"\n") for data in iter(lambda: stream.read(8 * _READ), b""))


class _ByteRangeFile(io.RawIOBase):
    """Some bytes of a file."""

    def __init__(self, path: str, start: int, stop: int) -> None:
        super().__init__()
        self.name = path
        self._left = stop - start
        self._file = open(path, "rb")  # noqa: SIM115 - closed with this stream
        self._file.seek(start)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
        data = self._file.read(min(len(buffer), self._left))
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def _kind_and_name(table_key: str) -> tuple[TypeKind, str]:
    kind, _, name = table_key.partition(":")
    return TypeKind(kind), name
