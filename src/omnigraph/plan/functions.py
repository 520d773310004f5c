"""The table of query functions: one row per function, with its types and its implementations.

The grammar knows only calls. The row defines in which clauses a function is allowed, its arguments
and its result; the type checker reads it, both engines call the implementations it names, and the
reference page is generated from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from types import MappingProxyType

from omnigraph.lang import Code
from omnigraph.lang.query_tree import ArithmeticOperator
from omnigraph.plan.result_types import (
    ARITHMETIC,
    COMMON,
    DECIMAL,
    INTEGER,
    LIST_OF,
    ResultRule,
    computed,
)
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.implementation import Implementation as Implementation


class FunctionKind(StrEnum):
    """The kind of a function: in which clauses it is allowed, and how engines call it.

    The signatures of the implementations are those of the functions in the table.
    """

    CONSTANT = "constant"
    """A value that is the same for each row. Local: `(constants) -> value`."""
    SCALAR = "scalar"
    """A value per row, made of other values of the row. Local: `(call, frame, evaluator) ->
    operand`."""
    AGGREGATE = "aggregate"
    """One value per group. Local: `(call, frame, evaluator, grouping) -> array`; Spark:
    `(call, column of the argument) -> column`."""
    PREDICATE = "predicate"
    """A text predicate. Local: `(texts, query, max_edits) -> positions of matching texts`."""
    RANK = "rank"
    """A score per row. Local: a subclass of `query.search.Ranking`."""
    PATH = "path"
    """A value per pair of nodes. Local: `(search, pairs, start and end tables) -> array`.

    Spark calls the implementations of all kinds but aggregates with `(compiler, call)`.
    """


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
    TIME = "a Date or DateTime"
    INSTANT = "a DateTime"
    VALUE = "any value but a vector"
    NODE = "a node variable"
    EDGES = "an edge with bounds, like `knows{1,8}`"


@dataclass(frozen=True, slots=True)
class FunctionArgument:
    """An argument of a function."""

    name: str
    kind: FunctionArgumentKind
    optional: bool = False
    repeats: bool = False
    """Whether more arguments of its kind may follow; only the last one may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSpec:
    """One query function or operator.

    `result` None means the type of the first argument, made nullable.
    """

    name: str
    kind: FunctionKind
    arguments: tuple[FunctionArgument, ...]
    result: PropertyType | ResultRule | None
    about: str
    mismatch_code: Code
    """The code that reports invalid arguments."""
    local: Implementation
    """The implementation of the local engine; `FunctionKind` lists the signatures."""
    spark: Implementation | Unsupported
    """The implementation on Spark, or why there is none."""
    needs_limit: Code | None = None
    """The code that reports ordering by this function without a limit."""
    refuses_alias: Code | None = None
    """The code that reports ordering by this function and an alias."""
    allows_distinct: bool = False
    best_is_highest: bool = False
    """For a ranking: whether the best match has the highest value."""
    supports_row_weights: bool = False
    """For an aggregate: whether the local implementation accepts rows with a multiplicity."""
    counts_rows: bool = False
    """For an aggregate: whether its value is the number of rows when its argument is never null."""

    @property
    def is_fusion(self) -> bool:
        """Whether it is a ranking made of rankings."""
        return any(a.kind is FunctionArgumentKind.RANKING for a in self.arguments)

    @property
    def signature(self) -> str:
        """The call as it is written in a query."""
        names = [f"[{a.name}]" if a.optional else a.name for a in self.arguments]
        names += ["…"] if self.arguments and self.arguments[-1].repeats else []
        return f"{self.name}({', '.join(names)})"

    @property
    def title(self) -> str:
        """The name in messages."""
        return f"{self.name}()" if self.name.isidentifier() else f"`{self.name}`"

    @property
    def argument_counts(self) -> tuple[int, int | None]:
        """The least and the greatest number of arguments; None is no bound."""
        least = sum(not argument.optional for argument in self.arguments)
        repeats = bool(self.arguments) and self.arguments[-1].repeats
        return least, None if repeats else len(self.arguments)

    def takes(self, count: int) -> bool:
        """Return whether a call may have this number of arguments."""
        least, most = self.argument_counts
        return least <= count and (most is None or count <= most)

    def arguments_for(self, count: int) -> tuple[FunctionArgument, ...]:
        """Return what each of the arguments of a call must be."""
        return (*self.arguments, *self.arguments[-1:] * (count - len(self.arguments)))[:count]

    def result_of(self, types: Sequence[PropertyType]) -> PropertyType | None:
        """Return the type of a call with arguments of these types; None if they do not fit."""
        if isinstance(self.result, ResultRule):
            return self.result.of(types)
        return self.result or types[0].as_nullable()


