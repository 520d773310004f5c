"""Report violations of staged rows with the messages of every other way to write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

import pyarrow as pa

from omnigraph.catalog.model import EdgeType
from omnigraph.pipeline.load.fragment_scan import DatasetFragments, take_rows
from omnigraph.write.change_set import INPUT_POSITION, ChangeSet, RowSchema, locate_position
from omnigraph.write.checks.edges import report_edge_counts, report_missing_endpoints
from omnigraph.write.checks.reporter import ViolationReporter
from omnigraph.write.checks.unique import (
    report_duplicate_tuple,
    report_existing_ids,
    report_repeated_id,
)
from omnigraph.write.violations import Violation, ViolationCollector


class RowFault(StrEnum):
    """How a row can conflict with other rows."""

    EXISTING = "existing"
    REPEATED_ID = "repeated id"
    HELD = "held"
    MISSING_END = "missing end"
    MISCOUNTED = "miscounted"


@dataclass(frozen=True, slots=True)
class FaultyRow:
    """One row with a fault.

    `other` is what the fault refers to: the position of the first row with an id, the holder of a
    tuple, or the number of edges of a source.
    """

    addr: int
    at: int
    other: str


@dataclass(frozen=True, slots=True)
class RowCheck:
    """A fault of a type; `columns` are those of a tuple, or the end of an edge and `node` its type.

    It is sent to workers.
    """

    fault: RowFault
    shape: RowSchema
    columns: tuple[str, ...] = ()
    node: RowSchema | None = None

    def report(
        self, files: Sequence[tuple[str, str]], rows: DatasetFragments, wrong: Sequence[FaultyRow]
    ) -> list[Violation]:
        """Return the violations of rows."""
        changes = ChangeSet(files=files, findings=ViolationCollector(len(wrong)))
        columns = dict.fromkeys(["id", *self.columns, *self.shape.key, *self.shape.system])
        table = take_rows(rows, [row.addr for row in wrong], list(columns))
        at = pa.array([row.at for row in wrong], pa.int64())
        report = ViolationReporter(changes, self.shape, table.append_column(INPUT_POSITION, at))
        self._report(report, wrong)
        return changes.findings.listed

    def _report(self, report: ViolationReporter, wrong: Sequence[FaultyRow]) -> None:
        everywhere = pa.array([True] * len(wrong), pa.bool_())
        match self.fault:
            case RowFault.EXISTING:
                report_existing_ids(report, everywhere)
            case RowFault.REPEATED_ID:
                for number, row in enumerate(wrong):
                    first = locate_position(report.changes.files, int(row.other))
                    report_repeated_id(report, number, first)
            case RowFault.HELD:
                for number, row in enumerate(wrong):
                    report_duplicate_tuple(report, number, self.columns, row.other)
            case RowFault.MISSING_END:
                assert self.node is not None, "an end is one of a type"
                report_missing_endpoints(report, everywhere, self.columns[0], self.node)
            case RowFault.MISCOUNTED:
                for number, row in enumerate(wrong):
                    self._report_count(report, number, row)
            case _ as unreachable:
                assert_never(unreachable)

    def _report_count(self, report: ViolationReporter, number: int, row: FaultyRow) -> None:
        changes, edge = report.changes, self.shape.definition
        assert isinstance(edge, EdgeType), "only edges are counted"
        count = pa.table({"src": [report.rows["src"][number].as_py()], "count": [int(row.other)]})
        report_edge_counts(changes, edge, count, lambda _: changes.place(report.rows, number))
        changes.findings.listed[-1] = replace(changes.findings.listed[-1], at=row.at)
