"""Read CSV and JSON sources on workers with the parsers of `load`, so that both read the same.

Spark only lists the files. A worker parses a whole CSV file, because a line break may be part of a
cell, and pieces of whole lines of a JSON file. A row that cannot be read is kept with its text and
the reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from omnigraph.errors import InvalidInput
from omnigraph.pipeline.load.model import FILE, ROW
from omnigraph.pipeline.sessions.tasks import map_tasks
from omnigraph.pipeline.sources.json_shapes import (
    MIXED,
    NOTHING,
    fit_value,
    infer_shape,
    merge_shapes,
    spark_type,
)
from omnigraph.pipeline.sources.splits import InputSplit, line_splits
from omnigraph.types import json_kind
from omnigraph.write.inputs.byte_streams import (
    UnreadableInput,
    check_encoding,
    open_source,
    read_chunks,
)
from omnigraph.write.inputs.csv_reader import CsvDialect, is_unicode, open_csv
from omnigraph.write.inputs.line_parser import (
    InvalidLine,
    OversizedLine,
    line_too_long_message,
    parse_line,
    read_line_blocks,
)
from omnigraph.write.inputs.table_reader import row_numbers
from omnigraph.write.progress import ProgressMeter
from omnigraph.write.violations import ViolationRule

CORRUPT, REASON, KINDS = "@corrupt", "@reason", "@kinds"
"""The text of a row that could not be read, why not, and the kinds of values that became text."""

SMALL_BYTES = 4 * 1024 * 1024
"""Files of up to this size in all are surveyed here, which takes less time than a job of Spark."""
_SURVEY = "number int, start long, found string"
_LINES = 4096
"""JSON lines that are parsed at a time."""


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How text is read; `names` are declared columns, all of them text at first."""

    kind: str
    dialect: CsvDialect = field(default_factory=CsvDialect)
    encoding: str | None = None
    names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class TextSlice:
    """A file, or some lines of one: `start` and `stop` are bytes, `before` lines before them."""

    number: int
    path: str
    start: int = 0
    stop: int | None = None
    before: int = 0


@dataclass(frozen=True, slots=True)
class TextSurvey:
    """What a first pass found: columns, with their types and those of several kinds, and counts."""

    schema: StructType
    shapes: Mapping[str, Any]
    rows: int
    broken: int
    pieces: tuple[TextSlice, ...]

    @property
    def mixed(self) -> frozenset[str]:
        """Members with values of several kinds."""
        return frozenset(name for name, shape in self.shapes.items() if shape == MIXED)


def slice_files(files: Sequence[str], first: int, form: TextFormat, size: int) -> list[TextSlice]:
    """Return files as pieces to be read at a time; those behind an address are read whole."""
    found = []
    for number, path in enumerate(files, first):
        whole = TextSlice(number, path)
        is_cut = form.kind == "json" and is_local(path) and check_encoding(form.encoding) is None
        spans = line_splits(path, size) if is_cut else []
        found += [replace(whole, start=start, stop=stop) for start, stop in spans] or [whole]
    return found


def is_local(path: str) -> bool:
    """Return whether workers open a path themselves; Spark reads all other addresses for them."""
    return path.startswith("/")


