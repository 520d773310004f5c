"""Load data as one commit, and replay changes made elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa

from omnigraph.catalog import TypeKind
from omnigraph.catalog.properties import EDGE_KEY
from omnigraph.commit.branches import create_branch, delete_branch
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Commit, Snapshot
from omnigraph.commit.protection import WritePermit
from omnigraph.commit.snapshot import apply_scope, head_snapshot
from omnigraph.errors import InvalidInput, NotFound, OmniError, OutcomeUnknown, SchemaMoved
from omnigraph.notebook.results import load_html
from omnigraph.query.entities import find_type
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.coercion import CoercionRules
from omnigraph.write.committed_state import CommittedState, incident_edges
from omnigraph.write.external_blobs import ExternalBlobs
from omnigraph.write.group_commit import apply_changes
from omnigraph.write.inputs.byte_streams import check_encoding, lines_as_file
from omnigraph.write.inputs.ndjson_reader import read_ndjson
from omnigraph.write.inputs.sources import read_sources, total_bytes
from omnigraph.write.progress import ProgressListener, ProgressMeter
from omnigraph.write.request import WriteRequest
from omnigraph.write.row_builder import RowBuilder
from omnigraph.write.spilling import SpillManager
from omnigraph.write.transaction import PendingChange


class WriteMode(StrEnum):
    """What becomes of entities that exist: refuse, replace by id, or replace whole types."""

    APPEND = "append"
    MERGE = "merge"
    OVERWRITE = "overwrite"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How to load.

    `from_` is where a branch that does not exist is forked from. Lines are read by the strict
    grammar, or else by the older, forgiving one. `encoding` is that of text files, by default
    UTF-8. With `always`, a load that changes nothing is a commit, too: one that records something.
    """

    mode: WriteMode = WriteMode.MERGE
    partial: bool = False
    strict: bool = True
    from_: str | None = None
    always: bool = False
    progress: ProgressListener | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        check_encoding(self.encoding)
        if self.partial and self.mode is not WriteMode.MERGE:
            message = f"a partial load merges; it cannot {self.mode}"
            raise InvalidInput(message, code="load_mode_invalid")


