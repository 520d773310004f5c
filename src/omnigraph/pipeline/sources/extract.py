"""Open the sources of a pipeline as data frames with the file and row number of each row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from glob import glob, has_magic
from os.path import normpath
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StringType, StructType
from ulid import ULID

from omnigraph.lang import Code
from omnigraph.pipeline.config.document import LocatedText
from omnigraph.pipeline.config.spec import LISTING_OPTIONS, Pipeline, SourceSpec, referenced_sources
from omnigraph.pipeline.load.model import FILE, ROW
from omnigraph.pipeline.sessions.spark_errors import error_summary
from omnigraph.pipeline.sources.increments import Increments
from omnigraph.pipeline.sources.text_files import (
    CORRUPT,
    KINDS,
    REASON,
    TextFormat,
    is_local,
    slice_files,
    survey_files,
    text_frame,
)
from omnigraph.write.inputs.byte_streams import UnreadableInput
from omnigraph.write.inputs.csv_reader import CsvDialect

_PATH = "@path"
_GLOB = re.compile(r"[*?\[{]")
_OPTIONS = {
    "parquet": {"mergeSchema": "true"},
    # Spark's own readers of text must not skip what they cannot read.
    "csv": {"header": "true", "mode": "FAILFAST", "multiLine": "true", "escape": '"'},
    "json": {"mode": "FAILFAST"},
}
_FEW_FILES = 32
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFrame:
    """The rows of a source.

    `is_text` means that cells are text, parsed by the types of properties. `rows` is the number of
    rows, if known, `broken` the number of unreadable ones. `mixed` are columns of JSON with values
    of several kinds, which are read as text.
    """

    spec: SourceSpec
    frame: DataFrame
    columns: tuple[str, ...]
    is_text: bool = False
    is_placed: bool = False
    files: int = 0
    rows: int | None = None
    broken: int = 0
    mixed: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether there is no row, so that the columns are unknown."""
        return not self.columns and self.rows == self.broken