def survey_files(spark: SparkSession, pieces: Sequence[TextSlice], form: TextFormat) -> TextSurvey:
    """Read everything once; raise Broken when a file cannot be read as a whole."""
    look = _survey_csv if form.kind == "csv" else _survey_json

    def survey(piece: TextSlice, stream: IO[bytes]) -> dict[str, Any]:
        try:
            return look(stream, form)
        except UnreadableInput as error:
            return {"error": f"{piece.path}: {error}"}

    def run(piece: TextSlice, stream: IO[bytes]) -> Iterator[pa.RecordBatch]:
        number, start = pa.array([piece.number], pa.int32()), pa.array([piece.start], pa.int64())
        text = json.dumps(survey(piece, stream))
        yield pa.record_batch({"number": number, "start": start, "found": [text]})

    if _are_small(pieces):
        found = []
        for piece in pieces:
            try:
                with _opened(piece, form.encoding) as stream:
                    found.append(survey(piece, stream))
            except InvalidInput as error:
                raise UnreadableInput(error.message) from error
    else:
        rows = _map_slices(spark, pieces, form, run, _SURVEY).collect()
        by_place = {(row["number"], row["start"]): json.loads(row["found"]) for row in rows}
        found = [by_place[piece.number, piece.start] for piece in pieces]
    for one in found:
        if "error" in one:
            raise UnreadableInput(one["error"])
    shapes = _columns(pieces, found, form)
    columns = [StructField(name, spark_type(shape)) for name, shape in shapes.items()]
    return TextSurvey(
        schema=StructType(columns),
        shapes=shapes,
        rows=sum(one["rows"] for one in found),
        broken=sum(one["broken"] for one in found),
        pieces=_numbered(pieces, [one.get("lines", 0) for one in found]),
    )


def _are_small(pieces: Sequence[TextSlice]) -> bool:
    """Return whether all files are few bytes that this process can read."""
    paths = {piece.path for piece in pieces}
    try:
        return all(map(is_local, paths)) and sum(map(os.path.getsize, paths)) <= SMALL_BYTES
    except OSError:
        return False


def _columns(
    pieces: Sequence[TextSlice], found: Sequence[Mapping[str, Any]], form: TextFormat
) -> dict[str, Any]:
    """Return the shapes of columns; raise Broken when files differ in their columns."""
    if form.kind == "json":
        members: dict[str, Any] = {}
        for one in found:
            members = merge_shapes(members, one["members"]) if members else one["members"]
        return members if form.names is None else dict.fromkeys(form.names, MIXED)
    known = list(form.names) if form.names is not None else found[0]["names"] if found else []
    for piece, one in zip(pieces, found, strict=True):
        named = known if not form.dialect.header else one["names"]
        if named != known or len(one["names"]) != len(known):
            actual, expected = ", ".join(one["names"]), ", ".join(known)
            message = f"the header of {piece.path} is `{actual}`, expected `{expected}`"
            raise UnreadableInput(message)
    if len(set(known)) != len(known):
        twice = next(name for name in known if known.count(name) > 1)
        raise UnreadableInput(f"column `{twice}` occurs more than once in the header")
    return dict.fromkeys(known, "text")


def _numbered(pieces: Sequence[TextSlice], lines: Sequence[int]) -> tuple[TextSlice, ...]:
    made, before = [], dict.fromkeys((piece.number for piece in pieces), 0)
    for piece, count in zip(pieces, lines, strict=True):
        made.append(replace(piece, before=before[piece.number]))
        before[piece.number] += count
    return tuple(made)


def text_frame(spark: SparkSession, found: TextSurvey, form: TextFormat) -> DataFrame:
    """Return the rows of files, those that cannot be read among them, with their places."""
    more = [
        StructField(CORRUPT, StringType()),
        StructField(REASON, StringType()),
        StructField(KINDS, MapType(StringType(), StringType())),
        StructField(FILE, IntegerType()),
        StructField(ROW, LongType()),
    ]
    schema = StructType([*found.schema, *more])
    arrow = to_arrow_schema(schema, timezone="UTC")
    names = found.schema.names
    read = (
        partial(_csv_rows, form=form, names=names)
        if form.kind == "csv"
        else partial(_json_rows, found)
    )

    def run(piece: TextSlice, stream: IO[bytes]) -> Iterator[pa.RecordBatch]:
        for columns in read(stream):
            at = np.asarray(columns[ROW], np.int64) + piece.before
            files = pa.repeat(pa.scalar(piece.number, pa.int32()), len(at))
            made = {**columns, ROW: at, FILE: files}
            cells = [_array(made.get(one.name), one.type, len(at)) for one in arrow]
            yield pa.RecordBatch.from_arrays(cells, schema=arrow)

    return _map_slices(spark, found.pieces, form, run, schema)


