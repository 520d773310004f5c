"""Parse a pipeline file: what to load, from which sources, and how.

All problems of a file are reported together, each with its location. Nothing here needs Spark or a
graph; `resolve` checks a pipeline against the types of a graph.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from omnigraph.catalog import TypeKind
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang import (
    Code,
    DiagnosticError,
    DiagnosticReport,
    TextSpan,
    did_you_mean,
    report_for_bytes,
)
from omnigraph.pipeline.config.check_spec import CheckSpec, read_checks
from omnigraph.pipeline.config.document import (
    KeepRule,
    LocatedText,
    PipelineFileReader,
    PipelineSection,
    RejectLimit,
    compose_yaml,
    plain_entries,
)
from omnigraph.pipeline.config.fields import SOURCE_KINDS
from omnigraph.write.inputs.byte_streams import check_encoding

FILE_KINDS = ("parquet", "csv", "json", "ndjson")
"""Kinds of sources whose value is paths."""
LISTING_OPTIONS = (
    "pathGlobFilter",
    "recursiveFileLookup",
    "modifiedBefore",
    "modifiedAfter",
)
"""Options of sources of text by which Spark lists files."""
_TEXT_OPTIONS = {
    "csv": ("delimiter", "sep", "quote", "header", "encoding", "charset", *LISTING_OPTIONS),
    "json": ("encoding", "charset", *LISTING_OPTIONS),
}
_CHARACTERS = ("delimiter", "sep", "quote")
_COMPANION_FIELDS = {"path": "format", "query": "jdbc"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:/")


class PipelineError(DiagnosticError):
    """A pipeline file was refused."""


@dataclass(frozen=True, slots=True)
class IncrementalSpec:
    """What is new in a source: rows with a greater `cursor`, or else files not read before."""

    cursor: LocatedText | None
    span: TextSpan


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec:
    """Where rows come from; `kind` is the field that says what it is, `given` its value."""

    name: LocatedText
    kind: str
    given: tuple[LocatedText, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    columns: LocatedText | None = None
    paths: tuple[LocatedText, ...] = ()
    table: LocatedText | None = None
    query: LocatedText | None = None
    encoding: LocatedText | None = field(default=None, repr=False)
    incremental: IncrementalSpec | None = field(default=None, repr=False)


EdgeEndpoint: TypeAlias = LocatedText | Mapping[str, tuple[LocatedText, LocatedText]] | None
"""An id, or the properties of a key, each with its name; None is the column of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupeSpec:
    """Which rows are alike, and which of them stays."""

    by: tuple[LocatedText, ...] = ()
    keep: KeepRule = field(default_factory=KeepRule)
    span: TextSpan


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSpec:
    """How the rows of a source become entities of a type."""

    kind: TypeKind
    name: LocatedText
    source: LocatedText
    properties: Mapping[str, tuple[LocatedText, LocatedText]] | None = None
    id: LocatedText | None = None
    where: LocatedText | None = None
    dedupe: DedupeSpec | None = None
    embed: tuple[LocatedText, ...] = ()
    src: EdgeEndpoint = None
    dst: EdgeEndpoint = None
    operation: LocatedText | None = field(default=None, repr=False)
    delete_missing: bool = field(default=False, repr=False)

    @property
    def table_key(self) -> str:
        """`node:Person`, `edge:Knows`."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishSpec:
    """What the commit says, and what follows it."""

    message: str | None = None
    merge_into: str | None = None
    delete_branch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSpec:
    """The Spark session."""

    master: str | None = None
    memory: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLineageSpec:
    """Where OpenLineage events are sent."""

    namespace: str
    url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A pipeline file that was read."""

    report: DiagnosticReport = field(repr=False, compare=False)
    folder: Path
    name: str
    graph: str | None
    sources: Mapping[str, SourceSpec]
    types: tuple[TypeSpec, ...]
    mode: str = "merge"
    partial: bool = False
    vectors_from: str | None = field(default=None, repr=False)
    branch: str = "main"
    base: str | None = None
    on_violation: str = "fail"
    max_rejects: RejectLimit | None = None
    rejects: str | None = None
    publish: PublishSpec = field(default_factory=PublishSpec)
    spark: SparkSpec = field(default_factory=SparkSpec)
    checks: tuple[CheckSpec, ...] = field(default=(), repr=False)
    openlineage: OpenLineageSpec | None = field(default=None, repr=False)
    target: str | None = field(default=None, repr=False)
    """The target that was chosen."""
    select: tuple[str, ...] = field(default=(), repr=False)
    exclude: tuple[str, ...] = field(default=(), repr=False)
    """What the caller selected; `types` and `sources` are what is left."""
    unchecked: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Sources that `validate` did not look at, and why."""

    def address(self, text: str) -> str:
        """Return an address of the file; what is relative is meant from the file's folder."""
        if _SCHEME.match(text) or os.path.isabs(text):
            return text
        return str(self.folder / text)