def parse_load_mode(word: str) -> WriteMode:
    """Return the mode a word names."""
    try:
        return WriteMode(word)
    except ValueError:
        modes = ", ".join(WriteMode)
        message = f"unknown load mode '{word}'; it is one of {modes}"
        raise InvalidInput(message, code="load_mode_invalid") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What a load did; `nodes` and `edges` count the rows given, by type.

    `commit` counts what changed, and is None when nothing did. `notes` are for the user.
    """

    mode: WriteMode
    branch: str
    commit: Commit | None
    base_branch: str | None = None
    branch_created: bool = False
    nodes: dict[str, int] = field(default_factory=dict)
    edges: dict[str, int] = field(default_factory=dict)
    actor: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """How many entities were given."""
        return sum(self.nodes.values()) + sum(self.edges.values())

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "branch": self.branch,
            "base_branch": self.base_branch,
            "branch_created": self.branch_created,
            "mode": str(self.mode),
            "nodes": _sorted_counts(self.nodes),
            "edges": _sorted_counts(self.edges),
            "total_entities": self.total,
            "actor_id": self.actor,
            "commit": self.commit.to_json() if self.commit is not None else None,
            **({"notes": list(self.notes)} if self.notes else {}),
        }

    def _repr_html_(self) -> str:
        return load_html(self.to_json())


def repeated_load_notes(
    mode: WriteMode, snapshot: Snapshot, new_ids: Iterable[str]
) -> tuple[str, ...]:
    """Return a note for each edge type to which a merge adds edges that may exist.

    `new_ids` are the types, as `node:T` and `edge:E`, of which all rows got generated IDs.
    """
    if mode is not WriteMode.MERGE:
        return ()
    types = [snapshot.type_of(table_key) for table_key in sorted(new_ids)]
    return tuple(
        f"edge {type_.name} has no key and no ids were given, so a repeated load adds the same "
        f"edges again; declare `{EDGE_KEY}` on the type to merge them"
        for type_ in types
        if type_.kind is TypeKind.EDGE and snapshot.entry(type_.entity).rows
    )


def _sorted_counts(counts: dict[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "entities_loaded": counts[name]} for name in sorted(counts)]


def load(
    manifest: Manifest,
    request: WriteRequest,
    data: Any,  # noqa: ANN401 - what people gave
    options: LoadOptions,
) -> LoadResult:
    """Load everything that is given as one commit."""
    meter = ProgressMeter(options.progress, total_bytes(data))
    source, exists = find_start_snapshot(manifest, request.branch, options.from_)
    with SpillManager() as spill:
        rules = CoercionRules(external=ExternalBlobs.below(request.external_blobs))
        shown = apply_scope(manifest, source, request.rights.named)
        intake = RowBuilder(
            shown.schema, spill, partial=options.partial, rules=rules, encoding=options.encoding
        )
        read_sources(data, intake, meter, strict=options.strict)
        changes = intake.finish(
            strict=options.mode is WriteMode.APPEND, replace=options.mode is WriteMode.OVERWRITE
        )
        if not intake.is_whole:
            # What was not read might be what other rows rely on.
            changes.findings.check()
        meter.start_phase("write")
        with fork_branch_if_missing(manifest, request, source, exists=exists):
            commit = _publish(manifest, request, changes, source, options)
    return LoadResult(
        mode=options.mode,
        branch=request.branch,
        commit=commit,
        base_branch=options.from_,
        branch_created=not exists,
        nodes=intake.counts(TypeKind.NODE),
        edges=intake.counts(TypeKind.EDGE),
        actor=request.actor,
        notes=repeated_load_notes(options.mode, source, _types_with_new_ids(changes)),
    )


def _types_with_new_ids(changes: ChangeSet) -> Iterator[str]:
    for table_key, change in changes.types.items():
        if all(batch.fresh for batch in change.batches) and not change.is_empty:
            yield table_key


def find_start_snapshot(
    manifest: Manifest, branch: str, from_: str | None
) -> tuple[Snapshot, bool]:
    """Return the state to start from, and whether it is that of the branch itself."""
    if branch.strip() == MAIN or branch.strip() in manifest.branches():
        return head_snapshot(manifest, branch), True
    if from_ is None:
        message = f"branch '{branch}' does not exist; say from where to create it"
        raise NotFound(message, code="branch_not_found", branch=branch)
    return head_snapshot(manifest, from_), False


@contextmanager
def fork_branch_if_missing(
    manifest: Manifest, request: WriteRequest, source: Snapshot, *, exists: bool
) -> Iterator[None]:
    """Fork the branch if it does not exist, and remove it again if the load fails."""
    if exists:
        yield
        return
    permit = request.permit
    create_branch(manifest, request.branch, source, actor=request.actor, permit=permit)
    with delete_branch_on_failure(manifest, request.branch, source.commit_id, permit):
        yield


@contextmanager
def delete_branch_on_failure(
    manifest: Manifest, branch: str, head: str, permit: WritePermit
) -> Iterator[None]:
    """Remove a branch that was forked at a commit if what it was forked for fails."""
    try:
        yield
    except OutcomeUnknown:
        # The commit may be there.
        raise
    except BaseException:
        with suppress(OmniError):
            newest = head_snapshot(manifest, branch)
            if newest.commit_id == head:
                delete_branch(manifest, branch, permit=permit, unchanged_since=newest)
        raise


def _publish(
    manifest: Manifest,
    request: WriteRequest,
    changes: ChangeSet,
    source: Snapshot,
    options: LoadOptions,
) -> Commit | None:
    def prepare(committed: CommittedState) -> ChangeSet:
        _check_same_schema(source, committed)
        return changes

    # A load without a single row is a commit, as it is in the original.
    always, again = options.always or changes.is_empty, options.mode is not WriteMode.OVERWRITE
    small = again and not always
    seen = source if source.branch == request.branch.strip() else None
    change = PendingChange(request, prepare, lambda: again, always=always, small=small, seen=seen)
    return apply_changes(manifest, change)


def _check_same_schema(source: Snapshot, committed: CommittedState) -> None:
    """Raise SchemaMoved if rows were made for the types of another schema."""
    read, now = source.head.schema_hash, committed.snapshot.head.schema_hash
    if read != now:
        raise SchemaMoved(read, now)


# ----------------------------------------------------------------------
# Replay of changes made elsewhere: entities in their current state, and deleted IDs.
#
# What is repeated is a state, not a step, so doing it again after other commits is fine.


@dataclass(frozen=True, slots=True)
class ReplayedChanges:
    """Entities as lines that `load` reads, and ids that are gone, by `node:T` and `edge:E`."""

    lines: Iterable[str]
    gone: Mapping[str, Iterable[str]] = field(default_factory=dict)


def replay_changes(manifest: Manifest, request: WriteRequest, changes: ReplayedChanges) -> Commit:
    """Make a branch show these entities, and not those, as one commit.

    Edges of a node that is gone are deleted with it, wherever they come from.
    """
    source = head_snapshot(manifest, request.branch)
    gone = {find_type(source, k).entity: dict.fromkeys(ids) for k, ids in changes.gone.items()}
    with SpillManager() as spill:
        rules = CoercionRules(external=ExternalBlobs.below(request.external_blobs))
        intake = RowBuilder(source.schema, spill, rules=rules)
        read_ndjson(lines_as_file(changes.lines), intake, ProgressMeter(None, None))
        change_set = intake.finish(strict=False, replace=False)
        change_set.findings.check()

        def prepare(committed: CommittedState) -> ChangeSet:
            _check_same_schema(source, committed)
            _delete_ids(change_set, committed, gone)
            return change_set

        commit = apply_changes(manifest, PendingChange(request, prepare, always=True))
    assert commit is not None, "a replay always commits"
    return commit


def _delete_ids(
    changes: ChangeSet, committed: CommittedState, gone: Mapping[str, Mapping[str, None]]
) -> None:
    """Mark what is gone, and what goes with it in this state."""
    for change in changes.types.values():
        change.deleted = {}
    for table_key, ids in gone.items():
        kind, _, name = table_key.partition(":")
        shape = committed.row_schema(TypeKind(kind), name)
        changes.of(shape).deleted.update(ids)
        if shape.kind is TypeKind.NODE and ids:
            for incident, edges in incident_edges(committed, shape, pa.array(ids, pa.string())):
                changes.of(incident).deleted.update(dict.fromkeys(edges.to_pylist()))
