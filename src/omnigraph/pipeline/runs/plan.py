"""The plan of a pipeline: what a run would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from omnigraph.notebook.display import ReportDisplay


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePlan(ReportDisplay):
    """What a run would read, create and change.

    `sources` have `name`, `kind`, `files`, `rows` (None when unknown) and `broken`, rows that
    cannot be read. `types` are by `node:T` and `edge:E`: their `source`, their `columns` with
    expression and Spark type, `rows` at most or exactly, and `committed` entities there are now.
    """

    pipeline: str
    graph: str
    branch: str
    base: str | None
    branch_exists: bool
    mode: str
    on_violation: str
    merge_into: str | None
    is_counted: bool
    sources: Sequence[Mapping[str, Any]]
    types: Mapping[str, Mapping[str, Any]]
    warnings: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)
