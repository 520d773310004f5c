"""This module is the table of query functions: a row here, an evaluator of the same name later.

The grammar knows only calls. Whether a function exists, where it may stand and what it takes is
said by its row; the type checker reads it, and the reference page is generated from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from omnigraph.lang import Code
from omnigraph.types import PropertyType, Scalar


class FunctionKind(StrEnum):
    """Where a function may stand."""

    SCALAR = "scalar"
    AGGREGATE = "aggregate"
    PREDICATE = "predicate"
    RANK = "rank"
    PATH = "path"


class FunctionArgumentKind(StrEnum):
    """What one argument must be."""

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
    """One argument a function takes."""

    name: str
    takes: FunctionArgumentKind
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSpec:
    """One query function; `result` None means the type of the first argument, made nullable."""

    name: str
    kind: FunctionKind
    arguments: tuple[FunctionArgument, ...]
    result: PropertyType | None
    about: str
    misfit: Code
    """The code that reports unusable arguments."""
    needs_limit: Code | None = None
    """The code that reports ordering by this function without a limit."""
    allows_distinct: bool = False
    best_is_highest: bool = False
    """For a ranking: whether the best match has the highest value."""

    @property
    def signature(self) -> str:
        """The call as a person would write it."""
        names = [f"[{a.name}]" if a.optional else a.name for a in self.arguments]
        return f"{self.name}({', '.join(names)})"


_BOOL = PropertyType(Scalar.BOOL)
_COUNT = PropertyType(Scalar.I64)
_NUMBER = PropertyType(Scalar.F64, nullable=True)
_SCORE = PropertyType(Scalar.F64, nullable=True)
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
        misfit=Code.FUNCTION_MISUSE,
    ),
    FunctionSpec(
        name="count",
        kind=FunctionKind.AGGREGATE,
        arguments=(FunctionArgument("value", FunctionArgumentKind.ANYTHING),),
        result=_COUNT,
        about="how many values are not null; `count(distinct …)` counts different ones",
        misfit=Code.AGGREGATE_MISFIT,
        allows_distinct=True,
    ),
    FunctionSpec(
        name="sum",
        kind=FunctionKind.AGGREGATE,
        arguments=(FunctionArgument("value", FunctionArgumentKind.NUMBER),),
        result=_NUMBER,
        about="sum of the values that are not null",
        misfit=Code.AGGREGATE_MISFIT,
    ),
    FunctionSpec(
        name="avg",
        kind=FunctionKind.AGGREGATE,
        arguments=(FunctionArgument("value", FunctionArgumentKind.NUMBER),),
        result=_NUMBER,
        about="mean of the values that are not null",
        misfit=Code.AGGREGATE_MISFIT,
    ),
    FunctionSpec(
        name="min",
        kind=FunctionKind.AGGREGATE,
        arguments=(FunctionArgument("value", FunctionArgumentKind.ORDERABLE),),
        result=None,
        about="smallest value; Strings by UTF-8 bytes, false before true",
        misfit=Code.AGGREGATE_MISFIT,
    ),
    FunctionSpec(
        name="max",
        kind=FunctionKind.AGGREGATE,
        arguments=(FunctionArgument("value", FunctionArgumentKind.ORDERABLE),),
        result=None,
        about="largest value",
        misfit=Code.AGGREGATE_MISFIT,
    ),
    FunctionSpec(
        name="search",
        kind=FunctionKind.PREDICATE,
        arguments=_TEXT_ARGUMENTS,
        result=_BOOL,
        about="the text contains any word of the query",
        misfit=Code.SEARCH_MISFIT,
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
        misfit=Code.SEARCH_MISFIT,
    ),
    FunctionSpec(
        name="match_text",
        kind=FunctionKind.PREDICATE,
        arguments=_TEXT_ARGUMENTS,
        result=_BOOL,
        about="the text contains the query as a phrase",
        misfit=Code.MATCH_TEXT_MISFIT,
    ),
    FunctionSpec(
        name="bm25",
        kind=FunctionKind.RANK,
        arguments=_TEXT_ARGUMENTS,
        result=_SCORE,
        about="relevance of the text to the query; best first, rows without a match are left out",
        misfit=Code.MATCH_TEXT_MISFIT,
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
        misfit=Code.BOUNDS_OR_NEAREST,
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
        misfit=Code.RRF_MISFIT,
        needs_limit=Code.RRF_MISFIT,
        best_is_highest=True,
    ),
    FunctionSpec(
        name="shortest_path",
        kind=FunctionKind.PATH,
        arguments=_PATH_ARGUMENTS,
        result=PropertyType(Scalar.STRING, nullable=True, is_list=True),
        about="ids of the nodes on the way with the fewest edges, both ends included",
        misfit=Code.FUNCTION_MISUSE,
    ),
    FunctionSpec(
        name="path_length",
        kind=FunctionKind.PATH,
        arguments=_PATH_ARGUMENTS,
        result=PropertyType(Scalar.I64, nullable=True),
        about="how many edges the shortest path has",
        misfit=Code.FUNCTION_MISUSE,
    ),
)

FUNCTIONS: Mapping[str, FunctionSpec] = MappingProxyType({row.name: row for row in _ROWS})
