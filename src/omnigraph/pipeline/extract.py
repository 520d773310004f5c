"""This module opens the sources of a pipeline as frames that know where their rows come from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from glob import glob, has_magic
from itertools import groupby
from pathlib import Path
from urllib.parse import unquote

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from ulid import ULID

from omnigraph.lang import Code
from omnigraph.pipeline.document import Text
from omnigraph.pipeline.model import FILE, ROW
from omnigraph.pipeline.spec import Pipeline, SourceSpec, mentioned
from omnigraph.pipeline.told import reason

CORRUPT = "@corrupt"
"""The column of text formats that holds what could not be read as a row."""
_NEVER = "\x01omnigraph\x01"
"""A text no cell has: cells that are empty are null, quoted empty ones are empty text."""
_PATH, _BLOCK, _COUNTED = "@path", "@block", "@counted"
_OPTIONS = {
    "parquet": {"mergeSchema": "true"},
    "csv": {
        "header": "true",
        "enforceSchema": "false",  # files with other columns are refused, not misread
        "columnPruning": "false",  # a row is whole or not, whoever asks for which cell
        "nullValue": _NEVER,
        "columnNameOfCorruptRecord": CORRUPT,
    },
    "json": {"columnNameOfCorruptRecord": CORRUPT},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """The rows of a source.

    `is_text` tells that cells are text to which properties give a meaning. `rows` is how many there
    are, where that is known, `broken` how many of them could not be read.
    """

    spec: SourceSpec
    frame: DataFrame
    columns: tuple[str, ...]
    is_text: bool = False
    is_placed: bool = False
    files: int = 0
    rows: int | None = None
    broken: int = 0


@dataclass(slots=True)
class Sources:
    """The sources of one pipeline, opened when first asked for."""

    pipeline: Pipeline
    spark: SparkSession
    files: list[tuple[str, str]] = field(default_factory=list)
    """What positions refer to: names of files, and whether rows or lines of them are counted."""
    _open: dict[str, Extracted | None] = field(default_factory=dict)
    _views: list[str] = field(default_factory=list)

    def get(self, name: str) -> Extracted | None:
        """Return a source; None when Spark cannot open it, which is then reported."""
        if name not in self._open:
            spec = self.pipeline.sources[name]
            try:
                self._open[name] = self._extract(spec)
            except (PySparkException, Py4JError) as error:
                self._open[name] = None
                place = spec.given[0] if spec.given else spec.name
                self._refuse(spec, place, reason(error))
        return self._open[name]

    def batches(self) -> list[str]:
        """Return the files of graph batches; a pattern without any is reported."""
        found: list[str] = []
        for spec in self.pipeline.sources.values():
            for path in spec.paths if spec.kind == "ndjson" else ():
                address = self.pipeline.address(path.value)
                files = sorted(glob(address)) if has_magic(address) else [address]
                missing = [file for file in files if not Path(file).is_file()]
                if missing or not files:
                    self._refuse(spec, path, f"there is no file {(missing or [address])[0]}")
                found += files
        return found

    def opened(self, name: str) -> Extracted | None:
        """Return a source if somebody asked for it."""
        return self._open.get(name)

    def close(self) -> None:
        """Forget the views that queries were asked over."""
        for view in self._views:
            self.spark.catalog.dropTempView(view)
        self._views.clear()

    def _extract(self, spec: SourceSpec) -> Extracted | None:
        match spec.kind:
            case "sql":
                return self._query(spec)
            case "parquet" | "csv" | "json":
                return self._files(spec)
            case "jdbc":
                return self._database(spec)
        paths = [self.pipeline.address(path.value) for path in spec.paths]
        reader = self._reader(spec, spec.given[0].value)
        frame = reader.load(paths[0] if len(paths) == 1 else paths) if paths else reader.load()
        return Extracted(spec=spec, frame=frame, columns=tuple(frame.columns))

    def _reader(self, spec: SourceSpec, word: str) -> DataFrameReader:
        reader = self.spark.read.format(word).options(**spec.options)
        return reader if spec.columns is None else reader.schema(spec.columns.value)

    def _database(self, spec: SourceSpec) -> Extracted:
        what = {"dbtable": spec.table} if spec.query is None else {"query": spec.query}
        options = {name: str(text) for name, text in what.items()}
        reader = self._reader(spec, "jdbc").option("url", spec.given[0].value).options(**options)
        frame = reader.load()
        return Extracted(spec=spec, frame=frame, columns=tuple(frame.columns))

    def _query(self, spec: SourceSpec) -> Extracted | None:
        """Ask a query over views with names of their own, so that nobody else's are replaced."""
        inner = {name: self.get(name) for name in mentioned(spec, self.pipeline.sources)}
        if None in inner.values():
            return None
        found = {name: source for name, source in inner.items() if source is not None}
        heads = []
        for name, source in found.items():
            view = f"omnigraph_{name}_{ULID()}".lower()
            whole_rows(source).select(*map(quoted, source.columns)).createTempView(view)
            self._views.append(view)
            heads.append(f"{quoted(name)} AS (SELECT * FROM {quoted(view)})")
        text = spec.given[0].value.strip().removesuffix(";")
        head = f"WITH {', '.join(heads)} " if heads else ""
        frame = self.spark.sql(f"{head}SELECT * FROM (\n{text}\n)")
        is_text = any(source.is_text for source in found.values())
        return Extracted(spec=spec, frame=frame, columns=tuple(frame.columns), is_text=is_text)

    def _files(self, spec: SourceSpec) -> Extracted:
        paths = [self.pipeline.address(path.value) for path in spec.paths]
        ours = {**_OPTIONS[spec.kind], **spec.options}
        reader = self._reader(spec, spec.kind).options(**ours)
        frame = reader.load(paths)
        names = [_plain(file) for file in frame.inputFiles()]
        columns = tuple(name for name in frame.columns if name != CORRUPT)
        if spec.kind != "parquet" and CORRUPT not in frame.columns:
            frame = reader.schema(frame.schema.add(CORRUPT, "string")).load(paths)
        first = len(self.files)
        self.files += [(unquote(name), "row") for name in names]
        numbers = {name: first + number for number, name in enumerate(names)}
        if spec.kind == "parquet":
            placed, rows, broken = self._by_row_index(frame, numbers), frame.count(), 0
        else:
            placed, rows, broken = self._by_counting(frame, numbers)
        return Extracted(
            spec=spec,
            frame=placed,
            columns=columns,
            is_text=spec.kind == "csv",
            is_placed=True,
            files=len(names),
            rows=rows,
            broken=broken,
        )

    def _by_row_index(self, frame: DataFrame, numbers: Mapping[str, int]) -> DataFrame:
        """Number rows as Parquet itself does."""
        at = (F.col("_metadata.row_index") + 1).alias(ROW)
        named = frame.select("*", _path().alias(_PATH), at)
        known = self.spark.createDataFrame(
            [*numbers.items()] or [("", 0)], f"`{_PATH}` string, `{FILE}` int"
        )
        return named.join(F.broadcast(known), _PATH).drop(_PATH)

    def _by_counting(
        self, frame: DataFrame, numbers: Mapping[str, int]
    ) -> tuple[DataFrame, int, int]:
        """Number rows by counting once how many stand before each piece that is read at a time.

        Also tells how many rows there are, and how many of them could not be read.
        """
        counted = frame.select(
            "*",
            _path().alias(_PATH),
            F.col("_metadata.file_block_start").alias(_BLOCK),
            F.monotonically_increasing_id().alias(_COUNTED),
        )
        others = [F.col(quoted(name)) for name in frame.columns if name != CORRUPT]
        pieces = (
            counted.groupBy(quoted(_PATH), quoted(_BLOCK))
            .agg(
                F.min(quoted(_COUNTED)),
                F.count(F.lit(1)),
                F.count(quoted(CORRUPT)),
                # What could not be read is only told to who also asks for what could.
                F.max(F.hash(*others) if others else F.lit(0)),
            )
            .collect()
        )
        shifts = []
        for path, group in groupby(sorted(pieces), key=lambda piece: piece[0]):
            before = 0
            for _, block, first, rows, *_ in group:
                shifts.append((path, block, numbers[path], before + 1 - first))
                before += rows
        kinds = f"`{_PATH}` string, `{_BLOCK}` long, `{FILE}` int, `@shift` long"
        known = self.spark.createDataFrame(shifts or [("", 0, 0, 0)], kinds)
        at = (F.col(quoted(_COUNTED)) + F.col("`@shift`")).alias(ROW)
        joined = counted.join(F.broadcast(known), [_PATH, _BLOCK])
        kept = [F.col(quoted(name)) for name in (*frame.columns, FILE)]
        rows, broken = (sum(piece[place] for piece in pieces) for place in (3, 4))
        return joined.select(*kept, at), rows, broken

    def _refuse(self, spec: SourceSpec, place: Text, why: str) -> None:
        message = f"source `{spec.name}`: {why}"
        self.pipeline.report.add(Code.PIPELINE_SOURCE_UNREADABLE, message, place.span)


def whole_rows(source: Extracted) -> DataFrame:
    """Return the rows of a source that could be read."""
    if CORRUPT not in source.frame.columns:
        return source.frame
    return source.frame.where(F.col(quoted(CORRUPT)).isNull())


def quoted(name: str) -> str:
    """Return a name as it stands in SQL."""
    return "`" + name.replace("`", "``") + "`"


def _path() -> Column:
    return F.regexp_replace(F.col("_metadata.file_path"), "^file:/+", "/")


def _plain(file: str) -> str:
    return re.sub("^file:/+", "/", file)
