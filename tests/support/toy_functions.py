"""Implementations of the toy functions that `tests/architecture/test_extending.py` registers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from omnigraph.catalog.model import JsonMembers, Property, ValueConstraint
from omnigraph.catalog.properties import DeclaringType
from omnigraph.lang import Code, TextSpan
from omnigraph.lang.schema_tree import AnnotationArgument, ConstraintArgument
from omnigraph.pipeline.query.expressions import ExpressionCompiler
from omnigraph.plan.expressions import FunctionCall
from omnigraph.query.aggregation import Grouping
from omnigraph.query.bm25 import TextIndex
from omnigraph.query.expressions import Constants, Evaluator
from omnigraph.query.frame import Frame
from omnigraph.query.ranking import Scores
from omnigraph.query.search import Ranking
from omnigraph.query.shortest_paths import PathSearch
from omnigraph.storage.columns import Positions
from omnigraph.write.checks.reporter import ViolationReporter
from omnigraph.write.violations import ViolationRule


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


@dataclass(frozen=True, slots=True)
class Length(ValueConstraint):
    """A String is not longer than a number of characters: `@length(name, 3)`."""

    json_members: ClassVar[JsonMembers] = {"most": int}
    most: int

    def argument_text(self) -> str:
        """Return the number."""
        return str(self.most)


def resolve_length(name: str, most: ConstraintArgument) -> Length | None:
    """Return the constraint a declaration means."""
    return Length(name, int(most.text)) if isinstance(most, AnnotationArgument) else None


def check_length_declaration(
    _constraint: Length, member: Property, place: str, span: TextSpan, owner: DeclaringType
) -> None:
    """Report a property that is no String."""
    if not member.type.text:
        owner.error(Code.CHECK_INVALID, f"@length needs a String, {place} is {member.type}", span)


def check_length(report: ViolationReporter, rule: Length) -> None:
    """Report values that are too long."""
    lengths = pc.utf8_length(report.rows[rule.property])
    bad = pc.fill_null(pc.greater(lengths, rule.most), False)
    report.report_mask(
        bad, ViolationRule.CHECK, rule.property, lambda value: f"'{value}' is too long"
    )