@dataclass(frozen=True, slots=True)
class StoredPipeline:
    """The text of a pipeline file that is kept under a name, and the folder it is meant from."""

    name: str
    content: bytes
    folder: Path


PipelineSource: TypeAlias = str | os.PathLike[str] | StoredPipeline


def read_pipeline(
    path: PipelineSource,
    variables: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    target: str | None = None,
) -> Pipeline:
    """Read a pipeline file; raise PipelineError with all its problems.

    `variables` win over the environment, which wins over what the target and then the file says.
    """
    if isinstance(path, StoredPipeline):
        name = f"{path.name}.yaml"
        return _parsed(path.content, name, path.folder, variables, environment, target)
    found = Path(path)
    try:
        data = found.read_bytes()
    except OSError as error:
        message = f"cannot read the pipeline file {found}: {error.strerror or error}"
        raise NotFound(message, code="pipeline_file_unreadable", path=str(found)) from error
    return _parsed(data, str(path), found.resolve().parent, variables, environment, target)


def _parsed(
    data: bytes,
    name: str,
    folder: Path,
    variables: Mapping[str, str] | None,
    environment: Mapping[str, str] | None,
    target: str | None,
) -> Pipeline:
    report = report_for_bytes(data, name, Code.PIPELINE_UNREADABLE)
    pipeline = parse_pipeline(report, folder, variables, environment, target)
    if pipeline is None or report.errors:
        raise PipelineError(report.sorted())
    return pipeline


def parse_pipeline(
    report: DiagnosticReport,
    folder: Path,
    variables: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    target: str | None = None,
) -> Pipeline | None:
    """Read the text of a report as a pipeline; what is wrong goes into the report."""
    root = compose_yaml(report) if not report.errors else None
    if root is None:
        return None
    declared = dict(plain_entries(root, "variables"))
    values = declared
    if target is not None:
        values = {**declared, **dict(plain_entries(root, "targets", target, "variables"))}
    reader = PipelineFileReader(report, _values(values, variables or {}, environment), target)
    _check_set(report, declared, variables or {})
    top = reader.section(root, "pipeline", "the pipeline")
    assert top is not None, "a mapping was asked for"
    targets = {name.value: section for name, section in top.get("targets") or ()}
    _check_targets(reader, targets, declared, target)
    sources = {name.value: _source(reader, name, found) for name, found in top.get("sources") or ()}
    types = tuple(_types(reader, top))
    if "sources" in top.values and not sources and not report.errors:
        reader.report(Code.PIPELINE_FIELD_MISSING, "`sources` is empty", top.span)
    pipeline = _pipeline(report, folder, top, sources, types)
    pipeline = replace(pipeline, checks=read_checks(reader, top.get("checks") or ()))
    if target is not None:
        pipeline = _at_target(pipeline, target, targets[target])
    _check_uses(reader, pipeline)
    _check_together(reader, top, pipeline)
    return pipeline


