"""The registry of the fields of a pipeline file.

The reader, the reference table of the docs and the JSON Schema for editors are generated from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

VERSION = 1


class FieldKind(StrEnum):
    """The kind of value of a field."""

    VERSION = "version"
    TEXT = "text"
    EXPRESSION = "SQL expression"
    EXPRESSIONS = "SQL expression, or a list of them"
    SQL = "SQL query"
    TEXTS = "text, or a list of texts"
    CHOICE = "one word"
    LIMIT = "count or percentage"
    KEEP = "`first`, `last`, `max(expression)` or `min(expression)`"
    BOOL = "`true` or `false`"
    SCALARS = "names with values"
    EXPRESSION_MAP = "names with SQL expressions"
    ENDPOINT = "SQL expression, or key properties with SQL expressions"
    SECTION = "section"
    SECTIONS = "names with sections"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineField:
    """One field: the kind of its value, its meaning, and its default."""

    name: str
    kind: FieldKind
    about: str
    required: bool = False
    choices: tuple[str, ...] = ()
    section: str = ""
    default: str = ""
    example: str = ""


def _field(name: str, kind: FieldKind, about: str, **more: Any) -> PipelineField:  # noqa: ANN401
    return PipelineField(name=name, kind=kind, about=about, **more)


MODES = ("append", "merge", "overwrite")
VIOLATIONS = ("fail", "reject")
SEVERITIES = ("fail", "warn")
INCREMENTS = ("new",)

_MAPPING = (
    _field(
        "source", FieldKind.TEXT, "the source its rows come from", required=True, example="people"
    ),
    _field(
        "properties",
        FieldKind.EXPRESSION_MAP,
        "the value of each property, over the columns of the source",
        default="the columns with the names of properties",
        example="{name: trim(full_name)}",
    ),
    _field(
        "id",
        FieldKind.EXPRESSION,
        "the id, for types without a key",
        default="a new one for each row",
        example="uuid",
    ),
    _field(
        "where", FieldKind.EXPRESSION, "which rows of the source to take", example="not deleted"
    ),
    _field("dedupe", FieldKind.SECTION, "keep one row of several duplicates", section="dedupe"),
    _field(
        "operation",
        FieldKind.EXPRESSION,
        "for changes: `insert`, `update` or `delete`, or the first letter; without `dedupe` the "
        "last row of each entity counts",
        default="rows insert and update",
        example="op",
    ),
    _field(
        "delete_missing",
        FieldKind.BOOL,
        "the rows are a full snapshot: entities of the type without a row are deleted",
        default="`false`",
        example="true",
    ),
    _field(
        "embed",
        FieldKind.TEXTS,
        "optional `@embed` properties whose missing vectors are computed; those of required ones "
        "always are",
        example="title_embedding",
    ),
)

SECTIONS: dict[str, tuple[PipelineField, ...]] = {
    "pipeline": (
        _field(
            "version", FieldKind.VERSION, "the version of this format", required=True, example="1"
        ),
        _field(
            "name",
            FieldKind.TEXT,
            "the name in reports",
            default="the name of the file",
            example="crm",
        ),
        _field(
            "graph",
            FieldKind.TEXT,
            "address of the graph, unless given on the command line",
            example="./my-graph",
        ),
        _field(
            "variables",
            FieldKind.SCALARS,
            "values of `${NAME}`, overridden by `--set` and the environment; a variable without a "
            "value must be set there",
            example="{DAY: 2024-01-01}",
        ),
        _field(
            "sources", FieldKind.SECTIONS, "where rows come from", required=True, section="source"
        ),
        _field("nodes", FieldKind.SECTIONS, "node types to load, by name", section="node"),
        _field("edges", FieldKind.SECTIONS, "edge types to load, by name", section="edge"),
        _field(
            "mode",
            FieldKind.CHOICE,
            "how to handle entities that exist: fail, replace by id, replace whole types",
            choices=MODES,
            default="`merge`",
            example="append",
        ),
        _field(
            "partial",
            FieldKind.BOOL,
            "with `merge`: keep properties that are not given",
            default="`false`",
            example="true",
        ),
        _field(
            "vectors_from",
            FieldKind.TEXT,
            "the model that computed the vectors of the sources, so that texts can be compared "
            "with them",
            default="unknown",
            example="openai/text-embedding-3-large",
        ),
        _field("branch", FieldKind.SECTION, "the branch to load into", section="branch"),
        _field(
            "on_violation",
            FieldKind.CHOICE,
            "fail the load, or reject invalid rows and load the rest",
            choices=VIOLATIONS,
            default="`fail`",
            example="reject",
        ),
        _field(
            "max_rejects",
            FieldKind.LIMIT,
            "number or share of rows that may be rejected before the load fails",
            default="any number",
            example="1%",
        ),
        _field(
            "rejects",
            FieldKind.TEXT,
            "folder of rejected rows; each run writes to its own folder below it, named by its id",
            default="beside the run record, in the graph",
            example="./rejects",
        ),
        _field(
            "publish",
            FieldKind.SECTION,
            "the commit message, and the merge after the commit",
            section="publish",
        ),
        _field(
            "checks",
            FieldKind.SECTIONS,
            "checks of the staged state before it is published, by name",
            section="check",
        ),
        _field("spark", FieldKind.SECTION, "the Spark session", section="spark"),
        _field(
            "openlineage",
            FieldKind.SECTION,
            "where OpenLineage events of runs are sent",
            default="nowhere",
            section="openlineage",
        ),
        _field(
            "targets",
            FieldKind.SECTIONS,
            "environments, chosen with `--target NAME`: their members replace those at the top of "
            "the file",
            section="target",
        ),
    ),
    "source": (
        _field(
            "parquet", FieldKind.TEXTS, "Parquet files or folders", example="data/people/*.parquet"
        ),
        _field(
            "csv",
            FieldKind.TEXTS,
            "CSV files with a header; cells are text, parsed by the types of properties",
            example="data/people.csv",
        ),
        _field(
            "json",
            FieldKind.TEXTS,
            "files with one JSON object per line",
            example="data/people.jsonl",
        ),
        _field(
            "ndjson",
            FieldKind.TEXTS,
            "graph batches, as read by `load`; each line names its type, and all lines are loaded",
            example="data/batch.ndjson",
        ),
        _field(
            "jdbc", FieldKind.TEXT, "address of a database", example="jdbc:postgresql://host/crm"
        ),
        _field("format", FieldKind.TEXT, "any other format Spark knows by name", example="orc"),
        _field("sql", FieldKind.SQL, "a query over other sources", example="select * from people"),
        _field("path", FieldKind.TEXTS, "with `format`: what to read", example="data/people"),
        _field(
            "table",
            FieldKind.TEXT,
            "a table or view of a catalog of the session; with `jdbc`: the table to read",
            example="lake.crm.people",
        ),
        _field(
            "query",
            FieldKind.TEXT,
            "with `jdbc`: the query to read instead of a table",
            example="select * from people",
        ),
        _field(
            "columns",
            FieldKind.TEXT,
            "names and types of the columns, instead of inferring them",
            example="name string, age int",
        ),
        _field(
            "encoding",
            FieldKind.TEXT,
            "with `csv` and `json`: the encoding of the files",
            default="`utf-8`; other bytes are an error",
            example="latin-1",
        ),
        _field(
            "options",
            FieldKind.SCALARS,
            "with `csv`: `delimiter`, `quote` and `header`; with `csv` and `json` which files are "
            "listed; otherwise options of the Spark reader",
            example="{delimiter: ;}",
        ),
        _field(
            "incremental",
            FieldKind.SECTION,
            "read only rows or files added since the last run published on the branch",
            default="everything is read",
            section="incremental",
        ),
    ),
    "incremental": (
        _field(
            "cursor",
            FieldKind.EXPRESSION,
            "an increasing value: read rows in which it is greater than in all earlier runs, or "
            "null",
            example="updated_at",
        ),
        _field(
            "files",
            FieldKind.CHOICE,
            "with `parquet`, `csv` and `json`: read files that are new or have changed",
            choices=INCREMENTS,
            example="new",
        ),
    ),
    "node": _MAPPING,
    "edge": (
        *_MAPPING,
        _field(
            "from",
            FieldKind.ENDPOINT,
            "the node it starts at: its id, the value of its key, or of each key property",
            default="the column `from` or `src`",
            example="person_name",
        ),
        _field(
            "to",
            FieldKind.ENDPOINT,
            "the node it ends at, in the same form",
            default="the column `to` or `dst`",
            example="{code: port_code}",
        ),
    ),
    "dedupe": (
        _field(
            "by",
            FieldKind.EXPRESSIONS,
            "rows are duplicates when these are equal",
            default="the key, or the id",
            example="lower(email)",
        ),
        _field(
            "keep",
            FieldKind.KEEP,
            "which row to keep; `first` and `last` by their position in the source",
            default="`last`",
            example="max(updated_at)",
        ),
    ),
    "branch": (
        _field("name", FieldKind.TEXT, "its name", required=True, example="load/2024-01-01"),
        _field(
            "from",
            FieldKind.TEXT,
            "the branch it is created from unless it exists",
            default="`main`",
            example="main",
        ),
    ),
    "publish": (
        _field(
            "message",
            FieldKind.TEXT,
            "the message of the commit",
            default="the name",
            example="nightly load",
        ),
        _field(
            "merge_into",
            FieldKind.TEXT,
            "the branch to merge the loaded branch into; conflicts leave both unchanged",
            example="main",
        ),
        _field(
            "delete_branch",
            FieldKind.BOOL,
            "delete the branch once it is merged",
            default="`false`",
            example="true",
        ),
    ),
    "check": (
        _field(
            "query",
            FieldKind.TEXT,
            "file with a query that must return no rows",
            example="checks.gq",
        ),
        _field(
            "name",
            FieldKind.TEXT,
            "with `query`: the name of the query",
            default="the only one of the file",
            example="orphans",
        ),
        _field(
            "row_count",
            FieldKind.TEXT,
            "a type whose number of entities must be within `min` and `max`",
            example="Article",
        ),
        _field("min", FieldKind.TEXT, "with `row_count`: the least number", example="1000"),
        _field("max", FieldKind.TEXT, "with `row_count`: the greatest number", example="2000000"),
        _field(
            "freshness",
            FieldKind.TEXT,
            "a Date or DateTime property whose newest value must not be older than `within`",
            example="Article.updated",
        ),
        _field("within", FieldKind.TEXT, "with `freshness`: a duration", example="2d"),
        _field(
            "accepted_values",
            FieldKind.TEXT,
            "a property whose values must be among `values`, or null",
            example="Article.state",
        ),
        _field(
            "values",
            FieldKind.TEXTS,
            "with `accepted_values`: the values",
            example="[draft, published]",
        ),
        _field(
            "severity",
            FieldKind.CHOICE,
            "what a finding means: the run fails and nothing is published, or it is reported",
            choices=SEVERITIES,
            default="`fail`",
            example="warn",
        ),
    ),
    "target": (
        _field("graph", FieldKind.TEXT, "address of the graph", example="s3://graphs/crm"),
        _field("branch", FieldKind.SECTION, "the branch to load into", section="branch"),
        _field(
            "master",
            FieldKind.TEXT,
            "a Spark master, or `sc://host:port`",
            example="spark://host:7077",
        ),
        _field(
            "variables",
            FieldKind.SCALARS,
            "values of variables that the file declares; `--set` and the environment override them",
            example="{DAY: 2024-01-01}",
        ),
    ),
    "openlineage": (
        _field(
            "url",
            FieldKind.TEXT,
            "the HTTP API; without a path, `/api/v1/lineage` is added",
            example="http://marquez:5000",
        ),
        _field("api_key", FieldKind.TEXT, "with `url`: sent as bearer token", example="${KEY}"),
        _field(
            "file",
            FieldKind.TEXT,
            "a local file to which events are appended, one line each",
            example="./lineage.jsonl",
        ),
        _field(
            "namespace",
            FieldKind.TEXT,
            "the namespace of the job",
            default="`omnigraph`",
            example="crm",
        ),
    ),
    "spark": (
        _field(
            "master",
            FieldKind.TEXT,
            "a Spark master, or `sc://host:port`",
            default="`local[*]`",
            example="spark://host:7077",
        ),
        _field(
            "memory",
            FieldKind.TEXT,
            "memory of the driver",
            default="half of the machine's",
            example="4g",
        ),
        _field(
            "config",
            FieldKind.SCALARS,
            "Spark's own settings",
            example="{spark.sql.shuffle.partitions: 64}",
        ),
    ),
}

CHECK_KINDS = ("query", "row_count", "freshness", "accepted_values")
"""Exactly one of them says what a check is."""

SOURCE_KINDS = ("parquet", "csv", "json", "ndjson", "jdbc", "table", "format", "sql")
"""Exactly one of them says what a source is."""


def by_name(section: str) -> dict[str, PipelineField]:
    """Return the fields of a section by name."""
    return {field.name: field for field in SECTIONS[section]}