@dataclass(slots=True)
class SourceFrames:
    """The sources of one pipeline, opened on first use."""

    pipeline: Pipeline
    spark: SparkSession
    increments: Increments
    files: list[tuple[str, str]] = field(default_factory=list)
    """The inputs that positions refer to: file names, and whether rows or lines are counted."""
    states: dict[str, str | None] = field(default_factory=dict)
    """The size and time of each file before it was read; None for one that is not local."""
    _open: dict[str, SourceFrame | None] = field(default_factory=dict)
    _views: list[str] = field(default_factory=list)

    def get(self, name: str) -> SourceFrame | None:
        """Return a source; None when Spark cannot open it, which is then reported."""
        if name not in self._open:
            spec = self.pipeline.sources[name]
            try:
                self._open[name] = self._newest(spec, self._extract(spec))
            except (PySparkException, Py4JError, UnreadableInput) as error:
                self._open[name] = None
                place = spec.given[0] if spec.given else spec.name
                why = str(error) if isinstance(error, UnreadableInput) else error_summary(error)
                self._refuse(spec, place, why)
        return self._open[name]

    def _newest(self, spec: SourceSpec, source: SourceFrame | None) -> SourceFrame | None:
        """Return a source without the rows that were read before, if it has a cursor."""
        if source is None or source.is_empty or spec.incremental is None:
            return source
        if spec.incremental.cursor is None:
            return source
        frame, rows = self.increments.new_rows(spec, source.frame)
        return replace(source, frame=frame, rows=rows)

    def batches(self) -> list[str]:
        """Return the files of graph batches; a pattern without any is reported."""
        found: list[str] = []
        for spec in self.pipeline.sources.values():
            for path in spec.paths if spec.kind == "ndjson" else ():
                address = _plain(self.pipeline.address(path.value))
                if not is_local(address):
                    found += self._remote_files(spec, path, address)
                    continue
                files = sorted(glob(address)) if has_magic(address) else [address]
                missing = [file for file in files if not Path(file).is_file()]
                if missing or not files:
                    self._refuse(spec, path, f"file {(missing or [address])[0]} does not exist")
                found += files
        return found

    def _remote_files(self, spec: SourceSpec, path: LocatedText, address: str) -> list[str]:
        """Return the files of a remote address or pattern, as Spark lists them."""
        try:
            files = self.spark.read.format("binaryFile").load(address).inputFiles()
        except (PySparkException, Py4JError) as error:
            self._refuse(spec, path, error_summary(error))
            return []
        if not files:
            self._refuse(spec, path, f"file {address} does not exist")
        return sorted(unquote(file) for file in files)

    def opened(self, name: str) -> SourceFrame | None:
        """Return a source if it was opened."""
        return self._open.get(name)

    def close(self) -> None:
        """Drop the temporary views of queries."""
        for view in self._views:
            self.spark.catalog.dropTempView(view)
        self._views.clear()

    def _extract(self, spec: SourceSpec) -> SourceFrame | None:
        match spec.kind:
            case "sql":
                return self._query(spec)
            case "parquet":
                return self._parquet(spec)
            case "csv" | "json":
                return self._text(spec)
            case "jdbc":
                return self._database(spec)
            case "table":
                frame = self.spark.read.options(**spec.options).table(spec.given[0].value)
                return SourceFrame(spec=spec, frame=frame, columns=tuple(frame.columns))
        paths = [self.pipeline.address(path.value) for path in spec.paths]
        word = spec.given[0].value
        reader = self._reader(spec, word, _OPTIONS.get(word, {}))
        frame = reader.load(paths[0] if len(paths) == 1 else paths) if paths else reader.load()
        return SourceFrame(spec=spec, frame=frame, columns=tuple(frame.columns))

    def _reader(
        self, spec: SourceSpec, word: str, known: Mapping[str, str] = MappingProxyType({})
    ) -> DataFrameReader:
        reader = self.spark.read.format(word).options(**{**known, **spec.options})
        return reader if spec.columns is None else reader.schema(spec.columns.value)

    def _database(self, spec: SourceSpec) -> SourceFrame:
        what = {"dbtable": spec.table} if spec.query is None else {"query": spec.query}
        options = {name: str(text) for name, text in what.items()}
        reader = self._reader(spec, "jdbc").option("url", spec.given[0].value).options(**options)
        frame = reader.load()
        return SourceFrame(spec=spec, frame=frame, columns=tuple(frame.columns))

    def _query(self, spec: SourceSpec) -> SourceFrame | None:
        """Run a query over views with unique names, so that no other view is replaced."""
        inner = {name: self.get(name) for name in referenced_sources(spec, self.pipeline.sources)}
        if None in inner.values():
            return None
        found = {name: source for name, source in inner.items() if source is not None}
        heads = []
        for name, source in found.items():
            view = f"omnigraph_{name}_{ULID()}".lower()
            readable_rows(source).select(*map(quote_identifier, source.columns)).createTempView(
                view
            )
            self._views.append(view)
            heads.append(f"{quote_identifier(name)} AS (SELECT * FROM {quote_identifier(view)})")
        text = spec.given[0].value.strip().removesuffix(";")
        head = f"WITH {', '.join(heads)} " if heads else ""
        frame = self.spark.sql(f"{head}SELECT * FROM (\n{text}\n)")
        is_text = any(source.is_text for source in found.values())
        return SourceFrame(spec=spec, frame=frame, columns=tuple(frame.columns), is_text=is_text)

    def _parquet(self, spec: SourceSpec) -> SourceFrame:
        paths = [self.pipeline.address(path.value) for path in spec.paths]
        frame = self._reader(spec, spec.kind, _OPTIONS["parquet"]).load(paths)
        listed = files_in_order([_plain(file) for file in frame.inputFiles()], paths)
        names = self.increments.new_files(spec, paths, _listing(spec), listed)
        if len(names) < len(listed):
            frame = frame.where(_path().isin(names) if names else F.lit(False))
        first = self._register_files(names)
        numbers = {name: first + number for number, name in enumerate(names)}
        return SourceFrame(
            spec=spec,
            frame=self._by_row_index(frame, numbers),
            columns=tuple(frame.columns),
            is_placed=True,
            files=len(names),
            rows=_footer_rows([unquote(name) for name in names]) or frame.count(),
        )

    def _text(self, spec: SourceSpec) -> SourceFrame:
        """Read text with the parsers of `load`; Spark only lists the files."""
        paths = [self.pipeline.address(path.value) for path in spec.paths]
        listing = _listing(spec)
        listed = self.spark.read.format("text").options(**listing).load(paths)
        names = files_in_order([unquote(_plain(file)) for file in listed.inputFiles()], paths)
        names = self.increments.new_files(spec, paths, listing, names)
        declared = None
        if spec.columns is not None:
            declared = self.spark.createDataFrame([], spec.columns.value).schema
        form = text_format(spec, None if declared is None else declared.names)
        first = self._register_files(names)
        size = _bytes(str(self.spark.conf.get("spark.sql.files.maxPartitionBytes")))
        found = survey_files(self.spark, slice_files(names, first, form, size), form)
        frame = text_frame(self.spark, found, form)
        broken = found.broken
        if declared is not None:
            frame = _cast_declared(frame, declared)
            broken = frame.where(F.col(quote_identifier(CORRUPT)).isNotNull()).count()
        partitions = [name for name in listed.columns if name != "value"]
        if partitions:
            frame = self._with_partitions(frame, paths, listing, names, first)
        return SourceFrame(
            spec=spec,
            frame=frame,
            columns=(*found.schema.names, *partitions),
            is_text=spec.kind == "csv",
            is_placed=True,
            files=len(names),
            rows=found.rows,
            broken=broken,
            mixed=found.mixed if declared is None else frozenset(),
        )

    def _register_files(self, names: Sequence[str]) -> int:
        """Register the files of a source; return the number of the first."""
        first = len(self.files)
        self.files += [(unquote(name), "row") for name in names]
        for name in map(unquote, names):
            self.states.setdefault(name, file_state(name))
        return first

    def _with_partitions(
        self,
        frame: DataFrame,
        paths: Sequence[str],
        listing: Mapping[str, str],
        names: Sequence[str],
        first: int,
    ) -> DataFrame:
        """Add the columns that folders name, as in `day=2024-01-01/people.csv`."""
        files = self.spark.read.format("binaryFile").options(**listing).load([*paths])
        values = files.drop("modificationTime", "length", "content")
        numbers = [(name, number) for number, name in enumerate(names, first)]
        known = self.spark.createDataFrame(numbers, f"path string, `{FILE}` int")
        plain = F.regexp_replace("path", "^file:/+", "/")
        found = values.withColumn("path", plain).join(known, "path").drop("path")
        return frame.join(F.broadcast(found), FILE)

    def _by_row_index(self, frame: DataFrame, numbers: Mapping[str, int]) -> DataFrame:
        """Number rows as Parquet itself does."""
        at = (F.col("_metadata.row_index") + 1).alias(ROW)
        named = frame.select("*", _path().alias(_PATH), at)
        known = self.spark.createDataFrame(
            [*numbers.items()] or [("", 0)], f"`{_PATH}` string, `{FILE}` int"
        )
        return named.join(F.broadcast(known), _PATH).drop(_PATH)

    def _refuse(self, spec: SourceSpec, place: LocatedText, why: str) -> None:
        message = f"source `{spec.name}`: {why}"
        self.pipeline.report.add(Code.PIPELINE_SOURCE_UNREADABLE, message, place.span)


