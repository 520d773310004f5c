"""Check the sources of a pipeline without Spark: that files exist, and which columns they have.

Only what costs nothing is read: the header of a CSV file, the schema of Parquet files, the first
line of a graph batch. `omnigraph pipeline plan` opens everything.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from glob import glob, has_magic
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.catalog import Catalog, EdgeType, TypeKind
from omnigraph.lang import Code, DiagnosticReport, TextSpan, did_you_mean
from omnigraph.pipeline.config.document import LocatedText
from omnigraph.pipeline.config.resolve import report_types, type_of
from omnigraph.pipeline.config.spec import Pipeline, PipelineError, SourceSpec, TypeSpec
from omnigraph.write.inputs.byte_streams import check_encoding

MAX_FILES = 32
"""Parquet files whose schemas are read; of more, columns are not checked."""
_MAX_LINE = 1024 * 1024
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:/")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|`[^`.]+`")
_CONSTANTS = frozenset(
    {
        *("null", "true", "false", "user", "current_user", "session_user", "localtimestamp"),
        *("current_date", "current_time", "current_timestamp"),
        *("current_catalog", "current_schema", "current_database"),
    }
)
_CSV_OPTIONS = frozenset(
    {
        *("sep", "delimiter", "header", "quote", "escape", "multiline", "linesep", "mode"),
        *("nullvalue", "emptyvalue", "dateformat", "timestampformat", "timestampntzformat"),
    }
)
_ENDS = {"from": ("from", "src"), "to": ("to", "dst")}


class _NotChecked(Exception):
    """A source that cannot be checked without Spark; the message says why."""


@dataclass(frozen=True, slots=True)
class _CheckedSource:
    spec: SourceSpec
    columns: tuple[str, ...]


def check_pipeline(pipeline: Pipeline, catalog: Catalog) -> Pipeline:
    """Return a pipeline whose types and sources were checked as far as that needs no Spark.

    Raises:
        PipelineError: with everything that was found.
    """
    report_types(pipeline, catalog)
    unchecked = check_sources(pipeline, catalog)
    if pipeline.report.errors:
        raise PipelineError(pipeline.report.sorted())
    return replace(pipeline, unchecked=unchecked)


def check_sources(pipeline: Pipeline, catalog: Catalog) -> dict[str, str]:
    """Report missing files and unknown columns; return why other sources were not checked."""
    unchecked: dict[str, str] = {}
    columns: dict[str, _CheckedSource] = {}
    for name, spec in pipeline.sources.items():
        try:
            found = _columns(pipeline, spec, catalog)
        except _NotChecked as error:
            unchecked[name] = str(error)
        else:
            columns |= {} if found is None else {name: _CheckedSource(spec, found)}
    for type_spec in pipeline.types:
        source = columns.get(type_spec.source.value)
        if source is not None:
            _check_mapping(pipeline.report, type_spec, source, catalog)
    return unchecked


def _columns(pipeline: Pipeline, spec: SourceSpec, catalog: Catalog) -> tuple[str, ...] | None:
    """Return the columns of a source; None when it has none or a mistake was reported."""
    if spec.kind not in ("parquet", "csv", "json", "ndjson"):
        raise _NotChecked(
            {"sql": "query", "jdbc": "database", "table": "table"}.get(spec.kind, "other format")
        )
    if (pipeline.spark.master or os.environ.get("SPARK_REMOTE", "")).startswith("sc://"):
        raise _NotChecked("Spark server")
    files = [file for path in spec.paths for file in _files(pipeline, spec, path)]
    if not files:
        return None
    if spec.kind == "ndjson":
        _check_batch(pipeline, spec, files[0], catalog)
        return None
    if spec.columns is not None:
        raise _NotChecked("declared columns")
    if spec.kind == "json":
        raise _NotChecked("columns of JSON")
    try:
        return _header(spec, files[0]) if spec.kind == "csv" else _schema(files)
    except (OSError, pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
        _refuse(pipeline, spec, spec.paths[0].span, f"cannot read {files[0]}: {error}")
        return None


def _files(pipeline: Pipeline, spec: SourceSpec, path: LocatedText) -> list[Path]:
    """Return the files a path stands for; a path without any is reported."""
    address = re.sub("^file:/+", "/", pipeline.address(path.value))
    if _SCHEME.match(address):
        raise _NotChecked("remote files")
    if "{" in address:
        raise _NotChecked("pattern with braces")
    found = sorted(glob(address)) if has_magic(address) else [address]
    files = [file for text in found for file in _list_files(Path(text))]
    if not files:
        _refuse(pipeline, spec, path.span, f"file {address} does not exist")
    return files


def _list_files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield from [path] if path.is_file() else []
        return
    for inner in sorted(path.iterdir()):
        if inner.name.startswith(("_", ".")):
            continue
        if inner.is_dir():
            raise _NotChecked("partitions")
        yield inner


def _header(spec: SourceSpec, file: Path) -> tuple[str, ...]:
    options = {name.lower(): value for name, value in spec.options.items()}
    separator = options.get("sep", options.get("delimiter", ","))
    quote = options.get("quote", '"')
    if set(options) - _CSV_OPTIONS or len(separator) != 1 or len(quote) != 1:
        raise _NotChecked("options of the CSV reader")
    if file.suffix not in ("", ".csv", ".tsv", ".txt"):
        raise _NotChecked("compressed")
    encoding = None if spec.encoding is None else check_encoding(spec.encoding.value)
    with file.open(encoding=encoding or "utf-8-sig", newline="") as text:
        cells = next(csv.reader(text, delimiter=separator, quotechar=quote), [])
    if options.get("header", "true").lower() == "false":
        return tuple(f"_c{number}" for number in range(len(cells)))
    if not all(cells) or len({cell.lower() for cell in cells}) < len(cells):
        raise _NotChecked("empty or repeated names in the header")
    return tuple(cells)


def _schema(files: list[Path]) -> tuple[str, ...]:
    if len(files) > MAX_FILES:
        raise _NotChecked(f"more than {MAX_FILES} files")
    return tuple(dict.fromkeys(name for file in files for name in pq.read_schema(file).names))


def _check_batch(pipeline: Pipeline, spec: SourceSpec, file: Path, catalog: Catalog) -> None:
    """Report a graph batch whose first line is not an entity of a type of the graph."""
    if pipeline.on_violation != "fail" or file.suffix not in (".ndjson", ".jsonl", ".json"):
        return
    with file.open("rb") as lines:
        first = next((line for line in islice(lines, 1000) if line.strip()), b"{}")[:_MAX_LINE]
    try:
        entity: Any = json.loads(first)
    except ValueError:
        entity = None
    is_node = isinstance(entity, dict) and isinstance(entity.get("type"), str)
    if not is_node and not (isinstance(entity, dict) and isinstance(entity.get("edge"), str)):
        if first != b"{}":
            why = f"the first line of {file} is not an entity with `type` or `edge`"
            _refuse(pipeline, spec, spec.paths[0].span, why)
        return
    name = entity["type" if is_node else "edge"]
    known = catalog.nodes if is_node else {edge.lower(): edge for edge in catalog.edges}
    if (name if is_node else name.lower()) not in known:
        kind = TypeKind.NODE if is_node else TypeKind.EDGE
        message = f"the graph has no {kind} type `{name}`, used in the first line of {file}"
        hint = did_you_mean(name, catalog.nodes if is_node else catalog.edges)
        pipeline.report.add(Code.PIPELINE_UNKNOWN_TYPE, message, spec.paths[0].span, hint=hint)


def _refuse(pipeline: Pipeline, spec: SourceSpec, span: TextSpan, why: str) -> None:
    pipeline.report.add(
        Code.PIPELINE_SOURCE_UNREADABLE, f"source `{spec.name}`: {why}", span, hint=None
    )


# --- columns -----------------------------------------------------------------------------------


def _check_mapping(
    report: DiagnosticReport, spec: TypeSpec, source: _CheckedSource, catalog: Catalog
) -> None:
    """Report columns that a mapping names and its source does not have."""
    known = {name.lower() for name in source.columns}
    for text in _expressions(spec):
        name = text.value.strip()
        if _COLUMN.fullmatch(name) is None or name.lower() in _CONSTANTS:
            continue
        plain = name.strip("`")
        if plain.lower() not in known:
            message = f"source `{source.spec.name}` has no column `{plain}`"
            hint = did_you_mean(plain, source.columns)
            report.add(Code.PIPELINE_EXPRESSION, message, text.span, hint=hint)
    type_ = type_of(spec, catalog)
    if type_ is None:
        return
    if spec.properties is None:
        for property_ in type_.properties.values():
            needed = not property_.type.nullable and property_.embed is None
            if needed and property_.name not in source.columns:
                message = (
                    f"{spec.kind} `{spec.name}`: source `{source.spec.name}` has no column "
                    f"`{property_.name}`"
                )
                hint = did_you_mean(property_.name, source.columns)
                report.add(Code.PIPELINE_PROPERTY_MISSING, message, spec.source.span, hint=hint)
    if isinstance(type_, EdgeType):
        for word, end, node in (("from", spec.src, type_.src), ("to", spec.dst, type_.dst)):
            if end is None and not set(_ENDS[word]) & set(source.columns):
                message = f"edge `{spec.name}` has no `{word}`, and its source has no such column"
                hint = f"name the column with the id of the {node}: `{word}: EXPRESSION`"
                report.add(Code.PIPELINE_ENDPOINT_INVALID, message, spec.name.span, hint=hint)


def _expressions(spec: TypeSpec) -> Iterator[LocatedText]:
    """Yield every expression of a mapping over the columns of its source."""
    for _, text in (spec.properties or {}).values():
        yield text
    yield from (text for text in (spec.id, spec.where) if text is not None)
    for end in (spec.src, spec.dst):
        if isinstance(end, LocatedText):
            yield end
        elif isinstance(end, Mapping):
            yield from (text for _, text in end.values())
    if spec.dedupe is not None:
        yield from spec.dedupe.by
        if spec.dedupe.keep.expression is not None:
            yield spec.dedupe.keep.expression