_BOOL = PropertyType(Scalar.BOOL)
_NUMBER = PropertyType(Scalar.F64, nullable=True)
_TEXT_ON_SPARK = Unsupported("text search is supported by the local engine only")
_RANKING_ON_SPARK = Unsupported("this ranking needs word statistics of the whole type")
_NUMBER_ARGUMENT = (FunctionArgument("value", FunctionArgumentKind.NUMBER),)
_ORDERABLE_ARGUMENT = (FunctionArgument("value", FunctionArgumentKind.ORDERABLE),)
_TEXT_ARGUMENTS = (
    FunctionArgument("property", FunctionArgumentKind.TEXT_PROPERTY),
    FunctionArgument("query", FunctionArgumentKind.TEXT),
)
_PATH_ARGUMENTS = (
    FunctionArgument("from", FunctionArgumentKind.NODE),
    FunctionArgument("edges", FunctionArgumentKind.EDGES),
    FunctionArgument("to", FunctionArgumentKind.NODE),
)
_TEXT = PropertyType(Scalar.STRING)
_TEXT_ARGUMENT = FunctionArgument("text", FunctionArgumentKind.TEXT)
_constant = partial(FunctionSpec, kind=FunctionKind.CONSTANT, mismatch_code=Code.FUNCTION_MISUSE)


def _scalar(
    name: str,
    about: str,
    *arguments: FunctionArgument,
    result: ResultRule,
    module: str = "scalar_functions",
) -> FunctionSpec:
    """Return the row of a function of values; its implementations have its name."""
    return FunctionSpec(
        name=name,
        kind=FunctionKind.SCALAR,
        arguments=arguments,
        result=result,
        about=about,
        mismatch_code=Code.FUNCTION_MISUSE,
        local=Implementation(f"omnigraph.query.{module}:{name}"),
        spark=Implementation(f"omnigraph.pipeline.query.{module}:{name}"),
    )


def _date_part(name: str, about: str, kind: FunctionArgumentKind) -> FunctionSpec:
    argument = FunctionArgument("time", kind)
    return _scalar(name, about, argument, result=computed(INTEGER), module="date_parts")


def _operator(
    operator: ArithmeticOperator,
    about: str,
    kind: FunctionArgumentKind,
    implementation: str,
    result: ResultRule,
) -> FunctionSpec:
    return FunctionSpec(
        name=str(operator),
        kind=FunctionKind.SCALAR,
        arguments=(
            FunctionArgument("the left side", kind),
            FunctionArgument("the right side", kind),
        ),
        result=result,
        about=about,
        mismatch_code=Code.INCOMPATIBLE_TYPES,
        local=Implementation(f"omnigraph.query.arithmetic:{implementation}"),
        spark=Implementation(f"omnigraph.pipeline.query.arithmetic:{implementation}"),
    )


_aggregate = partial(FunctionSpec, kind=FunctionKind.AGGREGATE, mismatch_code=Code.AGGREGATE_MISFIT)
_text_predicate = partial(
    FunctionSpec, kind=FunctionKind.PREDICATE, result=_BOOL, spark=_TEXT_ON_SPARK
)
_ranking = partial(FunctionSpec, kind=FunctionKind.RANK, result=_NUMBER)
_path = partial(
    FunctionSpec,
    kind=FunctionKind.PATH,
    arguments=_PATH_ARGUMENTS,
    mismatch_code=Code.FUNCTION_MISUSE,
    spark=Unsupported("paths are supported by the local engine only"),
)

