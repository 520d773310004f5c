"""Evaluate text predicates and rankings, which depend on more than one value.

A ranking gives each row a score, or none. Exactly the rows of the match are ranked, so that a limit
is never starved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog import vector_metric
from omnigraph.commit.model import VersionState
from omnigraph.lang import Code, Diagnostic, QueryError
from omnigraph.plan.expressions import Expression, FunctionCall, PropertyRef, property_refs
from omnigraph.plan.functions import FunctionKind
from omnigraph.query.bm25 import DEFAULT_EDITS, TextIndex
from omnigraph.query.column_cache import SPARSE_RATIO, ColumnCache, TypeTable
from omnigraph.query.expressions import Evaluator
from omnigraph.query.frame import NO_ENTITY, Frame
from omnigraph.query.limits import MEMORY_CODE, QueryLimit, chunk_slices
from omnigraph.query.ranking import (
    RRF_K,
    FusedRanking,
    Scores,
    SparseScores,
    distinct_in_order,
    fuse_rankings,
    fuse_top_ranks,
    id_sort_ranks,
)
from omnigraph.query.sorting import dense_ranks
from omnigraph.query.text_index_cache import TextIndexCache
from omnigraph.query.vector_search import NearestVectors, distances, to_matrix, top_k_candidates
from omnigraph.storage.columns import Positions

NO_SCORES = SparseScores(np.empty(0, np.int64), np.empty(0))
ROW_BY_ROW_LIMIT = 1024
"""Rows up to this number are ranked one by one."""
TEXTS_AT_ONCE = 65_536
"""Texts that are searched at once when the words of all do not fit memory."""


@dataclass(slots=True)
class SearchEvaluator:
    """Evaluates search functions for one run of a query, and keeps what rankings share.

    `depth` is how many nodes a `nearest` inside `rrf` ranks: those the result may show. More rows
    than `few` are not all ranked exactly when only the first are shown.
    """

    store: ColumnCache
    depth: int | None
    embed: Callable[[TypeTable, str, Sequence[str]], Mapping[str, npt.NDArray[np.float32]]]
    words: TextIndexCache
    few: int = ROW_BY_ROW_LIMIT
    fusions: list[tuple[FunctionCall, FusedRanking]] = field(default_factory=list)
    top_fusions: list[tuple[FunctionCall, FusedRanking]] = field(default_factory=list)
    distances: list[tuple[FunctionCall, SparseScores]] = field(default_factory=list)
    relevances: dict[tuple[str, VersionState, str, str], SparseScores] = field(default_factory=dict)
    top_relevances: dict[tuple[str, VersionState, str, str], SparseScores] = field(
        default_factory=dict
    )

    def column(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> pa.Array:
        """Return the answer for each row."""
        if call.function.kind is FunctionKind.PREDICATE:
            return self._holds(call, frame, evaluator)
        scores = self.scores(call, frame, evaluator)[0]
        return pa.array(scores, pa.float64(), mask=np.isnan(scores))

    # --- text predicates -----------------------------------------------------------------------

    def _holds(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> pa.Array:
        table, name, positions = _search_target(call, frame, evaluator)
        if self._can_index(table, name, evaluator):
            return pa.array(self._held(call, frame, evaluator))
        held, [target, *_] = np.zeros(frame.rows, np.bool_), property_refs(call.arguments[0])
        size = evaluator.rows_at_once([target], TEXTS_AT_ONCE)
        for part in chunk_slices(len(positions), size):
            evaluator.check()
            held[part] = self._held(call, frame.take(part), evaluator)
        return pa.array(held)

    def _held(
        self, call: FunctionCall, frame: Frame, evaluator: Evaluator
    ) -> npt.NDArray[np.bool_]:
        """Return for which rows a text predicate holds."""
        table, name, positions = _search_target(call, frame, evaluator)
        query, *more = (evaluator.operand(argument, frame) for argument in call.arguments[1:])
        edits = more[0].as_py() if more else DEFAULT_EDITS
        texts, places = self._texts(table, name, positions, evaluator)
        held, match = np.zeros(frame.rows, np.bool_), call.function.local.load()
        for text, rows in _rows_by_query(query, frame.rows):
            if text is not None and edits is not None:
                held[rows] = texts.holds(match, text, edits)[places[rows]]
        return held

    def _texts(
        self, table: TypeTable, name: str, positions: Positions, evaluator: Evaluator
    ) -> tuple[TextIndex, Positions]:
        """Return texts, and which of them those at positions are; few are cut by themselves."""
        can_index = self._can_index(table, name, evaluator)
        many = len(positions) * SPARSE_RATIO > table.rows
        if can_index and (many or self.words.known(table, name)):
            return self.words.texts(table, name, evaluator.check), positions
        distinct, back = np.unique(positions, return_inverse=True)
        return TextIndex.of(table.values(name, distinct, whole=can_index)), back

    def _can_index(self, table: TypeTable, name: str, evaluator: Evaluator) -> bool:
        """Return whether the words of all texts are in memory, or the query may read all texts."""
        return self.words.known(table, name) or evaluator.reads_whole(table, name)

    def index(self, table: TypeTable, name: str, evaluator: Evaluator) -> TextIndex:
        """Return the words of all texts; raise QueryLimit when these do not fit memory."""
        if not self._can_index(table, name, evaluator):
            message = (
                f"a ranking would read all texts of {table.type.name}.{name}, more than the query "
                "may hold in memory; raise its memory limit"
            )
            limit = evaluator.memory
            raise QueryLimit(message, code=MEMORY_CODE, operator="Search", limit=limit)
        return self.words.texts(table, name, evaluator.check)

    # --- rankings ------------------------------------------------------------------------------

    def ranking(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Ranking:
        """Return the ranking of some rows that a call names."""
        ranking: Ranking = call.function.local.load()(self, call, frame, evaluator)
        return ranking

    def best(
        self, call: FunctionCall, frame: Frame, evaluator: Evaluator, count: int
    ) -> Positions | None:
        """Return rows among which are the first by a ranking, ascending; None for all rows."""
        if call.function.kind is not FunctionKind.RANK or frame.rows <= max(self.few, count):
            return None
        return self.ranking(call, frame, evaluator).best(count)

    def scores(
        self, call: FunctionCall, frame: Frame, evaluator: Evaluator
    ) -> tuple[Scores, Positions]:
        """Return the score of each row, and a number that breaks ties between scores."""
        return self.ranking(call, frame, evaluator).scores()


@dataclass(frozen=True, slots=True)
class Ranking(ABC):
    """One call of a ranking on the rows of a frame; only `scores` has to be implemented."""

    search: SearchEvaluator
    call: FunctionCall
    frame: Frame
    evaluator: Evaluator
    ranks_first_only: ClassVar[bool] = False
    """Whether it ranks only as many nodes as are shown when it is part of a fusion."""

    @abstractmethod
    def scores(self) -> tuple[Scores, Positions]:
        """Return the score of each row, and a number that breaks ties between scores."""

    def type_scores(self) -> SparseScores | None:
        """Return the scores of all entities of the type, where these are found at once."""
        return None

    def best(self, count: int) -> Positions | None:
        """Return rows among which are the first, ascending; None for all rows."""
        rows, scores = self.scored_rows()
        return rows[self._first(scores, count)]

    def _first(self, scores: Scores, count: int) -> Positions:
        best = -scores if self.call.function.best_is_highest else scores
        return top_k_candidates(best, best, count)

    @property
    def variable(self) -> str:
        """The variable whose nodes are ranked; that of the first, if there are two."""
        return next(property_refs(self.call)).variable

    @property
    def is_of_whole_type(self) -> bool:
        """Whether all entities of the type are ranked."""
        return (
            self.frame.positions[self.variable] is self.evaluator.tables[self.variable].everything
        )

    def scored_rows(self) -> tuple[Positions, Scores]:
        """Return the rows that have a score, ascending, and their scores."""
        sparse = self.type_scores()
        if sparse is None:
            return self._scored_one_by_one()
        if self.is_of_whole_type:
            return sparse.positions, sparse.scores
        numbers = sparse.numbers(self.frame.positions[self.variable])
        rows = np.flatnonzero(numbers >= 0)
        return rows, sparse.scores[numbers[rows]]

    def _scored_one_by_one(self) -> tuple[Positions, Scores]:
        scores = self.scores()[0]
        rows = np.flatnonzero(~np.isnan(scores))
        return rows, scores[rows]

    def order(self) -> Positions:
        """Return the rows that have a score, best first; ties break by ids."""
        is_small = self.frame.rows <= ROW_BY_ROW_LIMIT
        rows, scores = self._scored_one_by_one() if is_small else self.scored_rows()
        best = -scores if self.call.function.best_is_highest else scores
        positions, tables = self.frame.positions, self.evaluator.tables
        named = sorted(name for name in positions if name in tables)
        ties = [
            self._id_ranks(name, tables[name], positions[name][rows])
            for name in dict.fromkeys([self.variable, *named])
        ]
        return rows[np.lexsort([*reversed(ties), best])]

    def _id_ranks(self, name: str, table: TypeTable, positions: Positions) -> Positions:
        """Return the places of ids among all; no entity comes before all."""
        if name in self.evaluator.unions:
            return dense_ranks(self.evaluator.values(name, "id", positions))
        ranks = np.full(len(positions), NO_ENTITY)
        there = positions != NO_ENTITY
        ranks[there] = id_sort_ranks(self.search.store, table, positions[there])
        return ranks

    def best_in_order(self, count: int) -> Positions | None:
        """Return the rows of `best` in order; None where these are all rows."""
        rows = self.search.best(self.call, self.frame, self.evaluator, count)
        if rows is None:
            return None
        return rows[replace(self, frame=self.frame.take(rows)).order()]

    def ranked_nodes(self, variable: str) -> Positions:
        """Return the different nodes of a variable, best first."""
        nodes = self.frame.positions[variable]
        most = self.search.depth if self.ranks_first_only else None
        count = most or 0
        while most is not None:
            order = self.best_in_order(count)
            if order is None:
                break
            # Of what is left out nothing is among the first rows; behind them it may be.
            first = distinct_in_order(nodes[order[:count]])
            if len(first) >= most or len(order) < count:
                return first[:most]
            count *= 4
        return distinct_in_order(nodes[self.order()])[:most]


class TypeRanking(Ranking):
    """A ranking that finds the rank of any node among all entities of its type."""

    @abstractmethod
    def later_ranks(self, nodes: Positions) -> tuple[Positions, Positions]:
        """Return those of some nodes that have a rank, and their ranks among all entities."""


class TextRelevance(TypeRanking):
    """`bm25`: the relevance of a text of each row; one without a match has none."""

    def scores(self) -> tuple[Scores, Positions]:
        """Return the relevance of each row."""
        _, _, positions = _search_target(self.call, self.frame, self.evaluator)
        query = self.evaluator.operand(self.call.arguments[1], self.frame)
        scores = np.full(self.frame.rows, np.nan)
        for text, rows in _rows_by_query(query, self.frame.rows):
            if text is not None:
                scores[rows] = self._relevance_at(text, positions[rows])
        return scores, np.zeros(self.frame.rows, np.int64)

    def type_scores(self) -> SparseScores | None:
        """Return the relevance of all texts of the type to one query."""
        if isinstance(self.call.arguments[1], PropertyRef):
            return None
        query = self.evaluator.value(self.call.arguments[1])
        return NO_SCORES if query is None else self._relevance(query)

    def best(self, count: int) -> Positions | None:
        """Return the most relevant texts, found without the others when all are ranked."""
        is_property = isinstance(self.call.arguments[1], PropertyRef)
        query = None if is_property else self.evaluator.value(self.call.arguments[1])
        if query is None or not self.is_of_whole_type:
            return super().best(count)
        first = self._texts.first(query, count)
        self.search.top_relevances[self._key(query)] = first
        return first.positions[self._first(first.scores, count)]

    def later_ranks(self, nodes: Positions) -> tuple[Positions, Positions]:
        """Return those of some nodes whose texts match, and their ranks among all texts."""
        ranks = np.empty(0, np.int64)
        query = self.evaluator.value(self.call.arguments[1])
        if query is None:
            return ranks, ranks
        table, _, _ = _search_target(self.call, self.frame, self.evaluator)
        sparse = self._texts.scored(query, nodes)
        there, scores = nodes[sparse.scores > 0], sparse.scores[sparse.scores > 0]
        every = self._texts.above(query, scores.min()) if len(scores) else sparse
        for node, score in zip(there, scores, strict=True):
            equal = every.positions[every.scores == score]
            ids = id_sort_ranks(self.search.store, table, np.append(equal, node))
            before = np.count_nonzero(every.scores > score) + np.count_nonzero(ids[:-1] < ids[-1])
            ranks = np.append(ranks, before + 1)
        return there, ranks

    @property
    def _texts(self) -> TextIndex:
        table, name, _ = _search_target(self.call, self.frame, self.evaluator)
        return self.search.index(table, name, self.evaluator)

    def _key(self, query: str) -> tuple[str, VersionState, str, str]:
        table, name, _ = _search_target(self.call, self.frame, self.evaluator)
        return (*table.key, name, query)

    def _relevance_at(self, query: str, positions: Positions) -> Scores:
        first = self.search.top_relevances.get(self._key(query))
        scores = first.at(positions) if first is not None else np.full(1, np.nan)
        return self._relevance(query).at(positions) if np.isnan(scores).any() else scores

    def _relevance(self, query: str) -> SparseScores:
        key, cache = self._key(query), self.search.relevances
        if key not in cache:
            cache[key] = self._texts.relevance(query)
        return cache[key]


class VectorDistance(TypeRanking):
    """`nearest`: the distance of a vector of each row by the metric of the property."""

    ranks_first_only = True

    def scores(self) -> tuple[Scores, Positions]:
        """Return the distance of each row; a null has none."""
        return self._distances(), np.zeros(self.frame.rows, np.int64)

    def _distances(self) -> Scores:
        table, name, positions = _search_target(self.call, self.frame, self.evaluator)
        metric = vector_metric(table.type.definition, name)
        queries = self._query_vectors()
        size = queries.shape[1]
        if isinstance(self.call.arguments[1], PropertyRef):
            return distances(metric, to_matrix(table.values(name, positions), size), queries)
        nodes, back = np.unique(positions, return_inverse=True)
        cached = _find_call(self.search.distances, self.call)
        scores = cached.at(nodes) if cached is not None else np.full(1, np.nan)
        if np.isnan(scores).any():
            scores = distances(metric, to_matrix(table.values(name, nodes), size), queries)
            self.search.distances.append((self.call, SparseScores(nodes, scores)))
        return scores[back]

    def best(self, count: int) -> Positions | None:
        """Return rows whose vectors may be the nearest; None for all rows."""
        if isinstance(self.call.arguments[1], PropertyRef):
            return None
        table, name, positions = _search_target(self.call, self.frame, self.evaluator)
        query = self._query_vectors()[0]
        near = NearestVectors(self.search.store, table, name).nearest(query, positions, count)
        if near is None:
            return None
        rows, scores = near
        nodes, first = np.unique(positions[rows], return_index=True)
        self.search.distances.append((self.call, SparseScores(nodes, scores[first])))
        return rows

    def later_ranks(self, nodes: Positions) -> tuple[Positions, Positions]:
        """Return nothing: in a fusion, nodes behind the first have no rank."""
        return nodes[:0], nodes[:0]

    def _query_vectors(self) -> Scores:
        """Return the vector to compare with, or one for each row; no numbers where it is null."""
        [target, *_] = property_refs(self.call.arguments[0])
        size, query = target.type.dimension or 0, self.call.arguments[1]
        if isinstance(query, PropertyRef) and not query.type.text:
            return to_matrix(self.evaluator.operand(query, self.frame), size)
        values: list[Any]
        if isinstance(query, PropertyRef):
            values = self.evaluator.operand(query, self.frame).to_pylist()
            # An empty text of an entity is nothing to compare with; asking for one is a mistake.
            texts = [text for text in values if text is not None and text.strip()]
        else:
            values = [self.evaluator.value(query)]
            texts = [value for value in values if isinstance(value, str)]
        table, name, _ = _search_target(self.call, self.frame, self.evaluator)
        embedded = self.search.embed(table, name, texts)
        values = [embedded.get(v) if isinstance(v, str) else v for v in values]
        missing = np.full(size, np.nan)
        rows = [missing if v is None else np.asarray(v, np.float64) for v in values]
        return np.array(rows).reshape(-1, size)


class RankFusion(Ranking):
    """`rrf`: the reciprocal rank fusion of two rankings."""

    def scores(self) -> tuple[Scores, Positions]:
        """Return the fusion of each row, only of what is shown if that suffices."""
        fusion = _find_call(self.search.top_fusions, self.call) or self._fusion()
        return fusion.of(self.frame.positions[self.variable])

    def type_scores(self) -> SparseScores | None:
        """Return the scores of all nodes that either ranking ranks."""
        return self._fusion().scored

    def best(self, count: int) -> Positions | None:
        """Return the first of the fusion, from the first of both rankings if these suffice."""
        fusion = self._fuse_first(count)
        return super().best(count) if fusion is None else fusion.scored.positions

    @property
    def _k(self) -> int:
        k = self.evaluator.value(self.call.arguments[2]) if self.call.arguments[2:] else None
        if k is not None and k < 1:
            message = f"rrf(): k must be a positive integer, not {k}"
            raise QueryError([Diagnostic(Code.RRF_MISFIT, message)])
        return RRF_K if k is None else int(k)

    @property
    def _arms(self) -> list[Ranking]:
        calls = (arm for arm in self.call.arguments[:2] if isinstance(arm, FunctionCall))
        return [self.search.ranking(call, self.frame, self.evaluator) for call in calls]

    def _fusion(self) -> FusedRanking:
        """Return the fusion of two rankings; the rows that ask first are ranked."""
        fusion = _find_call(self.search.fusions, self.call)
        if fusion is None:
            first, second = (arm.ranked_nodes(self.variable) for arm in self._arms)
            fusion = fuse_rankings(first, second, self._k)
            self.search.fusions.append((self.call, fusion))
        return fusion

    def _fuse_first(self, count: int) -> FusedRanking | None:
        """Fuse only the first nodes when all of a type are ranked; None if that is not enough."""
        arms = [arm for arm in self._arms if isinstance(arm, TypeRanking)]
        alone = len(self.frame.positions) == 1 and len(list(property_refs(self.call))) == 2
        # One ranking has to be whole: a `nearest` is, with as many nodes as are shown.
        whole = count == self.search.depth and any(arm.ranks_first_only for arm in arms)
        if not (alone and whole and len(arms) == 2 and self.is_of_whole_type):
            return None
        heads: list[Positions] = []
        for arm in arms:
            order = arm.best_in_order(count)
            if order is None:
                return None
            heads.append(order[:count])

        def later_ranks(number: int, nodes: Positions) -> tuple[Positions, Positions]:
            return arms[number].later_ranks(nodes)

        fusion = fuse_top_ranks(heads[0], heads[1], later_ranks, self._k)
        self.search.top_fusions.append((self.call, fusion))
        return fusion


_RankedT = TypeVar("_RankedT")


def _find_call(
    entries: Sequence[tuple[FunctionCall, _RankedT]], call: FunctionCall
) -> _RankedT | None:
    """Return what is known of an equal call; calls with lists of numbers cannot be hashed."""
    return next((value for other, value in entries if other == call), None)


def is_fusion(expression: Expression) -> bool:
    """Return whether an expression fuses rankings."""
    return isinstance(expression, FunctionCall) and expression.function.is_fusion


def _search_target(
    call: FunctionCall, frame: Frame, evaluator: Evaluator
) -> tuple[TypeTable, str, npt.NDArray[np.int64]]:
    """Return the property a function searches: its table, its name, the nodes asked about."""
    reference = call.arguments[0]
    assert isinstance(reference, PropertyRef), "the checker lets only a property be searched"
    variable = reference.variable
    return evaluator.tables[variable], reference.property, frame.positions[variable]


def _rows_by_query(
    operand: pa.Array | pa.Scalar, rows: int
) -> list[tuple[str | None, npt.NDArray[np.int64]]]:
    """Return the different queries and the rows that ask each."""
    if isinstance(operand, pa.Scalar):
        return [(operand.as_py(), np.arange(rows))]
    encoded = operand.dictionary_encode(null_encoding="encode")
    codes = np.asarray(encoded.indices)
    texts = encoded.dictionary.to_pylist()
    return [(text, np.flatnonzero(codes == code)) for code, text in enumerate(texts)]