def _check_targets(
    reader: PipelineFileReader,
    targets: Mapping[str, PipelineSection],
    declared: Mapping[str, str | None],
    chosen: str | None,
) -> None:
    """Report variables of targets that the file does not declare, and a target it does not have."""
    for section in targets.values():
        for name, text in (section.get("variables") or {}).items():
            if name not in declared:
                span = section.places["variables"] if text is None else text.span
                message = f"variable `{name}` is not declared"
                hint = did_you_mean(name, declared) or f"declare it: `variables: {{{name}: null}}`"
                reader.report(Code.PIPELINE_VARIABLE, message, span, hint)
    if chosen is not None and chosen not in targets:
        known = did_you_mean(chosen, targets) or "the file has no targets"
        message = f"target '{chosen}' is not declared: {known}"
        raise InvalidInput(message, code="pipeline_target_unknown", target=chosen)


def _at_target(pipeline: Pipeline, name: str, target: PipelineSection) -> Pipeline:
    """Return a pipeline with what a target says instead of the file."""
    branch = _values_of(target.get("branch"))
    return replace(
        pipeline,
        target=name,
        graph=_plain_text(target.get("graph")) or pipeline.graph,
        spark=replace(
            pipeline.spark, master=_plain_text(target.get("master")) or pipeline.spark.master
        ),
        branch=_plain_text(branch.get("name")) or pipeline.branch,
        base=_plain_text(branch.get("from")) or "main" if branch else pipeline.base,
    )


def _values(
    declared: Mapping[str, str | None],
    given: Mapping[str, str],
    environment: Mapping[str, str] | None,
) -> dict[str, str | None]:
    around = os.environ if environment is None else environment
    return {name: given.get(name, around.get(name, value)) for name, value in declared.items()}


def _check_set(
    report: DiagnosticReport, declared: Mapping[str, str | None], given: Mapping[str, str]
) -> None:
    for name in given:
        if name not in declared:
            hint = did_you_mean(name, declared) or f"declare it: `variables: {{{name}: VALUE}}`"
            message = f"--set {name}: the pipeline does not declare this variable"
            report.add(Code.PIPELINE_VARIABLE, message, hint=hint)


def _source(reader: PipelineFileReader, name: LocatedText, section: PipelineSection) -> SourceSpec:
    if _NAME.fullmatch(name.value) is None:
        message = f"`{name}` is not a valid source name: use letters, digits and `_`"
        reader.report(Code.PIPELINE_VALUE, message, name.span)
    kinds = [kind for kind in SOURCE_KINDS if kind in section.values]
    if "jdbc" in kinds:  # which has a table, too
        kinds = [kind for kind in kinds if kind != "table"]
    if len(kinds) != 1:
        words = ", ".join(f"`{kind}`" for kind in SOURCE_KINDS)
        code = Code.PIPELINE_CONTRADICTION if kinds else Code.PIPELINE_FIELD_MISSING
        reader.report(code, f"source `{name}` needs exactly one of {words}", name.span)
    kind = kinds[0] if kinds else ""
    for word, owner in _COMPANION_FIELDS.items():
        if kind and word in section.values and owner != kind:
            message = f"source `{name}`: `{word}` is valid with `{owner}` only, not with `{kind}`"
            reader.report(Code.PIPELINE_CONTRADICTION, message, name.span)
    if kind == "jdbc" and ("table" in section.values) == ("query" in section.values):
        message = f"source `{name}`: `jdbc` needs exactly one of `table` and `query`"
        reader.report(Code.PIPELINE_CONTRADICTION, message, name.span)
    if kind in ("sql", "ndjson", "table"):
        for word in ("columns", "options"):
            if word in section.values and (kind, word) != ("table", "options"):
                message = f"source `{name}`: `{word}` is not valid with `{kind}`"
                reader.report(Code.PIPELINE_CONTRADICTION, message, name.span)
    _check_text(reader, name, kind, section)
    given = section.get(kind) if kind else None
    texts = given if isinstance(given, tuple) else () if given is None else (given,)
    return SourceSpec(
        name=name,
        kind=kind,
        given=texts,
        options=_plain(section.get("options")),
        columns=section.get("columns"),
        paths=texts if kind in FILE_KINDS else section.get("path") or (),
        table=section.get("table") if kind == "jdbc" else None,
        query=section.get("query"),
        encoding=section.get("encoding"),
        incremental=_incremental(reader, name, kind, section.get("incremental")),
    )