_ROWS = (
    _constant(
        name="now",
        arguments=(),
        result=PropertyType(Scalar.DATE_TIME),
        about="the instant the request started; the same everywhere in one query",
        local=Implementation("omnigraph.query.expressions:now"),
        spark=Implementation("omnigraph.pipeline.query.expressions:constant_value"),
    ),
    _scalar(
        "coalesce",
        "the first value that is not null",
        FunctionArgument("value", FunctionArgumentKind.VALUE, repeats=True),
        result=COMMON,
    ),
    _scalar("lower", "the text in lower case, by Unicode", _TEXT_ARGUMENT, result=computed(_TEXT)),
    _scalar("upper", "the text in upper case, by Unicode", _TEXT_ARGUMENT, result=computed(_TEXT)),
    _scalar(
        "length",
        "how many characters (code points) the text has",
        _TEXT_ARGUMENT,
        result=computed(INTEGER),
    ),
    _scalar(
        "substring",
        "the characters of the text from `start` (the first is 1), at most `length` of them",
        _TEXT_ARGUMENT,
        FunctionArgument("start", FunctionArgumentKind.INTEGER),
        FunctionArgument("length", FunctionArgumentKind.INTEGER, optional=True),
        result=computed(_TEXT),
    ),
    _date_part("year", "the year of a day or instant", FunctionArgumentKind.TIME),
    _date_part("month", "the month, 1 to 12", FunctionArgumentKind.TIME),
    _date_part("day", "the day of the month, 1 to 31", FunctionArgumentKind.TIME),
    _date_part("hour", "the hour of an instant in UTC, 0 to 23", FunctionArgumentKind.INSTANT),
    _date_part("minute", "the minute, 0 to 59", FunctionArgumentKind.INSTANT),
    _date_part("second", "the whole second, 0 to 59", FunctionArgumentKind.INSTANT),
    _aggregate(
        name="count",
        arguments=(FunctionArgument("value", FunctionArgumentKind.ANYTHING),),
        result=PropertyType(Scalar.I64),
        about="how many values are not null; `count(distinct …)` counts different ones",
        local=Implementation("omnigraph.query.aggregation:count"),
        spark=Implementation("omnigraph.pipeline.query.aggregates:count"),
        allows_distinct=True,
        supports_row_weights=True,
        counts_rows=True,
    ),
    _aggregate(
        name="sum",
        arguments=_NUMBER_ARGUMENT,
        result=_NUMBER,
        about="sum of the values that are not null",
        local=Implementation("omnigraph.query.aggregation:sum_of_values"),
        spark=Implementation("omnigraph.pipeline.query.aggregates:sum_of_values"),
    ),
    _aggregate(
        name="avg",
        arguments=_NUMBER_ARGUMENT,
        result=_NUMBER,
        about="mean of the values that are not null",
        local=Implementation("omnigraph.query.aggregation:mean"),
        spark=Implementation("omnigraph.pipeline.query.aggregates:mean"),
    ),
    _aggregate(
        name="min",
        arguments=_ORDERABLE_ARGUMENT,
        result=None,
        about="smallest value; Strings by UTF-8 bytes, false before true",
        local=Implementation("omnigraph.query.aggregation:minimum"),
        spark=Implementation("omnigraph.pipeline.query.aggregates:minimum"),
        supports_row_weights=True,
    ),
    _aggregate(
        name="max",
        arguments=_ORDERABLE_ARGUMENT,
        result=None,
        about="largest value",
        local=Implementation("omnigraph.query.aggregation:maximum"),
        spark=Implementation("omnigraph.pipeline.query.aggregates:maximum"),
        supports_row_weights=True,
    ),
    _aggregate(
        name="collect",
        arguments=_ORDERABLE_ARGUMENT,
        result=LIST_OF,
        about="the values that are not null as a list, ascending; `collect(distinct …)` has each "
        "once",
        local=Implementation("omnigraph.query.aggregation:collect"),
        spark=Implementation("omnigraph.pipeline.query.aggregates:collect"),
        allows_distinct=True,
    ),
    _text_predicate(
        name="search",
        arguments=_TEXT_ARGUMENTS,
        about="the text contains any word of the query",
        mismatch_code=Code.SEARCH_MISFIT,
        local=Implementation("omnigraph.query.bm25:match_any_word"),
    ),
    _text_predicate(
        name="fuzzy",
        arguments=(
            *_TEXT_ARGUMENTS,
            FunctionArgument("max_edits", FunctionArgumentKind.INTEGER, optional=True),
        ),
        about="the text contains a word at most `max_edits` (default 2) letters away",
        mismatch_code=Code.SEARCH_MISFIT,
        local=Implementation("omnigraph.query.bm25:match_similar_words"),
    ),
    _text_predicate(
        name="match_text",
        arguments=_TEXT_ARGUMENTS,
        about="the text contains the query as a phrase",
        mismatch_code=Code.MATCH_TEXT_MISFIT,
        local=Implementation("omnigraph.query.bm25:match_phrase"),
    ),
    _ranking(
        name="bm25",
        arguments=_TEXT_ARGUMENTS,
        about="relevance of the text to the query; best first, rows without a match are left out",
        mismatch_code=Code.MATCH_TEXT_MISFIT,
        local=Implementation("omnigraph.query.search:TextRelevance"),
        spark=_RANKING_ON_SPARK,
        best_is_highest=True,
    ),
    _ranking(
        name="nearest",
        arguments=(
            FunctionArgument("property", FunctionArgumentKind.VECTOR_PROPERTY),
            FunctionArgument("query", FunctionArgumentKind.VECTOR_OR_TEXT),
        ),
        about="distance to the query vector; nearest first",
        mismatch_code=Code.BOUNDS_OR_NEAREST,
        local=Implementation("omnigraph.query.search:VectorDistance"),
        spark=Implementation("omnigraph.pipeline.query.expressions:vector_distance"),
        needs_limit=Code.NEAREST_NEEDS_LIMIT,
        refuses_alias=Code.NEAREST_WITH_ALIAS,
    ),
    _ranking(
        name="rrf",
        arguments=(
            FunctionArgument("first", FunctionArgumentKind.RANKING),
            FunctionArgument("second", FunctionArgumentKind.RANKING),
            FunctionArgument("k", FunctionArgumentKind.POSITIVE, optional=True),
        ),
        about="reciprocal rank fusion of two rankings, sum of 1 / (k + rank); k is 60 by default",
        mismatch_code=Code.RRF_MISFIT,
        local=Implementation("omnigraph.query.search:RankFusion"),
        spark=_RANKING_ON_SPARK,
        needs_limit=Code.RRF_MISFIT,
        best_is_highest=True,
    ),
    _path(
        name="shortest_path",
        result=PropertyType(Scalar.STRING, nullable=True, is_list=True),
        about="ids of the nodes on the way with the fewest edges, both ends included",
        local=Implementation("omnigraph.query.shortest_paths:path_node_ids"),
    ),
    _path(
        name="path_length",
        result=PropertyType(Scalar.I64, nullable=True),
        about="how many edges the shortest path has",
        local=Implementation("omnigraph.query.shortest_paths:path_lengths"),
    ),
)

