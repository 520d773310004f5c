"""Implementations of the toy functions that `tests/architecture/test_extending.py` registers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from omnigraph.pipeline.execution.expressions import ExpressionCompiler
from omnigraph.plan.expressions import FunctionCall
from omnigraph.query.aggregation import Grouping
from omnigraph.query.bm25 import TextIndex
from omnigraph.query.expressions import Constants, Evaluator
from omnigraph.query.frame import Frame
from omnigraph.query.ranking import Scores
from omnigraph.query.search import Ranking
from omnigraph.query.shortest_paths import PathSearch
from omnigraph.storage.columns import Positions


def today(constants: Constants) -> date:
    """Return the day the request started."""
    return constants.now.date()


def spread(call: FunctionCall, frame: Frame, evaluator: Evaluator, grouping: Grouping) -> pa.Array:
    """Return the difference between the largest and the smallest value of each group."""
    groups, size = grouping
    values = evaluator.column(call.arguments[0], frame).to_pylist()
    members: list[list[Any]] = [[] for _ in range(size)]
    for group, value in zip(groups.tolist(), values, strict=True):
        if value is not None:
            members[group].append(value)
    spreads = [float(max(some) - min(some)) if some else None for some in members]
    return pa.array(spreads, pa.float64())


def spark_spread(_call: FunctionCall, value: Column) -> Column:
    """Return the same on Spark."""
    return (F.max(value) - F.min(value)).cast("double")


def match_all_texts(texts: TextIndex, _query: str, _edits: int) -> Iterable[Positions]:
    """Yield all texts, whatever the query is."""
    yield np.arange(texts.rows)


def spark_match_all(_compiler: ExpressionCompiler, _call: FunctionCall) -> Column:
    """Return the same on Spark."""
    return F.lit(True)


class TextLength(Ranking):
    """Ranks each row by the length of its text."""

    def scores(self) -> tuple[Scores, Positions]:
        """Return the lengths."""
        texts = self.evaluator.column(self.call.arguments[0], self.frame).to_pylist()
        lengths = np.array([np.nan if text is None else len(text) for text in texts], np.float64)
        return lengths, np.zeros(self.frame.rows, np.int64)


def pair_exists(search: PathSearch, pairs: Positions, _tables: object) -> pa.Array:
    """Return 1 for each pair with a path, 0 for others."""
    return pa.array([int(length is not None) for length in search.lengths(pairs)], pa.int64())
