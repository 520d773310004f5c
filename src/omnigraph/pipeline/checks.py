"""This module says what is wrong with staged rows, in the words every other surface uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

import pyarrow as pa

from omnigraph.catalog.model import EdgeType
from omnigraph.pipeline.scan import Rows, take
from omnigraph.write.change_set import ChangeSet, place_of
from omnigraph.write.checks.cardinality import tell_counts
from omnigraph.write.checks.endpoints import tell_missing
from omnigraph.write.checks.report import Reporter
from omnigraph.write.checks.unique import tell_existing, tell_held, tell_repeated_id
from omnigraph.write.shape import AT, Shape
from omnigraph.write.violations import Findings, Violation


class Fault(StrEnum):
    """What can be wrong with a row beside others."""

    EXISTING = "existing"
    REPEATED_ID = "repeated id"
    HELD = "held"
    MISSING_END = "missing end"
    MISCOUNTED = "miscounted"


@dataclass(frozen=True, slots=True)
class Wrong:
    """One row with a fault.

    `other` is what the fault refers to: the position of the first row with an id, the holder of a
    tuple, or the number of edges of a source.
    """

    addr: int
    at: int
    other: str


@dataclass(frozen=True, slots=True)
class Check:
    """A fault of a type; `columns` are those of a tuple, or the end of an edge and `node` its type.

    It travels to workers.
    """

    fault: Fault
    shape: Shape
    columns: tuple[str, ...] = ()
    node: Shape | None = None

    def tell(
        self, files: Sequence[tuple[str, str]], rows: Rows, wrong: Sequence[Wrong]
    ) -> list[Violation]:
        """Say of rows what is wrong with them."""
        changes = ChangeSet(files=files, findings=Findings(len(wrong)))
        columns = dict.fromkeys(["id", *self.columns, *self.shape.key, *self.shape.system])
        table = take(rows, [row.addr for row in wrong], list(columns))
        at = pa.array([row.at for row in wrong], pa.int64())
        report = Reporter(changes, self.shape, table.append_column(AT, at))
        self._tell(report, wrong)
        return changes.findings.listed

    def _tell(self, report: Reporter, wrong: Sequence[Wrong]) -> None:
        everywhere = pa.array([True] * len(wrong), pa.bool_())
        match self.fault:
            case Fault.EXISTING:
                tell_existing(report, everywhere)
            case Fault.REPEATED_ID:
                for number, row in enumerate(wrong):
                    first = place_of(report.changes.files, int(row.other))
                    tell_repeated_id(report, number, first)
            case Fault.HELD:
                for number, row in enumerate(wrong):
                    tell_held(report, number, self.columns, row.other)
            case Fault.MISSING_END:
                assert self.node is not None, "an end is one of a type"
                tell_missing(report, everywhere, self.columns[0], self.node)
            case Fault.MISCOUNTED:
                for number, row in enumerate(wrong):
                    self._tell_count(report, number, row)
            case _ as unreachable:
                assert_never(unreachable)

    def _tell_count(self, report: Reporter, number: int, row: Wrong) -> None:
        changes, edge = report.changes, self.shape.definition
        assert isinstance(edge, EdgeType), "only edges are counted"
        count = pa.table({"src": [report.rows["src"][number].as_py()], "count": [int(row.other)]})
        tell_counts(changes, edge, count, lambda _: changes.place(report.rows, number))
        changes.findings.listed[-1] = replace(changes.findings.listed[-1], at=row.at)