def file_state(name: str) -> str | None:
    """Return the size and time of a local file, None for any other."""
    try:
        found = Path(name).stat()
    except OSError:
        return None
    return f"{found.st_size}\0{found.st_mtime_ns}"


def readable_rows(source: SourceFrame) -> DataFrame:
    """Return the rows of a source that could be read."""
    if CORRUPT not in source.frame.columns:
        return source.frame
    return source.frame.where(F.col(quote_identifier(CORRUPT)).isNull())


def _footer_rows(files: Sequence[str]) -> int | None:
    """Return the rows of some Parquet files, without a job of Spark; None if it has to count."""
    if len(files) > _FEW_FILES or not all(map(is_local, files)):
        return None
    try:
        return sum(int(pq.read_metadata(file).num_rows) for file in files)
    except (OSError, pa.ArrowException):
        return None


def _cast_declared(frame: DataFrame, schema: StructType) -> DataFrame:
    """Cast text to the types that a pipeline declares; values that do not fit are unreadable."""
    typed, wrong = [], []
    for one in schema:
        column = F.col(quote_identifier(one.name))
        made, fails = column, F.lit(False)
        if isinstance(one.dataType, ArrayType | StructType | MapType):
            made = F.from_json(column, one.dataType)
            # Without this mode, a member that does not fit is null. See guards.py.
            strict = F.from_json(column, one.dataType, {"mode": "FAILFAST"})
            fails = F.try_to_binary(F.to_json(strict), F.lit("utf-8")).isNull()
        elif not isinstance(one.dataType, StringType):
            made = column.try_cast(one.dataType)
            fails = made.isNull()
        typed.append(made.alias(one.name))
        reason = F.lit(f"column `{one.name}`: expected {one.dataType.simpleString()}, got ")
        wrong.append(F.when(column.isNotNull() & fails, F.concat(reason, column)))
    reasons = F.coalesce(F.col(quote_identifier(REASON)), *wrong)
    text = F.to_json(F.struct(*(F.col(quote_identifier(name)) for name in schema.names)))
    corrupt = F.when(reasons.isNotNull(), F.coalesce(F.col(quote_identifier(CORRUPT)), text))
    kept = [F.col(quote_identifier(name)) for name in (KINDS, FILE, ROW)]
    return frame.select(*typed, corrupt.alias(CORRUPT), reasons.alias(REASON), *kept)