def _incremental(
    reader: PipelineFileReader, name: LocatedText, kind: str, section: PipelineSection | None
) -> IncrementalSpec | None:
    if section is None:
        return None
    if ("cursor" in section.values) == ("files" in section.values):
        message = f"source `{name}`: `incremental` needs exactly one of `cursor` and `files`"
        reader.report(Code.PIPELINE_CONTRADICTION, message, section.span)
    elif kind == "ndjson":
        message = f"source `{name}`: `incremental` is not valid with `ndjson`"
        reader.report(Code.PIPELINE_CONTRADICTION, message, section.span)
    elif "files" in section.values and kind not in ("parquet", "csv", "json", ""):
        message = f"source `{name}`: `files` is valid with `parquet`, `csv` and `json` only"
        hint = "name an increasing column: `incremental: {cursor: updated_at}`"
        reader.report(Code.PIPELINE_CONTRADICTION, message, section.places["files"], hint)
    return IncrementalSpec(section.get("cursor"), section.span)


def _check_text(
    reader: PipelineFileReader, name: LocatedText, kind: str, section: PipelineSection
) -> None:
    """Check what says how text is read."""
    encoding = section.get("encoding")
    if encoding is not None and kind and kind not in _TEXT_OPTIONS:
        message = (
            f"source `{name}`: `encoding` is valid with `csv` and `json` only, not with `{kind}`"
        )
        reader.report(Code.PIPELINE_CONTRADICTION, message, encoding.span)
    options = section.get("options") or {}
    encodings = [encoding, options.get("encoding"), options.get("charset")]
    for text in encodings if kind in _TEXT_OPTIONS else ():
        if text is not None:
            try:
                check_encoding(text.value)
            except InvalidInput as error:
                reader.report(
                    Code.PIPELINE_CONTRADICTION, f"source `{name}`: {error.message}", text.span
                )
    known = _TEXT_OPTIONS.get(kind, tuple(options))
    for word, text in options.items():
        span = section.places["options"] if text is None else text.span
        if word.lower() not in map(str.lower, known):
            message = f"source `{name}`: `{kind}` has no option `{word}`"
            hint = f"valid options: {', '.join(known)}; `format: {kind}` takes Spark's own options"
            reader.report(Code.PIPELINE_CONTRADICTION, message, span, hint)
        elif kind == "csv" and word in _CHARACTERS and text is not None and not _is_one(text.value):
            message = f"source `{name}`: `{word}` must be one ASCII character, got '{text.value}'"
            reader.report(Code.PIPELINE_CONTRADICTION, message, span)


def _is_one(text: str) -> bool:
    return text == "\\t" or len(text.encode()) == 1


def _types(reader: PipelineFileReader, top: PipelineSection) -> list[TypeSpec]:
    found = []
    for word, kind in (("nodes", TypeKind.NODE), ("edges", TypeKind.EDGE)):
        for name, section in top.get(word) or ():
            dedupe = section.get("dedupe")
            found.append(
                TypeSpec(
                    kind=kind,
                    name=name,
                    source=section.get("source") or LocatedText("", section.span),
                    properties=section.get("properties"),
                    id=section.get("id"),
                    where=section.get("where"),
                    dedupe=None if dedupe is None else _dedupe(dedupe),
                    embed=section.get("embed") or (),
                    src=section.get("from"),
                    dst=section.get("to"),
                    operation=section.get("operation"),
                    delete_missing=bool(section.get("delete_missing")),
                )
            )
    if "nodes" in top.values or "edges" in top.values:
        return found
    batches = [s for _, s in top.get("sources") or () if "ndjson" in s.values]
    if not batches and top.get("sources"):
        message = "the pipeline loads nothing: it has neither `nodes` nor `edges`"
        hint = "map a source to a type: `nodes: {Person: {source: people}}`"
        reader.report(
            Code.PIPELINE_FIELD_MISSING, message, TextSpan(top.span.start, top.span.start + 1), hint
        )
    return found


def _dedupe(section: PipelineSection) -> DedupeSpec:
    return DedupeSpec(
        by=section.get("by") or (), keep=section.get("keep") or KeepRule(), span=section.span
    )