def _array(cells: Any, kind: pa.DataType, count: int) -> pa.Array:  # noqa: ANN401 - cells
    if cells is None:
        return pa.nulls(count, kind)
    return cells if isinstance(cells, pa.Array) else pa.array(cells, kind)


# --- bytes -------------------------------------------------------------------------------------


def _map_slices(
    spark: SparkSession,
    pieces: Sequence[TextSlice],
    form: TextFormat,
    run: Callable[[TextSlice, IO[bytes]], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """Have workers read pieces as UTF-8."""
    here = [piece for piece in pieces if is_local(piece.path)]

    def local(piece: TextSlice) -> Iterator[pa.RecordBatch]:
        with _opened(piece, form.encoding) as stream:
            yield from run(piece, stream)

    frame = map_tasks(spark, here, local, schema)
    away = {piece.path: piece for piece in pieces if not is_local(piece.path)}
    if not away:
        return frame

    def remote(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path, content in zip(batch["path"], batch["content"], strict=True):
                with open_source(content.as_py(), ProgressMeter(), form.encoding) as stream:
                    yield from run(away[path.as_py()], stream)

    contents = spark.read.format("binaryFile").load(list(away)).select("path", "content")
    return frame.unionByName(contents.mapInArrow(remote, schema))


@contextmanager
def _opened(piece: TextSlice, encoding: str | None) -> Iterator[IO[bytes]]:
    if piece.stop is None:
        with open_source(piece.path, ProgressMeter(), encoding) as stream:
            yield stream
        return
    with InputSplit(piece.number, piece.path, None, piece.start, piece.stop).span() as span:
        yield cast(IO[bytes], span)


# --- CSV ---------------------------------------------------------------------------------------


def _survey_csv(stream: IO[bytes], form: TextFormat) -> dict[str, Any]:
    rows = broken = 0
    with open_csv(stream, form.dialect) as file:
        for batch in file.batches:
            rows += batch.num_rows
            broken += len(_not_utf8(batch, file.names))
        return {
            "names": list(file.names),
            "rows": rows + len(file.skipped),
            "broken": broken + len(file.skipped),
        }


def _csv_rows(
    stream: IO[bytes], form: TextFormat, names: Sequence[str]
) -> Iterator[dict[str, Any]]:
    with open_csv(stream, form.dialect) as file:
        if form.names is None and list(file.names) != list(names):
            header, before = ", ".join(file.names), ", ".join(names)
            message = f"the header changed from `{before}` to `{header}` while the pipeline ran"
            raise UnreadableInput(message)
        rows = 0
        for batch in file.batches:
            at = row_numbers(rows, batch.num_rows, file.skipped)
            rows += batch.num_rows
            bad = _not_utf8(batch, names)
            if bad:
                texts = [_csv_line(batch, row, form.dialect) for row in bad]
                yield _unreadable([int(at[row]) for row in bad], texts, list(bad.values()))
                kept = np.setdiff1d(np.arange(batch.num_rows), list(bad))
                batch, at = batch.take(pa.array(kept, pa.int64())), at[kept]
            yield {**dict(zip(names, batch.columns, strict=True)), ROW: at}
        bad_rows = file.skipped
        if bad_rows:
            yield _unreadable(
                [bad.number for bad in bad_rows],
                [bad.text for bad in bad_rows],
                [bad.reason for bad in bad_rows],
            )


def _unreadable(at: list[int], texts: list[str], reasons: list[str]) -> dict[str, Any]:
    return {ROW: at, CORRUPT: texts, REASON: reasons}


def _not_utf8(batch: pa.RecordBatch, names: Sequence[str]) -> dict[int, str]:
    """Return the rows with cells that are not UTF-8, and the reason."""
    found: dict[int, str] = {}
    for name, column in zip(names, batch.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            for row, cell in enumerate(column.view(pa.binary()).to_pylist()):
                try:
                    (cell or b"").decode()
                except UnicodeDecodeError as error:
                    why = f"{error.reason} at byte {error.start}"
                    found.setdefault(row, f"column `{name}`: text is not UTF-8: {why}")
    return dict(sorted(found.items()))


def _csv_line(batch: pa.RecordBatch, row: int, dialect: CsvDialect) -> str:
    """Return a row as a line of CSV; bytes that are not UTF-8 are shown as `\\xNN`."""
    cells = [column.view(pa.binary())[row].as_py() for column in batch.columns]
    texts = [(cell or b"").decode("utf-8", "backslashreplace") for cell in cells]
    quote = dialect.quote
    special = (dialect.delimiter, quote, "\n", "\r")
    return dialect.delimiter.join(
        quote + text.replace(quote, quote * 2) + quote if any(s in text for s in special) else text
        for text in texts
    )


# --- JSON --------------------------------------------------------------------------------------


def _survey_json(stream: IO[bytes], form: TextFormat) -> dict[str, Any]:
    del form
    members: dict[str, Any] = {}
    rows = broken = last = 0
    for number, line in _lines(stream):
        last = number
        if not line:
            continue
        rows += 1
        try:
            value = _object(line)
        except InvalidLine:
            broken += 1
            continue
        for name, member in value.items():
            members[name] = merge_shapes(members.get(name, NOTHING), infer_shape(member))
    return {"rows": rows, "broken": broken, "members": members, "lines": last}


def _json_rows(found: TextSurvey, stream: IO[bytes]) -> Iterator[dict[str, Any]]:
    good: list[tuple[int, dict[str, Any]]] = []
    bad: list[tuple[int, str, str]] = []
    for number, line in _lines(stream):
        if not line:
            continue
        try:
            good.append((number, _object(line)))
        except InvalidLine as problem:
            bad.append((number, line.decode("utf-8", "backslashreplace"), problem.message))
        if len(good) + len(bad) >= _LINES:
            yield from _build_rows(found, good, bad)
            good, bad = [], []
    yield from _build_rows(found, good, bad)


def _build_rows(
    found: TextSurvey, good: list[tuple[int, dict[str, Any]]], bad: list[tuple[int, str, str]]
) -> Iterator[dict[str, Any]]:
    if good:
        values = [value for _, value in good]
        columns: dict[str, Any] = {
            name: [fit_value(value.get(name), shape) for value in values]
            for name, shape in found.shapes.items()
        }
        if found.mixed:
            columns[KINDS] = [
                [(n, json_kind(v[n])) for n in found.mixed if v.get(n) is not None] for v in values
            ]
        yield {**columns, ROW: [number for number, _ in good]}
    if bad:
        numbers, texts, reasons = zip(*bad, strict=True)
        yield _unreadable(list(numbers), list(texts), list(reasons))


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield lines with their numbers; blank ones are empty."""
    for block in read_line_blocks(read_chunks(stream)):
        if isinstance(block, OversizedLine):
            yield block.line, b"\0"
            continue
        for number, line in enumerate(block.data.split(b"\n")[:-1], block.first):
            yield number, line.strip(b" \t\r\v\f")


def _object(line: bytes) -> dict[str, Any]:
    if line == b"\0":
        raise InvalidLine(ViolationRule.LINE_BYTES, line_too_long_message())
    value = parse_line(line)
    if not isinstance(value, dict):
        raise InvalidLine(ViolationRule.SYNTAX, f"expected an object, got {json_kind(value)}")
    if b"\\u" in line:
        for name, member in value.items():
            if not _is_unicode(name) or not _is_unicode(member):
                message = f"member `{name[:80]}`: text is not Unicode: half of a surrogate pair"
                raise InvalidLine(ViolationRule.VALUE, message.encode("utf-8", "replace").decode())
    return value


def _is_unicode(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    match value:
        case str():
            return is_unicode(value)
        case list():
            return all(map(_is_unicode, value))
        case dict():
            return all(_is_unicode(n) and _is_unicode(v) for n, v in value.items())
        case _:
            return True
