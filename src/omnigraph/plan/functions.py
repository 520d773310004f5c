"""The table of query functions: one row per function, with its types and its implementations.

The grammar knows only calls. The row defines in which clauses a function is allowed, its arguments
and its result; the type checker reads it, both engines call the implementations it names, and the
reference page is generated from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from omnigraph.lang import Code
from omnigraph.types import PropertyType, Scalar


class FunctionKind(StrEnum):
    """The kind of a function: in which clauses it is allowed, and how engines call it.

    The signatures of the implementations are those of the functions in the table.
    """

    SCALAR = "scalar"
    """A value that is the same for each row. Local: `(constants) -> value`."""
    AGGREGATE = "aggregate"
    """One value per group. Local: `(call, frame, evaluator, grouping) -> array`; Spark:
    `(call, column of the argument) -> column`."""
    PREDICATE = "predicate"
    """A text predicate. Local: `(texts, query, max_edits) -> positions of matching texts`."""
    RANK = "rank"
    """A score per row. Local: `(search, call, frame, evaluator) -> scores, tie breaks`."""
    PATH = "path"
    """A value per pair of nodes. Local: `(search, pairs, start and end tables) -> array`.

    Spark calls the implementations of all kinds but aggregates with `(compiler, call)`.
    """


@dataclass(frozen=True, slots=True)
class Implementation:
    """A function of a package above this one, as `package.module:name`.

    Naming it instead of importing it keeps imports pointing downward.
    """

    path: str

    def load(self) -> Callable[..., Any]:
        """Return the function; its module is imported the first time."""
        return _load(self.path)


@cache
def _load(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


@dataclass(frozen=True, slots=True)
class Unsupported:
    """States why an engine has no implementation of a function."""

    reason: str


class FunctionArgumentKind(StrEnum):
    """What an argument must be."""

    ANYTHING = "any value or node variable"
    NUMBER = "a number"
    ORDERABLE = "a number, String, Bool, Date or DateTime"
    TEXT_PROPERTY = "a String property of a node"
    TEXT = "a String"
    INTEGER = "an integer"
    POSITIVE = "a positive integer"
    VECTOR_PROPERTY = "a Vector property of a node"
    VECTOR_OR_TEXT = "a vector of the same dimension, or a String to embed"
    RANKING = "nearest(…) or bm25(…)"
    NODE = "a node variable"
    EDGES = "an edge with bounds, like `knows{1,8}`"


@dataclass(frozen=True, slots=True)
class FunctionArgument:
    """An argument of a function."""

    name: str
    kind: FunctionArgumentKind
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSpec:
    """One query function; `result` None means the type of the first argument, made nullable."""

    name: str
    kind: FunctionKind
    arguments: tuple[FunctionArgument, ...]
    result: PropertyType | None
    about: str
    mismatch_code: Code
    """The code that reports invalid arguments."""
    local: Implementation
    """The implementation of the local engine; `FunctionKind` lists the signatures."""
    spark: Implementation | Unsupported
    """The implementation on Spark, or why there is none."""
    needs_limit: Code | None = None
    """The code that reports ordering by this function without a limit."""
    allows_distinct: bool = False
    best_is_highest: bool = False
    """For a ranking: whether the best match has the highest value."""
    supports_row_weights: bool = False
    """For an aggregate: whether the local implementation accepts rows with a multiplicity."""
    counts_rows: bool = False
    """For an aggregate: whether its value is the number of rows when its argument is never null."""

    @property
    def signature(self) -> str:
        """The call as it is written in a query."""
        names = [f"[{a.name}]" if a.optional else a.name for a in self.arguments]
        return f"{self.name}({', '.join(names)})"


_BOOL = PropertyType(Scalar.BOOL)
_COUNT = PropertyType(Scalar.I64)
_NUMBER = PropertyType(Scalar.F64, nullable=True)
_SCORE = PropertyType(Scalar.F64, nullable=True)
_TEXT_ON_SPARK = Unsupported("text search is supported by the local engine only")
_RANKING_ON_SPARK = Unsupported("this ranking needs word statistics of the whole type")
_PATH_ON_SPARK = Unsupported("paths are supported by the local engine only")
_TEXT_ARGUMENTS = (
    FunctionArgument("property", FunctionArgumentKind.TEXT_PROPERTY),
    FunctionArgument("query", FunctionArgumentKind.TEXT),
)
_PATH_ARGUMENTS = (
    FunctionArgument("from", FunctionArgumentKind.NODE),
    FunctionArgument("edges", FunctionArgumentKind.EDGES),
    FunctionArgument("to", FunctionArgumentKind.NODE),
)

_ROWS = (
    FunctionSpec(
        name="now",
        kind=FunctionKind.SCALAR,
        arguments=(),
        result=PropertyType(Scalar.DATE_TIME),
        about="the instant the request started; the same everywhere in one query",
        mismatch_code=Code.FUNCTION_MISUSE,
        local=Implementation("omnigraph.query.expressions:now"),
        spark=Implementation("omnigraph.pipeline.execution.expressions:constant_value"),
    ),
    FunctionSpec(
        name="count",
        kind=FunctionKind.AGGREGATE,
        arguments=(FunctionArgument("value", FunctionArgumentKind.ANYTHING),),
        result=_COUNT,
        about="how many values are not null; `count(distinct …)` counts different ones",
        mismatch_code=Code.AGGREGATE_MISFIT,
        local=Implementation("omnigraph.query.aggregation:count"),
        spark=Implementation("omnigraph.pipeline.execution.aggregates:count"),
        allows_distinct=True,
        supports_row_weights=True,
        counts_rows=True,
    ),
    FunctionSpec(
        name="sum",
        kind=FunctionKind.AGGREGATE,
        arguments=(FunctionArgument("value", FunctionArgumentKind.NUMBER),),
        result=_NUMBER,
        about="sum of the values that are not null",
        mismatch_code=Code.AGGREGATE_MISFIT,
        local=Implementation("omnigraph.query.aggregation:sum_of_values"),
        spark=Implementation("omnigraph.pipeline.execution.aggregates:sum_of_values"),
    ),
    FunctionSpec(
        name="avg",
        kind=FunctionKind.AGGREGATE,
        arguments=(FunctionArgument("value", FunctionArgumentKind.NUMBER),),
        result=_NUMBER,
        about="mean of the values that are not null",
        mismatch_code=Code.AGGREGATE_MISFIT,
        local=Implementation("omnigraph.query.aggregation:mean"),
        spark=Implementation("omnigraph.pipeline.execution.aggregates:mean"),
    ),
    FunctionSpec(
        name="min",
        kind=FunctionKind.AGGREGATE,
        arguments=(FunctionArgument("value", FunctionArgumentKind.ORDERABLE),),
        result=None,
        about="smallest value; Strings by UTF-8 bytes, false before true",
        mismatch_code=Code.AGGREGATE_MISFIT,
        local=Implementation("omnigraph.query.aggregation:minimum"),
        spark=Implementation("omnigraph.pipeline.execution.aggregates:minimum"),
        supports_row_weights=True,
    ),
    FunctionSpec(
        name="max",
        kind=FunctionKind.AGGREGATE,
        arguments=(FunctionArgument("value", FunctionArgumentKind.ORDERABLE),),
        result=None,
        about="largest value",
        mismatch_code=Code.AGGREGATE_MISFIT,
        local=Implementation("omnigraph.query.aggregation:maximum"),
        spark=Implementation("omnigraph.pipeline.execution.aggregates:maximum"),
        supports_row_weights=True,
    ),
    FunctionSpec(
        name="search",
        kind=FunctionKind.PREDICATE,
        arguments=_TEXT_ARGUMENTS,
        result=_BOOL,
        about="the text contains any word of the query",
        mismatch_code=Code.SEARCH_MISFIT,
        local=Implementation("omnigraph.query.bm25:match_any_word"),
        spark=_TEXT_ON_SPARK,
    ),
    FunctionSpec(
        name="fuzzy",
        kind=FunctionKind.PREDICATE,
        arguments=(
            *_TEXT_ARGUMENTS,
            FunctionArgument("max_edits", FunctionArgumentKind.INTEGER, optional=True),
        ),
        result=_BOOL,
        about="the text contains a word at most `max_edits` (default 2) letters away",
        mismatch_code=Code.SEARCH_MISFIT,
        local=Implementation("omnigraph.query.bm25:match_similar_words"),
        spark=_TEXT_ON_SPARK,
    ),
    FunctionSpec(
        name="match_text",
        kind=FunctionKind.PREDICATE,
        arguments=_TEXT_ARGUMENTS,
        result=_BOOL,
        about="the text contains the query as a phrase",
        mismatch_code=Code.MATCH_TEXT_MISFIT,
        local=Implementation("omnigraph.query.bm25:match_phrase"),
        spark=_TEXT_ON_SPARK,
    ),
    FunctionSpec(
        name="bm25",
        kind=FunctionKind.RANK,
        arguments=_TEXT_ARGUMENTS,
        result=_SCORE,
        about="relevance of the text to the query; best first, rows without a match are left out",
        mismatch_code=Code.MATCH_TEXT_MISFIT,
        local=Implementation("omnigraph.query.search:bm25_scores"),
        spark=_RANKING_ON_SPARK,
        best_is_highest=True,
    ),
    FunctionSpec(
        name="nearest",
        kind=FunctionKind.RANK,
        arguments=(
            FunctionArgument("property", FunctionArgumentKind.VECTOR_PROPERTY),
            FunctionArgument("query", FunctionArgumentKind.VECTOR_OR_TEXT),
        ),
        result=_SCORE,
        about="distance to the query vector; nearest first",
        mismatch_code=Code.BOUNDS_OR_NEAREST,
        local=Implementation("omnigraph.query.search:nearest_scores"),
        spark=Implementation("omnigraph.pipeline.execution.expressions:vector_distance"),
        needs_limit=Code.NEAREST_NEEDS_LIMIT,
    ),
    FunctionSpec(
        name="rrf",
        kind=FunctionKind.RANK,
        arguments=(
            FunctionArgument("first", FunctionArgumentKind.RANKING),
            FunctionArgument("second", FunctionArgumentKind.RANKING),
            FunctionArgument("k", FunctionArgumentKind.POSITIVE, optional=True),
        ),
        result=_SCORE,
        about="reciprocal rank fusion of two rankings, sum of 1 / (k + rank); k is 60 by default",
        mismatch_code=Code.RRF_MISFIT,
        local=Implementation("omnigraph.query.search:fused_scores"),
        spark=_RANKING_ON_SPARK,
        needs_limit=Code.RRF_MISFIT,
        best_is_highest=True,
    ),
    FunctionSpec(
        name="shortest_path",
        kind=FunctionKind.PATH,
        arguments=_PATH_ARGUMENTS,
        result=PropertyType(Scalar.STRING, nullable=True, is_list=True),
        about="ids of the nodes on the way with the fewest edges, both ends included",
        mismatch_code=Code.FUNCTION_MISUSE,
        local=Implementation("omnigraph.query.shortest_paths:path_node_ids"),
        spark=_PATH_ON_SPARK,
    ),
    FunctionSpec(
        name="path_length",
        kind=FunctionKind.PATH,
        arguments=_PATH_ARGUMENTS,
        result=PropertyType(Scalar.I64, nullable=True),
        about="how many edges the shortest path has",
        mismatch_code=Code.FUNCTION_MISUSE,
        local=Implementation("omnigraph.query.shortest_paths:path_lengths"),
        spark=_PATH_ON_SPARK,
    ),
)

_BY_NAME = {row.name: row for row in _ROWS}
FUNCTIONS: Mapping[str, FunctionSpec] = MappingProxyType(_BY_NAME)