def _pipeline(
    report: DiagnosticReport,
    folder: Path,
    top: PipelineSection,
    sources: Mapping[str, SourceSpec],
    types: tuple[TypeSpec, ...],
) -> Pipeline:
    branch = _values_of(top.get("branch"))
    publish = _values_of(top.get("publish"))
    spark = _values_of(top.get("spark"))
    openlineage: PipelineSection | None = top.get("openlineage")
    name = _plain_text(top.get("name")) or Path(report.source.name).stem
    base = _plain_text(branch.get("from")) or "main"
    return Pipeline(
        report=report,
        folder=folder,
        name=name,
        graph=_plain_text(top.get("graph")),
        sources=sources,
        types=types,
        mode=top.get("mode") or "merge",
        partial=bool(top.get("partial")),
        vectors_from=_plain_text(top.get("vectors_from")),
        branch=_plain_text(branch.get("name")) or "main",
        base=base if branch else None,
        on_violation=top.get("on_violation") or "fail",
        max_rejects=top.get("max_rejects"),
        rejects=_plain_text(top.get("rejects")),
        publish=PublishSpec(
            message=_plain_text(publish.get("message")),
            merge_into=_plain_text(publish.get("merge_into")),
            delete_branch=bool(publish.get("delete_branch")),
        ),
        spark=SparkSpec(
            master=_plain_text(spark.get("master")),
            memory=_plain_text(spark.get("memory")),
            config=_plain(spark.get("config")),
        ),
        openlineage=None if openlineage is None else _openlineage(openlineage),
    )


def _openlineage(section: PipelineSection) -> OpenLineageSpec:
    return OpenLineageSpec(
        namespace=_plain_text(section.get("namespace")) or "omnigraph",
        url=_plain_text(section.get("url")),
        api_key=_plain_text(section.get("api_key")),
        file=_plain_text(section.get("file")),
    )


def _check_uses(reader: PipelineFileReader, pipeline: Pipeline) -> None:
    """Check that sources are declared, used, and not made from themselves."""
    sources, used = pipeline.sources, set()
    for type_ in pipeline.types:
        wanted = type_.source
        if not wanted.value:
            continue
        used.add(wanted.value)
        found = sources.get(wanted.value)
        if found is None:
            message = f"{type_.kind} `{type_.name}`: source `{wanted}` is not declared"
            hint = did_you_mean(wanted.value, sources)
            reader.report(Code.PIPELINE_UNKNOWN_SOURCE, message, wanted.span, hint)
        elif found.kind == "ndjson":
            message = f"source `{wanted}` is a graph batch, which is loaded as is"
            hint = f"remove {type_.kind} `{type_.name}`, or read the file with `json`"
            reader.report(Code.PIPELINE_SOURCE_MISUSED, message, wanted.span, hint)
    made_from = {name: referenced_sources(source, sources) for name, source in sources.items()}
    for name, source in sources.items():
        used.update(made_from[name])
        for other in made_from[name]:
            if sources[other].kind == "ndjson":
                message = f"source `{other}` is a graph batch, which queries cannot read"
                hint = "read the file with `json` to use it in a query"
                reader.report(Code.PIPELINE_SOURCE_MISUSED, message, source.given[0].span, hint)
        if _reaches(name, name, made_from):
            message = f"source `{name}` depends on itself"
            reader.report(Code.PIPELINE_SOURCE_CYCLE, message, source.name.span)
    for name, source in sources.items():
        # Beside an error this would only say that something mistyped is not used.
        if name not in used and source.kind != "ndjson" and not pipeline.report.errors:
            message = f"source `{name}` is never used"
            reader.report(Code.PIPELINE_SOURCE_UNUSED, message, source.name.span)


_SQL_LITERALS = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|--[^\n]*|/\*.*?\*/", re.DOTALL
)
_SQL_TABLE = re.compile(r"(?:\b(?:from|join)\b|,)\s*`?([A-Za-z_][A-Za-z0-9_]*)`?", re.IGNORECASE)


def without_literals(text: str) -> str:
    """Return SQL without its string literals and comments."""
    return _SQL_LITERALS.sub(" ", text)


