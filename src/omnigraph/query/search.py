"""Evaluate text predicates and rankings, which depend on more than one value.

A ranking gives each row a score, or none. Exactly the rows of the match are ranked, so that a limit
is never starved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog import vector_metric
from omnigraph.plan.expressions import Expression, FunctionCall, PropertyRef, property_refs
from omnigraph.plan.functions import FunctionKind
from omnigraph.query.bm25 import DEFAULT_EDITS, TextIndex
from omnigraph.query.column_cache import SPARSE_RATIO, ColumnCache, TypeTable
from omnigraph.query.expressions import Evaluator
from omnigraph.query.frame import Frame
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
from omnigraph.query.text_index_cache import TextIndexCache
from omnigraph.query.vector_search import NearestVectors, distances, to_matrix, top_k_candidates
from omnigraph.storage.columns import Positions

NO_SCORES = SparseScores(np.empty(0, np.int64), np.empty(0))
ROW_BY_ROW_LIMIT = 1024
"""Rows up to this number are ranked one by one."""


@dataclass(slots=True)
class SearchEvaluator:
    """Answers search functions for one run of a query.

    `depth` is how many nodes a `nearest` inside `rrf` ranks: those the result may show. More rows
    than `few` are not all ranked exactly when only the first are shown.
    """

    store: ColumnCache
    depth: int | None
    embed: Callable[[TypeTable, str, Sequence[str]], Mapping[str, npt.NDArray[np.float32]]]
    words: TextIndexCache
    few: int = ROW_BY_ROW_LIMIT
    _fusions: list[tuple[FunctionCall, FusedRanking]] = field(default_factory=list)
    _distances: list[tuple[FunctionCall, SparseScores]] = field(default_factory=list)
    _relevances: dict[tuple[str, int, str, str], SparseScores] = field(default_factory=dict)
    _firsts: dict[tuple[str, int, str, str], SparseScores] = field(default_factory=dict)
    _shown: list[tuple[FunctionCall, FusedRanking]] = field(default_factory=list)

    def column(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> pa.Array:
        """Return the answer for each row."""
        if call.function.kind is FunctionKind.PREDICATE:
            return self._holds(call, frame, evaluator)
        scores = self.scores(call, frame, evaluator)[0]
        return pa.array(scores, pa.float64(), mask=np.isnan(scores))

    # --- text predicates -----------------------------------------------------------------------

    def _holds(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> pa.Array:
        table, name, positions = _search_target(call, frame, evaluator)
        query, *more = (evaluator.operand(argument, frame) for argument in call.arguments[1:])
        edits = more[0].as_py() if more else DEFAULT_EDITS
        texts, places = self._texts(table, name, positions)
        held, match = np.zeros(frame.rows, np.bool_), call.function.local.load()
        for wanted, rows in _rows_by_query(query, frame.rows):
            if wanted is not None and edits is not None:
                held[rows] = texts.holds(match, wanted, edits)[places[rows]]
        return pa.array(held)

    def _texts(
        self, table: TypeTable, name: str, positions: Positions
    ) -> tuple[TextIndex, Positions]:
        """Return texts, and which of them those at positions are; few are cut by themselves."""
        if len(positions) * SPARSE_RATIO > table.rows or self.words.known(table, name):
            return self.words.texts(table, name), positions
        wanted, back = np.unique(positions, return_inverse=True)
        return TextIndex.of(table.values(name, wanted)), back

    # --- rankings ------------------------------------------------------------------------------

    def best(
        self, call: FunctionCall, frame: Frame, evaluator: Evaluator, count: int
    ) -> Positions | None:
        """Return rows among which are the first by a ranking, ascending; None for all rows."""
        if call.function.kind is not FunctionKind.RANK or frame.rows <= max(self.few, count):
            return None
        if call.function.name == "nearest":
            return self._nearest(call, frame, evaluator, count)
        if call.function.name == "rrf" and self._fuse_heads(call, frame, evaluator, count):
            return self._shown[-1][1].scored.positions
        rows, scores = self._first_texts(call, frame, evaluator, count) or self._scored(
            call, frame, evaluator
        )
        best = -scores if call.function.best_is_highest else scores
        return rows[top_k_candidates(best, best, count)]

    def _first_texts(
        self, call: FunctionCall, frame: Frame, evaluator: Evaluator, count: int
    ) -> tuple[Positions, Scores] | None:
        """Return the most relevant texts, when all of a type are ranked; else None."""
        if call.function.name != "bm25" or isinstance(call.arguments[1], PropertyRef):
            return None
        table, name, positions = _search_target(call, frame, evaluator)
        query = evaluator.value(call.arguments[1])
        if query is None or positions is not table.everything:
            return None
        found = self.words.texts(table, name).first(query, count)
        self._firsts[(*table.key, name, query)] = found
        return found.positions, found.scores

    def _scored(
        self, call: FunctionCall, frame: Frame, evaluator: Evaluator
    ) -> tuple[Positions, Scores]:
        """Return the rows that have a score, ascending, and their scores."""
        found = self._whole(call, frame, evaluator)
        if found is None:
            scores = self.scores(call, frame, evaluator)[0]
            rows = np.flatnonzero(~np.isnan(scores))
            return rows, scores[rows]
        variable = _ranked_variable(call)
        if frame.positions[variable] is evaluator.tables[variable].everything:
            return found.positions, found.scores
        numbers = found.numbers(frame.positions[variable])
        rows = np.flatnonzero(numbers >= 0)
        return rows, found.scores[numbers[rows]]

    def _whole(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> SparseScores | None:
        """Return what a ranking gives to all entities of the type, where that is known at once."""
        if call.function.name == "rrf":
            return self._fusion(call, frame, evaluator).scored
        if call.function.name == "bm25" and not isinstance(call.arguments[1], PropertyRef):
            table, name, _ = _search_target(call, frame, evaluator)
            query = evaluator.value(call.arguments[1])
            return NO_SCORES if query is None else self._relevant(table, name, query)
        return None

    def _nearest(
        self, call: FunctionCall, frame: Frame, evaluator: Evaluator, count: int
    ) -> Positions | None:
        """Return rows whose vectors may be the nearest; None for all rows."""
        if isinstance(call.arguments[1], PropertyRef):
            return None
        table, name, positions = _search_target(call, frame, evaluator)
        query = self._query_vectors(call, frame, evaluator)[0]
        found = NearestVectors(self.store, table, name).nearest(query, positions, count)
        if found is None:
            return None
        rows, scores = found
        different, first = np.unique(positions[rows], return_index=True)
        self._distances.append((call, SparseScores(different, scores[first])))
        return rows

    def scores(
        self, call: FunctionCall, frame: Frame, evaluator: Evaluator
    ) -> tuple[Scores, Positions]:
        """Return the score of each row, and a number that breaks ties between scores."""
        rank: RankFunction = call.function.local.load()
        return rank(self, call, frame, evaluator)

    def relevance(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Scores:
        """Return the relevance of a text of each row; one without a match has none."""
        table, name, positions = _search_target(call, frame, evaluator)
        scores = np.full(frame.rows, np.nan)
        for wanted, rows in _rows_by_query(evaluator.operand(call.arguments[1], frame), frame.rows):
            if wanted is not None:
                scores[rows] = self._relevant_at(table, name, wanted, positions[rows])
        return scores

    def _relevant_at(self, table: TypeTable, name: str, query: str, asked: Positions) -> Scores:
        known = self._firsts.get((*table.key, name, query))
        scores = known.at(asked) if known is not None else np.full(1, np.nan)
        if np.isnan(scores).any():
            scores = self._relevant(table, name, query).at(asked)
        return scores

    def _relevant(self, table: TypeTable, name: str, query: str) -> SparseScores:
        key = (*table.key, name, query)
        if key not in self._relevances:
            self._relevances[key] = self.words.texts(table, name).relevance(query)
        return self._relevances[key]

    def distance(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Scores:
        """Return distances by the metric of the property; a null has none."""
        table, name, positions = _search_target(call, frame, evaluator)
        metric = vector_metric(table.type.definition, name)
        queries = self._query_vectors(call, frame, evaluator)
        if isinstance(call.arguments[1], PropertyRef):
            return distances(
                metric, to_matrix(table.values(name, positions), queries.shape[1]), queries
            )
        wanted, back = np.unique(positions, return_inverse=True)
        known = next((found for other, found in self._distances if other == call), None)
        scores = known.at(wanted) if known is not None else np.full(1, np.nan)
        if np.isnan(scores).any():
            scores = distances(
                metric, to_matrix(table.values(name, wanted), queries.shape[1]), queries
            )
            self._distances.append((call, SparseScores(wanted, scores)))
        return scores[back]

    def _query_vectors(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Scores:
        """Return the vector to compare with, or one for each row; no numbers where it is null."""
        [target, *_] = property_refs(call.arguments[0])
        size, query = target.type.dimension or 0, call.arguments[1]
        if isinstance(query, PropertyRef) and not query.type.text:
            return to_matrix(evaluator.operand(query, frame), size)
        values: list[Any]
        if isinstance(query, PropertyRef):
            values = evaluator.operand(query, frame).to_pylist()
            # An empty text of an entity is nothing to compare with; asking for one is a mistake.
            texts = [text for text in values if text is not None and text.strip()]
        else:
            values = [evaluator.value(query)]
            texts = [value for value in values if isinstance(value, str)]
        table, name, _ = _search_target(call, frame, evaluator)
        embedded = self.embed(table, name, texts)
        values = [embedded.get(v) if isinstance(v, str) else v for v in values]
        missing = np.full(size, np.nan)
        rows = [missing if v is None else np.asarray(v, np.float64) for v in values]
        return np.array(rows).reshape(-1, size)

    def fusion(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> FusedRanking:
        """Return the fusion of two rankings, only of what is shown if that suffices."""
        shown = next((fusion for known, fusion in self._shown if known == call), None)
        return shown or self._fusion(call, frame, evaluator)

    def _fusion(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> FusedRanking:
        """Return the fusion of two rankings; the rows that ask first are ranked."""
        found = next((fusion for known, fusion in self._fusions if known == call), None)
        if found is None:
            k = RRF_K if len(call.arguments) < 3 else evaluator.value(call.arguments[2])
            variable, arms = _ranked_variable(call), call.arguments[:2]
            one, other = (self._ranks(arm, variable, frame, evaluator) for arm in arms)
            found = fuse_rankings(one, other, k)
            self._fusions.append((call, found))
        return found

    def _fuse_heads(
        self, call: FunctionCall, frame: Frame, evaluator: Evaluator, count: int
    ) -> bool:
        """Fuse only the first nodes when all of a type are ranked; return whether that was done."""
        table = evaluator.tables[_ranked_variable(call)]
        alone = len(frame.positions) == 1 and len(list(property_refs(call))) == 2
        arms = [arm for arm in call.arguments[:2] if isinstance(arm, FunctionCall)]
        # One ranking has to be whole: a `nearest` is, with as many nodes as are shown.
        names = {arm.function.name for arm in arms}
        whole = count == self.depth and "nearest" in names and names <= {"nearest", "bm25"}
        if not (alone and whole and frame.positions[_ranked_variable(call)] is table.everything):
            return False
        heads: list[Positions] = []
        for arm in arms:
            rows = self.best(arm, frame, evaluator, count)
            if rows is None:
                return False
            heads.append(rows[self._order(arm, frame.take(rows), evaluator)][:count])

        def deeper(number: int, nodes: Positions) -> tuple[Positions, Positions]:
            return self._deeper(arms[number], nodes, frame, evaluator)

        k = RRF_K if len(call.arguments) < 3 else evaluator.value(call.arguments[2])
        self._shown.append((call, fuse_top_ranks(heads[0], heads[1], deeper, k)))
        return True

    def _deeper(
        self, arm: FunctionCall, nodes: Positions, frame: Frame, evaluator: Evaluator
    ) -> tuple[Positions, Positions]:
        """Return those of some nodes that a ranking ranks, and their ranks among all."""
        nothing = np.empty(0, np.int64)
        table, name, _ = _search_target(arm, frame, evaluator)
        query = evaluator.value(arm.arguments[1])
        if arm.function.name == "nearest" or query is None:
            return nothing, nothing
        texts = self.words.texts(table, name)
        found = texts.scored(query, nodes)
        there, scores = nodes[found.scores > 0], found.scores[found.scores > 0]
        ranks = nothing
        every = texts.above(query, scores.min()) if len(scores) else found
        for node, score in zip(there, scores, strict=True):
            equal = every.positions[every.scores == score]
            ids = id_sort_ranks(self.store, table, np.append(equal, node))
            before = np.count_nonzero(every.scores > score) + np.count_nonzero(ids[:-1] < ids[-1])
            ranks = np.append(ranks, before + 1)
        return there, ranks

    def _ranks(
        self, arm: Expression, variable: str, frame: Frame, evaluator: Evaluator
    ) -> Positions:
        """Return the different nodes of a variable, best first."""
        assert isinstance(arm, FunctionCall), "an arm of a fusion is a ranking"
        cut = self.depth if arm.function.name == "nearest" else None
        asked = cut or 0
        while cut is not None:
            rows = self.best(arm, frame, evaluator, asked)
            if rows is None:
                break
            order = rows[self._order(arm, frame.take(rows), evaluator)]
            # Of what is left out nothing is among the first rows; behind them it may be.
            found = distinct_in_order(frame.positions[variable][order[:asked]])
            if len(found) >= cut or len(order) < asked:
                return found[:cut]
            asked *= 4
        order = self._order(arm, frame, evaluator)
        return distinct_in_order(frame.positions[variable][order])[:cut]

    def _order(self, arm: FunctionCall, frame: Frame, evaluator: Evaluator) -> Positions:
        """Return the rows that have a score, best first; ties break by ids."""
        if frame.rows <= ROW_BY_ROW_LIMIT:
            dense = self.scores(arm, frame, evaluator)[0]
            rows = np.flatnonzero(~np.isnan(dense))
            scores = dense[rows]
        else:
            rows, scores = self._scored(arm, frame, evaluator)
        best = -scores if arm.function.best_is_highest else scores
        named = sorted(name for name in frame.positions if name in evaluator.tables)
        ties = [
            id_sort_ranks(self.store, evaluator.tables[name], frame.positions[name][rows])
            for name in dict.fromkeys([_ranked_variable(arm), *named])
        ]
        return rows[np.lexsort([*reversed(ties), best])]


RankFunction: TypeAlias = Callable[
    [SearchEvaluator, FunctionCall, Frame, Evaluator], tuple[Scores, Positions]
]
"""A ranking: returns the score of each row, and numbers that break ties between scores."""


def bm25_scores(
    search: SearchEvaluator, call: FunctionCall, frame: Frame, evaluator: Evaluator
) -> tuple[Scores, Positions]:
    """Return the relevance of a text of each row."""
    return search.relevance(call, frame, evaluator), np.zeros(frame.rows, np.int64)


def nearest_scores(
    search: SearchEvaluator, call: FunctionCall, frame: Frame, evaluator: Evaluator
) -> tuple[Scores, Positions]:
    """Return the distance of a vector of each row."""
    return search.distance(call, frame, evaluator), np.zeros(frame.rows, np.int64)


def fused_scores(
    search: SearchEvaluator, call: FunctionCall, frame: Frame, evaluator: Evaluator
) -> tuple[Scores, Positions]:
    """Return the reciprocal rank fusion of two rankings of each row."""
    fusion = search.fusion(call, frame, evaluator)
    return fusion.of(frame.positions[_ranked_variable(call)])


def is_fusion(expression: Expression) -> bool:
    """Return whether an expression is a `rrf`."""
    return isinstance(expression, FunctionCall) and expression.function.name == "rrf"


def _search_target(
    call: FunctionCall, frame: Frame, evaluator: Evaluator
) -> tuple[TypeTable, str, npt.NDArray[np.int64]]:
    """Return the property a function searches: its table, its name, the nodes asked about."""
    reference = call.arguments[0]
    assert isinstance(reference, PropertyRef), "the checker lets only a property be searched"
    variable = reference.variable
    return evaluator.tables[variable], reference.property, frame.positions[variable]


def _ranked_variable(call: Expression) -> str:
    """Return the variable whose nodes a ranking ranks; that of the first, if there are two."""
    return next(property_refs(call)).variable


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
