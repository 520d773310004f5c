"""The schema of a graph, and its indexes."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from omnigraph.catalog import Catalog, MigrationPlan, plan_migration
from omnigraph.commit.snapshot import SnapshotRef
from omnigraph.errors import InvalidInput
from omnigraph.graph.context import GraphContext
from omnigraph.graph.protocol import CommitOptions, SchemaApi
from omnigraph.maintain.indexes import IndexStatus, index_status
from omnigraph.maintain.optimize import MaintenanceReport, OptimizeOptions, optimize
from omnigraph.maintain.purge import purge
from omnigraph.merge.key_changes import check_rewrite
from omnigraph.notebook.display import ReportList
from omnigraph.policy import PolicyAction
from omnigraph.write.request import MAINTENANCE_OPERATION
from omnigraph.write.schema_migration import (
    SCHEMA_APPLY_OPERATION,
    SchemaOptions,
    SchemaResult,
    apply_schema,
    plan_schema,
)


def read_schema_text(schema: str | os.PathLike[str]) -> str:
    """Return the text of a schema that is given as text, or as the path of a file with it."""
    if isinstance(schema, str) and ("\n" in schema or "{" in schema or not schema.endswith(".pg")):
        return schema
    try:
        return Path(schema).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        message = f"cannot read the schema file {os.fspath(schema)}: {reason}"
        raise InvalidInput(message, code="schema_file_unreadable") from error


class Schema(SchemaApi[GraphContext, SnapshotRef]):
    """The schema of a graph."""

    @property
    def source(self) -> str:
        return self._context.snapshot().schema_source

    @property
    def catalog(self) -> Catalog:
        return self._context.snapshot().catalog

    def plan(
        self, text: str, *, allow_data_loss: bool = False, at: SnapshotRef | None = None
    ) -> MigrationPlan:
        snapshot = self._context.snapshot(at)
        self._context.gate.require_unrestricted("a plan of the schema", snapshot.branch)
        accepted = snapshot.schema
        return plan_schema(accepted, text, allow_data_loss=allow_data_loss, snapshot=snapshot)[0]

    def _apply(
        self, text: str | os.PathLike[str], options: SchemaOptions, target: CommitOptions
    ) -> SchemaResult:
        manifest, branch = self._context.manifest, self._context.branch(target.branch)
        self._context.gate.check(PolicyAction.SCHEMA_APPLY, target_branch=branch)
        self._context.gate.require_unrestricted("the schema", branch)
        request = self._context.request(SCHEMA_APPLY_OPERATION, target)
        guard = partial(check_rewrite, manifest)
        result = apply_schema(manifest, request, read_schema_text(text), options, guard)
        if result.lost:
            purge(manifest, result.lost, result.branch)
        return result

    def diff(self, old: SnapshotRef, new: SnapshotRef) -> MigrationPlan:
        before, after = (self._context.snapshot(target).schema for target in (old, new))
        return plan_migration(before, after)


class Indexes:
    """The indexes of a graph: derived, allowed to lag, never needed for a right answer."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context

    def status(self, at: SnapshotRef | None = None) -> list[IndexStatus]:
        """Return every index the schema declares, and how much of its type it covers."""
        statuses = index_status(self._context.manifest, self._context.snapshot(at))
        return ReportList("Indexes", statuses)

    def ensure(self, *, branch: str | None = None) -> MaintenanceReport:
        """Build what is missing, as one commit that changes no entity."""
        self._context.check_maintenance("building indexes")
        request = self._context.request(MAINTENANCE_OPERATION, CommitOptions(branch, None))
        return optimize(self._context.manifest, request, OptimizeOptions(compact=False))
