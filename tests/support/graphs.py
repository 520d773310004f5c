"""Make small graphs and change them through the real path: stage, then publish.

Nothing is validated or coalesced: callers give whole rows, by id.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias

import pyarrow as pa

import omnigraph.graph as og
from omnigraph.catalog import (
    IncarnationId,
    TimeOrderedAllocator,
    TypeId,
    read_catalog,
    resolve_schema,
)
from omnigraph.commit.graph_creation import schema_hash
from omnigraph.commit.intent_log import IntentLog
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.model import Commit, CommitId
from omnigraph.commit.publish import publish
from omnigraph.commit.recovery import RecoveryKind, abort_intent
from omnigraph.commit.snapshot import SnapshotRef
from omnigraph.commit.staged_commit import (
    StagedCommit,
    StagedDataset,
    StagedSchema,
    new_commit_id,
    with_checksums,
)
from omnigraph.errors import Contention, ExpectedVersionMismatch, OmniError
from omnigraph.lang import Code, report_for_text
from omnigraph.maintain.cleanup import cleanup
from omnigraph.maintain.cleanup_report import CleanupReport
from omnigraph.storage import staged_writes
from omnigraph.storage.layout import dataset_path
from tests.support import staging

SCHEMA = """
node Ship { name: String  tons: I32? }
node Port { city: String  depth: I32? }
node Note { text: String? }
edge CallsAt: Ship -> Port { fee: I32? }
"""
SHIP, PORT, NOTE, CALLS_AT = "node:Ship", "node:Port", "node:Note", "edge:CallsAt"

Rows: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The values of entities by id; columns left out are null."""
Dump: TypeAlias = dict[str, dict[str, dict[str, Any]]]
"""Every entity of every type: `node:T` or `edge:E`, then id, then column."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one type: a verb of `stage`, the type, and the rows (only ids to delete)."""

    verb: str
    table_key: str
    rows: Rows = field(default_factory=dict)
    column: str = ""
    wider: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A staged commit and the branch it is made for."""

    branch: str
    lineage_id: str | None
    staged: StagedCommit


def make_graph(uri: str, options: Mapping[str, str] | None = None) -> og.Graph:
    """Create a graph of ships, ports, notes and calls."""
    return og.init(uri, SCHEMA, storage_options=options)


def insert(graph: og.Graph, table_key: str, rows: Rows, branch: str = "main") -> Commit:
    """Commit rows whose ids are new."""
    return commit(graph, Change("insert", table_key, rows), branch=branch)


def upsert(graph: og.Graph, table_key: str, rows: Rows, branch: str = "main") -> Commit:
    """Commit rows, replacing those with the same ids."""
    return commit(graph, Change("upsert", table_key, rows), branch=branch)


def delete(graph: og.Graph, table_key: str, ids: Sequence[str], branch: str = "main") -> Commit:
    """Commit the removal of rows."""
    return commit(graph, Change("delete", table_key, {id_: {} for id_ in ids}), branch=branch)


def overwrite(graph: og.Graph, table_key: str, rows: Rows, branch: str = "main") -> Commit:
    """Commit exactly these rows."""
    return commit(graph, Change("overwrite", table_key, rows), branch=branch)


def add_column(graph: og.Graph, table_key: str, column: str, branch: str = "main") -> Commit:
    """Commit a new column of nulls, which no accepted schema knows."""
    return commit(graph, Change("add_column", table_key, column=column), branch=branch)


def widen_column(
    graph: og.Graph, table_key: str, column: str, wider: str, branch: str = "main"
) -> Commit:
    """Commit a 64-bit copy of an integer column, under another name."""
    change = Change("widen_column", table_key, column=column, wider=wider)
    return commit(graph, change, branch=branch)


def commit(graph: og.Graph, *changes: Change, branch: str = "main") -> Commit:
    """Stage changes of one or several types and publish them as one commit."""
    return publish_prepared(graph, prepare(graph, *changes, branch=branch))


def commit_with_intent(
    graph: og.Graph, *changes: Change, branch: str = "main", commit_id: CommitId | None = None
) -> Commit:
    """Commit as long operations do: under an intent that tells what is staged."""
    intents = IntentLog(graph._manifest.objects)
    observe = graph._manifest.datasets.observe
    empty = StagedCommit(id=commit_id or new_commit_id(), operation="load")
    intent = intents.begin(branch, graph._manifest.branch(branch).lineage_id, empty)
    observe("intent: begun")
    try:
        prepared = prepare(graph, *changes, branch=branch, commit_id=empty.id)
        intent = intents.update(intent, prepared.staged)
        observe("intent: staged")
        intent = intents.update(intent, prepared.staged, complete=True)
        observe("intent: complete")
        # Recovery looks for the commit on the lineage the intent names, so it must go there.
        on_it = Prepared(branch, intent.lineage_id, intent.staged)
        made = publish_prepared(graph, on_it)
    except OmniError:
        if abort_intent(graph._manifest, intent) is not RecoveryKind.ALREADY_PUBLISHED:
            raise
        return graph.commits.get(empty.id)
    intents.end(intent)
    observe("intent: ended")
    return made


def prepare(
    graph: og.Graph, *changes: Change, branch: str = "main", commit_id: CommitId | None = None
) -> Prepared:
    """Stage changes on top of the newest state of a branch, without publishing them."""
    found, state = graph._manifest.head_state(branch)
    staged = StagedCommit(
        id=commit_id or new_commit_id(),
        operation="load",
        datasets=tuple(_stage(graph, state, change) for change in changes),
        read_schema=state.head.schema_hash,
        message=json.dumps([change.verb for change in changes]),
    )
    return Prepared(branch, found.lineage_id, staged)


def publish_prepared(graph: og.Graph, prepared: Prepared) -> Commit:
    """Publish what `prepare` staged."""
    lineage = graph._manifest.lineage(prepared.lineage_id)
    return publish(lineage, prepared.branch, prepared.staged)


def clean_at_once(graph: og.Graph, *, dry_run: bool = False, **policy: Any) -> CleanupReport:
    """Clean up without an age floor, once all that was written is older by the store's clock."""
    time.sleep(0.02 if graph._manifest.location.is_local else 1.1)
    policy = {"age_floor": timedelta(0), **policy}
    return cleanup(graph._manifest, dry_run=dry_run, **policy)