def text_format(spec: SourceSpec, names: Sequence[str] | None = None) -> TextFormat:
    """Return how the text of a source is read."""
    options = {name.lower(): value for name, value in spec.options.items()}
    delimiter = options.get("delimiter", options.get("sep", ","))
    encoding = None if spec.encoding is None else spec.encoding.value
    return TextFormat(
        kind=spec.kind,
        dialect=CsvDialect(
            delimiter="\t" if delimiter == "\\t" else delimiter,
            quote=options.get("quote", '"'),
            header=options.get("header", "true").lower() != "false",
        ),
        encoding=encoding or options.get("encoding", options.get("charset")),
        names=None if names is None else tuple(names),
    )


def _listing(spec: SourceSpec) -> dict[str, str]:
    """Return the options by which Spark lists files."""
    return {name: spec.options[name] for name in LISTING_OPTIONS if name in spec.options}


def _bytes(text: str) -> int:
    """Return a size as Spark writes it: `134217728b`, `128MB`."""
    match = re.fullmatch(r"(\d+)\s*([kmg]?)i?b?", text.strip().lower())
    return int(match[1]) * _UNITS.get(match[2], 1) if match is not None else 128 << 20


def quote_identifier(name: str) -> str:
    """Quote a name for SQL."""
    return "`" + name.replace("`", "``") + "`"


def _path() -> Column:
    return F.regexp_replace(F.col("_metadata.file_path"), "^file:/+", "/")


def _plain(file: str) -> str:
    return re.sub("^file:/+", "/", file)


def files_in_order(files: Sequence[str], paths: Sequence[str]) -> list[str]:
    """Return files in the order of their paths, those of a folder or pattern by name.

    Spark lists more than a few files in no order, but the positions of rows depend on it.
    """
    wanted = [normpath(_plain(path)) if is_local(_plain(path)) else path for path in paths]
    exact = {path: number for number, path in reversed(list(enumerate(wanted)))}
    starts = [
        (_GLOB.split(path)[0] if _GLOB.search(path) else f"{path.rstrip('/')}/", number)
        for number, path in enumerate(wanted)
    ]

    def place(file: str) -> tuple[int, list[str]]:
        name = unquote(file)
        number = exact.get(file, exact.get(name))
        if number is None:
            found = (number for start, number in starts if name.startswith(start))
            number = next(found, len(starts))
        return number, name.split("/")

    return sorted(files, key=place)