def referenced_sources(source: SourceSpec, sources: Mapping[str, SourceSpec]) -> list[str]:
    """Return the sources a query may read: those it names where a table can stand."""
    if source.kind != "sql" or not source.given:
        return []
    text = without_literals(source.given[0].value)
    folded = {name.lower(): name for name in sources}
    names = (folded.get(match[1].lower()) for match in _SQL_TABLE.finditer(text))
    return list(dict.fromkeys(name for name in names if name is not None))


def _reaches(start: str, name: str, made_from: Mapping[str, list[str]]) -> bool:
    seen: set[str] = set()
    waiting = list(made_from[name])
    while waiting:
        current = waiting.pop()
        if current == start:
            return True
        if current not in seen:
            seen.add(current)
            waiting += made_from[current]
    return False


def _check_together(reader: PipelineFileReader, top: PipelineSection, pipeline: Pipeline) -> None:
    """Check fields that only make sense beside others."""

    def refuse(message: str, section: PipelineSection, word: str, hint: str | None = None) -> None:
        reader.report(Code.PIPELINE_CONTRADICTION, message, section.places[word], hint)

    for word in ("max_rejects", "rejects"):
        if word in top.values and top.values.get("on_violation", "fail") == "fail":
            message = f"`{word}` needs `on_violation: reject`: otherwise no row is rejected"
            refuse(message, top, word)
    if pipeline.partial and pipeline.mode != "merge":
        refuse(f"`partial` needs `mode: merge`, not `{pipeline.mode}`", top, "partial")
    for word in ("nodes", "edges"):
        for name, section in top.get(word) or ():
            _check_deletes(reader, pipeline, name, section)
    openlineage: PipelineSection | None = top.get("openlineage")
    if openlineage is not None and not {"url", "file"} & set(openlineage.values):
        message = "`openlineage` needs `url` or `file`"
        reader.report(Code.PIPELINE_FIELD_MISSING, message, openlineage.span)
    publish: PipelineSection | None = top.get("publish")
    into = pipeline.publish.merge_into
    if publish is not None and into is not None and into == pipeline.branch:
        hint = "load into another branch: `branch: {name: load/today, from: main}`"
        refuse(f"`{into}` is the branch the pipeline loads into", publish, "merge_into", hint)
    if publish is not None and pipeline.publish.delete_branch and into is None:
        refuse("`delete_branch` needs `merge_into`", publish, "delete_branch")


def _check_deletes(
    reader: PipelineFileReader, pipeline: Pipeline, name: LocatedText, section: PipelineSection
) -> None:
    """Check what says which entities of a type are deleted."""

    def refuse(word: str, message: str) -> None:
        reader.report(Code.PIPELINE_CONTRADICTION, f"`{name}`: {message}", section.places[word])

    words = [word for word in ("operation", "delete_missing") if section.get(word)]
    for word in words:
        if pipeline.mode != "merge":
            refuse(word, f"`{word}` needs `mode: merge`, not `{pipeline.mode}`")
    if len(words) > 1:
        refuse(words[1], "`delete_missing` is for full snapshots, `operation` for changes")
    source = section.get("source")
    if "delete_missing" in words and source is not None:
        made_from = sources_below(source.value, pipeline.sources)
        new = [one for one in sorted(made_from) if pipeline.sources[one].incremental is not None]
        if new:
            refuse("delete_missing", f"source `{new[0]}` is incremental, so most rows are missing")


def sources_below(name: str, sources: Mapping[str, SourceSpec]) -> set[str]:
    """Return a source and all that it is made from."""
    found, waiting = set[str](), [name]
    while waiting:
        one = waiting.pop()
        if one in sources and one not in found:
            found.add(one)
            waiting += referenced_sources(sources[one], sources)
    return found


def _values_of(section: PipelineSection | None) -> Mapping[str, Any]:
    return {} if section is None else section.values


def _plain_text(text: LocatedText | None) -> str | None:
    return None if text is None else text.value


def _plain(texts: Mapping[str, LocatedText | None] | None) -> dict[str, str]:
    return {name: text.value for name, text in (texts or {}).items() if text is not None}