def until_published(attempt: Callable[[], Commit], tries: int = 50) -> Commit:
    """Repeat a whole write, staging included, until no other writer is in its way."""
    for number in range(tries):
        try:
            return attempt()
        except (ExpectedVersionMismatch, Contention):
            time.sleep(random.random() * 0.02 * min(number, 8))
    raise AssertionError(f"preempted {tries} times")


def dump(graph: og.Graph, at: SnapshotRef = "main") -> Dump:
    """Return every entity of a snapshot."""
    snapshot = graph.snapshot(at)
    found: Dump = {}
    for table_key, entry in snapshot.entries().items():
        path = dataset_path(table_key.partition(":")[0], entry.type_id, entry.incarnation)
        rows = graph._manifest.datasets.at(path, entry.physical).to_table().to_pylist()
        assert len(rows) == entry.rows, f"{table_key} has {len(rows)} rows, not {entry.rows}"
        found[table_key] = {row.pop("id"): row for row in rows}
        assert len(found[table_key]) == len(rows), f"{table_key} holds an id twice"
    return found


def _stage(graph: og.Graph, state: LineageState, change: Change) -> StagedDataset:
    kind, _, name = change.table_key.partition(":")
    schema, _ = graph._manifest.schema(state.head.schema_hash, state)
    type_ = next(t for t in schema.types if (t.kind, t.name) == (kind, name))
    identity = (TypeId(type_.id), IncarnationId(type_.incarnation or 0))
    entry = state.head.datasets[identity]
    path = dataset_path(kind, *identity)
    made = _apply(graph._manifest.datasets.at(path, entry.physical), change)
    graph._manifest.datasets.keep(path, made)
    graph._manifest.datasets.observe(f"staged: {change.verb}")
    physical, rows = int(made.version), made.count_rows()
    staged = StagedDataset(change.table_key, *identity, entry.physical, physical, rows)
    return with_checksums(graph._manifest.datasets, staged)


def _apply(base: Any, change: Change) -> Any:
    if change.verb == "delete":
        return staging.delete(base, list(change.rows))
    if change.verb == "add_column":
        return staged_writes.add_columns(base, [pa.field(change.column, pa.string())])
    if change.verb == "widen_column":
        wide = pa.field(change.wider, pa.int64())
        return staged_writes.widen_column(base, change.column, wide)
    verb = {
        "insert": staging.append,
        "upsert": staging.upsert,
        "overwrite": staged_writes.overwrite,
    }
    listed = [{"id": id_, **values} for id_, values in change.rows.items()]
    return verb[change.verb](base, pa.Table.from_pylist(listed, schema=base.schema))


def accept_schema(graph: og.Graph, text: str, branch: str = "main") -> Commit:
    """Commit another schema that needs no data to be written, such as one with other names."""
    snapshot = graph.snapshot(branch)
    report = report_for_text(text, "<schema>", Code.SCHEMA_UNREADABLE)
    accepted = resolve_schema(
        read_catalog(report), snapshot.schema, allocator=TimeOrderedAllocator(), report=report
    )
    staged = StagedCommit(
        id=new_commit_id(),
        operation="schema_apply",
        schema=StagedSchema(schema_hash(accepted, text), text, accepted.to_json()),
    )
    return publish(graph._manifest.lineage(snapshot.lineage_id), branch, staged)
