"""This module answers the functions that look beyond one value: text predicates and rankings.

A ranking gives each row a score, or none. Exactly the rows of the match are ranked, so that a limit
is never starved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog import vector_metric
from omnigraph.errors import InvalidInput
from omnigraph.plan.expressions import Expression, FunctionCall, PropertyRef, property_refs
from omnigraph.plan.functions import FunctionKind
from omnigraph.query.evaluate import Evaluator
from omnigraph.query.frame import Frame
from omnigraph.query.store import Store, Table
from omnigraph.query.text import DEFAULT_EDITS, Texts
from omnigraph.query.vectors import distances, matrix

Scores = npt.NDArray[np.float64]
"""A score for each row; not a number where there is none."""
RRF_K = 60


@dataclass(frozen=True, slots=True)
class _Fusion:
    """What a `rrf` gives each node: a score, and a place among equal scores."""

    call: FunctionCall
    scores: Mapping[int, float]
    places: Mapping[int, int]


@dataclass(slots=True)
class Search:
    """Answers search functions for one run of a query.

    `depth` is how many nodes a `nearest` inside `rrf` ranks: those the result may show.
    """

    store: Store
    depth: int | None
    embed: Callable[[str, int], Sequence[float]]
    _fusions: list[_Fusion] = field(default_factory=list)

    def column(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> pa.Array:
        """Return the answer for each row."""
        if call.function.kind is FunctionKind.PREDICATE:
            return self._holds(call, frame, evaluator)
        scores = self.scores(call, frame, evaluator)[0]
        return pa.array(scores, pa.float64(), mask=np.isnan(scores))

    # --- text predicates -----------------------------------------------------------------------

    def _holds(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> pa.Array:
        table, name, positions = _target(call, frame, evaluator)
        query, *more = (evaluator.operand(argument, frame) for argument in call.arguments[1:])
        edits = more[0].as_py() if more else DEFAULT_EDITS
        texts = self._texts(table, name)
        held = np.zeros(frame.rows, np.bool_)
        for wanted, rows in _by_value(query, frame.rows):
            if wanted is not None and edits is not None:
                held[rows] = texts.holds(call.function.name, wanted, edits, positions[rows])
        return pa.array(held)

    def _texts(self, table: Table, name: str) -> Texts:
        key = (*table.key, f"words of {name}")
        found = self.store.get(key)
        if found is None:
            found = Texts(table.column(name))
            self.store.keep(key, found)
        assert isinstance(found, Texts), "nothing else is kept under this key"
        return found

    # --- rankings ------------------------------------------------------------------------------

    def scores(
        self, call: FunctionCall, frame: Frame, evaluator: Evaluator
    ) -> tuple[Scores, npt.NDArray[np.int64]]:
        """Return the score of each row, and a number that breaks ties between scores."""
        undecided = np.zeros(frame.rows, np.int64)
        match call.function.name:
            case "bm25":
                return self._relevance(call, frame, evaluator), undecided
            case "nearest":
                return self._distance(call, frame, evaluator), undecided
            case "rrf":
                return self._fused(call, frame, evaluator)
            case _ as name:
                raise AssertionError(f"{name} is no ranking")

    def _relevance(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Scores:
        table, name, positions = _target(call, frame, evaluator)
        scores = np.full(frame.rows, np.nan)
        for wanted, rows in _by_value(evaluator.operand(call.arguments[1], frame), frame.rows):
            if wanted is not None:
                found = self._texts(table, name).relevance(wanted)
                scores[rows] = [found.get(int(p), np.nan) for p in positions[rows]]
        return scores

    def _distance(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Scores:
        """Return distances by the metric of the property; a null has none."""
        table, name, positions = _target(call, frame, evaluator)
        wanted, back = positions, np.arange(frame.rows)
        if not isinstance(call.arguments[1], PropertyRef):
            wanted, back = np.unique(positions, return_inverse=True)
        queries = self._query_vectors(call, frame, evaluator)
        vectors = matrix(table.values(name, wanted), queries.shape[1])
        return distances(vector_metric(table.type.definition, name), vectors, queries)[back]

    def _query_vectors(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> Scores:
        """Return the vector to compare with, or one for each row; no numbers where it is null."""
        [target, *_] = property_refs(call.arguments[0])
        size, query = target.type.dimension or 0, call.arguments[1]
        if isinstance(query, PropertyRef) and not query.type.text:
            return matrix(evaluator.operand(query, frame), size)
        values: list[Any]
        if isinstance(query, PropertyRef):
            found = evaluator.operand(query, frame).to_pylist()
            embedded = {text: self.embed(text, size) for text in set(found) if text is not None}
            values = [embedded.get(text) for text in found]
        else:
            value = evaluator.value(query)
            values = [self.embed(value, size) if isinstance(value, str) else value]
        missing = np.full(size, np.nan)
        rows = [missing if v is None else np.asarray(v, np.float64) for v in values]
        return np.array(rows).reshape(-1, size)

    def _fused(
        self, call: FunctionCall, frame: Frame, evaluator: Evaluator
    ) -> tuple[Scores, npt.NDArray[np.int64]]:
        """Return the fused score of each row, and the place of its node for ties."""
        found = self._fusion(call, frame, evaluator)
        nodes = [int(node) for node in frame.positions[_ranked(call.arguments[0])]]
        scores = np.array([found.scores.get(node, np.nan) for node in nodes], np.float64)
        last = len(found.places)
        return scores, np.array([found.places.get(node, last) for node in nodes], np.int64)

    def _fusion(self, call: FunctionCall, frame: Frame, evaluator: Evaluator) -> _Fusion:
        """Return reciprocal rank fusion of two rankings; the rows that ask first are ranked."""
        for known in self._fusions:
            if known.call == call:
                return known
        first, second = call.arguments[0], call.arguments[1]
        variable = _ranked(first)
        k = RRF_K if len(call.arguments) < 3 else evaluator.value(call.arguments[2])
        arms = [self._ranks(arm, variable, frame, evaluator) for arm in (first, second)]
        order = list(dict.fromkeys([*arms[0], *arms[1]]))
        total = {node: sum(1 / (k + arm[node]) for arm in arms if node in arm) for node in order}
        places = {node: place for place, node in enumerate(order)}
        self._fusions.append(_Fusion(call, total, places))
        return self._fusions[-1]

    def _ranks(
        self, arm: Expression, variable: str, frame: Frame, evaluator: Evaluator
    ) -> dict[int, int]:
        """Number the different nodes of a variable from 1, best first."""
        assert isinstance(arm, FunctionCall), "an arm of a fusion is a ranking"
        scores, _ = self.scores(arm, frame, evaluator)
        rows = np.flatnonzero(~np.isnan(scores))
        best = -scores[rows] if arm.function.best_is_highest else scores[rows]
        ranked = _ranked(arm)
        names = [ranked, *sorted(name for name in frame.positions if name in evaluator.tables)]
        ties = [
            _places(evaluator.tables[name].values("id", frame.positions[name][rows]))
            for name in names
        ]
        order = np.lexsort([*reversed(ties), best])
        nodes = frame.positions[variable][rows[order]].tolist()
        different = list(dict.fromkeys(nodes))
        kept = different[: self.depth] if arm.function.name == "nearest" else different
        return {node: rank for rank, node in enumerate(kept, 1)}


def is_fusion(expression: Expression) -> bool:
    """Tell whether an expression is a `rrf`."""
    return isinstance(expression, FunctionCall) and expression.function.name == "rrf"


def _target(
    call: FunctionCall, frame: Frame, evaluator: Evaluator
) -> tuple[Table, str, npt.NDArray[np.int64]]:
    """Return the property a function searches: its table, its name, the nodes asked about."""
    reference = call.arguments[0]
    assert isinstance(reference, PropertyRef), "the checker lets only a property be searched"
    variable = reference.variable
    return evaluator.tables[variable], reference.property, frame.positions[variable]


def _ranked(call: Expression) -> str:
    """Return the variable whose nodes a ranking ranks; that of the first, if there are two."""
    return next(property_refs(call)).variable


def _by_value(
    operand: pa.Array | pa.Scalar, rows: int
) -> list[tuple[str | None, npt.NDArray[np.int64]]]:
    """Return the different queries and the rows that ask each."""
    if isinstance(operand, pa.Scalar):
        return [(operand.as_py(), np.arange(rows))]
    encoded = operand.dictionary_encode(null_encoding="encode")
    codes = np.asarray(encoded.indices)
    texts = encoded.dictionary.to_pylist()
    return [(text, np.flatnonzero(codes == code)) for code, text in enumerate(texts)]


def _places(texts: pa.Array) -> npt.NDArray[np.int64]:
    """Return numbers in the order of texts."""
    encoded = texts.dictionary_encode()
    order = np.argsort(np.array([t.encode() for t in encoded.dictionary.to_pylist()], object))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[np.asarray(encoded.indices)] if len(order) else np.zeros(0, np.int64)


def no_provider(text: str, dimension: int) -> Sequence[float]:
    """Say that nothing can turn text into a vector."""
    message = "no embedding provider is set up: give nearest() a vector instead of a text"
    raise InvalidInput(message, code="embedding_unavailable", dimension=dimension)
