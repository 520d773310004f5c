"""Turn masks over rows into violations, for no more rows than are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.write.change_set import ChangeSet, RowSchema, input_position, type_violation
from omnigraph.write.violations import ViolationRule, abbreviate_value


@dataclass(frozen=True, slots=True)
class ViolationReporter:
    """Reports violations of rows of one type."""

    changes: ChangeSet
    shape: RowSchema
    rows: pa.Table

    def report_mask(
        self,
        bad: pa.ChunkedArray | pa.Array,
        rule: ViolationRule,
        column: str,
        message: Callable[[Any], str],
    ) -> None:
        """Report each row where the mask is true; `message` is given its value of the column."""
        total = pc.sum(bad).as_py() or 0
        if not total:
            return
        listed = self.changes.findings.reserve(rule, total)
        for index in pc.indices_nonzero(bad).slice(0, listed).to_pylist():
            value = self.rows[column][index].as_py()
            self.one(index, rule, message(value), column, value)

    def one(
        self,
        index: int,
        rule: ViolationRule,
        message: str,
        column: str | None = None,
        value: Any = None,  # noqa: ANN401 - whatever the column holds
    ) -> None:
        """Report one row."""
        self.changes.findings.add(
            type_violation(
                rule,
                message,
                self.shape,
                id=self.rows["id"][index].as_py(),
                property=column if column in self.shape.properties else None,
                value=abbreviate_value(value),
                source=self.changes.place(self.rows, index),
                at=input_position(self.rows, index),
            )
        )