_OPERATOR_ROWS = (
    _operator(ArithmeticOperator.ADD, "the sum", FunctionArgumentKind.NUMBER, "add", ARITHMETIC),
    _operator(
        ArithmeticOperator.SUBTRACT,
        "the difference",
        FunctionArgumentKind.NUMBER,
        "subtract",
        ARITHMETIC,
    ),
    _operator(
        ArithmeticOperator.MULTIPLY,
        "the product",
        FunctionArgumentKind.NUMBER,
        "multiply",
        ARITHMETIC,
    ),
    _operator(
        ArithmeticOperator.DIVIDE,
        "the quotient as a decimal number; null when the right side is zero",
        FunctionArgumentKind.NUMBER,
        "divide",
        ResultRule("`F64?`", lambda _: DECIMAL.as_nullable()),
    ),
    _operator(
        ArithmeticOperator.REMAINDER,
        "what is left of a whole division, with the sign of the left side; null when the right "
        "side is zero",
        FunctionArgumentKind.INTEGER,
        "remainder",
        ResultRule("`I64?`", lambda _: INTEGER.as_nullable()),
    ),
)
OPERATORS: Mapping[ArithmeticOperator, FunctionSpec] = MappingProxyType(
    {ArithmeticOperator(row.name): row for row in _OPERATOR_ROWS}
)
"""The arithmetic operators, which are functions with a syntax of their own."""

_BY_NAME = {row.name: row for row in _ROWS}
FUNCTIONS: Mapping[str, FunctionSpec] = MappingProxyType(_BY_NAME)
