"""This module merges one state into a branch: branches, single commits, and their inverse.

Everything is a change of the target, made of what the source changed since the base: it is
validated and published like any other change, with the source as second parent. Cost follows the
change, not the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import AcceptedType, TypeKind
from omnigraph.changes.delta import AT_ONCE, Delta, Side, compare_type, reading
from omnigraph.changes.steps import Steps
from omnigraph.commit.history import find_commit, missing_history
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, Counts, Snapshot
from omnigraph.commit.snapshot import head_snapshot, snapshot_of_commit
from omnigraph.commit.staged import StagedCommit
from omnigraph.commit.sweeps import stays
from omnigraph.errors import CleanupBegan, InvalidInput
from omnigraph.merge.combine import Combiner, Trio
from omnigraph.merge.conflicts import Conflict, MergeConflicts, broken_rules
from omnigraph.merge.decisions import Decisions
from omnigraph.merge.evolve import Evolved, evolve
from omnigraph.merge.rows import Aligned, shaped
from omnigraph.merge.schemas import SchemaConflicts
from omnigraph.merge.states import Lines, entities, side_of
from omnigraph.storage.difference import added_fragments
from omnigraph.write.apply import apply
from omnigraph.write.change_set import Batch, ChangeSet
from omnigraph.write.committed import Committed
from omnigraph.write.fill import embedded
from omnigraph.write.request import Request
from omnigraph.write.rights import check_changes, check_one_schema, check_whole
from omnigraph.write.shape import Shape, find_shape
from omnigraph.write.validate import validate
from omnigraph.write.violations import Findings, ValidationFailed

WORTH_SHARING = 1_000
"""Inserted entities of a type from which on their files are shared instead of written again."""
KEPT_DELTAS = 4
_NO_LIMIT = 1_000_000


class Outcome(StrEnum):
    """What a merge came to."""

    ALREADY_UP_TO_DATE = "already_up_to_date"
    FAST_FORWARD = "fast_forward"
    MERGED = "merged"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """What a merge did, or would do: counts by type, conflicts that stand in the way.

    `commit` is None when nothing was published. `branch_deleted` tells whether the source branch is
    gone, None when that was not asked for.
    """

    source: str
    target: str
    outcome: Outcome
    commit: Commit | None = None
    counts: Mapping[str, Counts] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()
    actor: str | None = None
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, those of the wire among them."""
        facts: dict[str, Any] = {
            "source": self.source,
            "target": self.target,
            "outcome": str(self.outcome),
            "actor_id": self.actor,
            "commit": None if self.commit is None else self.commit.to_json(),
            "counts": {key: _counted(counts) for key, counts in self.counts.items()},
            "conflicts": [conflict.to_json() for conflict in self.conflicts],
        }
        if self.branch_deleted is not None:
            facts["branch_deleted"] = self.branch_deleted
        if self.branch_delete_error is not None:
            facts["branch_delete_error"] = self.branch_delete_error
        return facts


def _counted(counts: Counts) -> dict[str, int]:
    return {
        "inserted": counts.inserted,
        "updated": counts.updated,
        "deleted": counts.deleted,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOptions:
    """How to merge: `dry_run` publishes nothing, `strict` merges no entity property by property."""

    dry_run: bool = False
    strict: bool = False
    decisions: Decisions = field(default_factory=Decisions)


def merge(
    manifest: Manifest, request: Request, source: Snapshot, options: MergeOptions
) -> MergeResult:
    """Merge a state into the branch of the request, whose history then has the source's.

    Raises:
        MergeConflicts: the two do not go together; all conflicts are listed, nothing changed.
    """
    if source.branch == request.branch and source == head_snapshot(manifest, request.branch):
        message = f"a branch cannot be merged into itself: {source.branch}"
        raise InvalidInput(message, code="merge_into_itself", branch=source.branch)
    merging = _Merging(manifest, request, source, options)
    try:
        made = _carry(manifest, request, merging.bring, merging.complete, options)
    except _UpToDate:
        return _result(request, source.branch, Outcome.ALREADY_UP_TO_DATE, _Made())
    return _result(request, source.branch, merging.outcome, made)


class _Merging:
    """One merge, prepared as often as its target moves.

    What does not depend on the target is read once.
    """

    def __init__(
        self, manifest: Manifest, request: Request, source: Snapshot, options: MergeOptions
    ) -> None:
        self._manifest = manifest
        self._request = request
        self._source = source
        self._options = options
        target = head_snapshot(manifest, request.branch)
        self._lines = Lines.of(manifest, source, target)
        self._history = missing_history(manifest, source, target)
        self._brought = Brought(source)
        self._sweep = ""
        self._evolved = Evolved(target, target)
        self.outcome = Outcome.MERGED

    def bring(self, committed: Committed) -> ChangeSet:
        """Return what becomes of the newest state of the target."""
        manifest, source, target = self._manifest, self._source, committed.snapshot
        lines = self._lines.up_to(target)
        bases = lines.bases(source.commit_id, target.commit_id)
        if not bases:
            message = f"{source.branch} and {target.branch} have no history in common"
            raise InvalidInput(message, code="no_merge_base")
        if bases[0].commit_id == source.commit_id:
            raise _UpToDate
        forward = bases[0].commit_id == target.commit_id
        self.outcome = Outcome.FAST_FORWARD if forward else Outcome.MERGED
        self._sweep = target.head.sweep
        hashes = (state.head.schema_hash for state in (*bases, source, target))
        check_one_schema(hashes, self._request)
        sharing = stays(manifest, source)
        self._evolved = _evolved(manifest, bases[0], source, target)
        if self._evolved.added and not sharing:
            raise CleanupBegan(source.commit_id)
        committed.snapshot = self._evolved.after
        bringing = _Bringing(
            lines=lines,
            bases=bases,
            brought=self._brought,
            committed=committed,
            request=self._request,
            options=self._options,
            sharing=sharing,
            added=self._evolved.added,
        )
        return bringing.changes()

    def complete(self, staged: StagedCommit) -> StagedCommit:
        """Say where the changes come from, and what the schema becomes."""
        parents = (self._source.commit_id,)
        made = replace(staged, merged_parents=parents, history=self._history, sweep=self._sweep)
        return self._evolved.complete(made)


def revert(
    manifest: Manifest, request: Request, commit_id: str, options: MergeOptions
) -> MergeResult:
    """Undo what a commit did since its first parent."""
    commit, before, after = _around(manifest, commit_id)
    request = replace(request, message=request.message or f"revert {commit.id}")
    return _transplant(manifest, request, commit, (after, before), options)


def cherry_pick(
    manifest: Manifest, request: Request, commit_id: str, options: MergeOptions
) -> MergeResult:
    """Do what a commit did since its first parent, elsewhere."""
    commit, before, after = _around(manifest, commit_id)
    request = replace(request, message=request.message or commit.message)
    return _transplant(manifest, request, commit, (before, after), options)


def _around(manifest: Manifest, commit_id: str) -> tuple[Commit, Snapshot, Snapshot]:
    """Return a commit and the states before and after it."""
    commit = find_commit(manifest, commit_id)[0].commit
    if not commit.parents:
        message = f"commit {commit_id} made the graph; there is nothing before it"
        raise InvalidInput(message, code="parentless_commit", commit=commit_id)
    before, after = (snapshot_of_commit(manifest, id_) for id_ in (commit.parents[0], commit.id))
    return commit, before, after


def _transplant(
    manifest: Manifest,
    request: Request,
    commit: Commit,
    states: tuple[Snapshot, Snapshot],
    options: MergeOptions,
) -> MergeResult:
    """Do on a branch to entities what happened between two states."""
    base, source = states
    lines, brought = Lines(manifest, source, {}), Brought(source)

    def bring(committed: Committed) -> ChangeSet:
        return _Bringing(
            lines=lines,
            bases=(base,),
            brought=brought,
            committed=committed,
            request=request,
            options=options,
        ).changes()

    made = _carry(manifest, request, bring, None, options)
    if not (made.counts or made.conflicts) and base.head.schema_hash != source.head.schema_hash:
        message = (
            f"commit {commit.id} changed the schema, which `schema apply` changes; "
            "there are no entities to bring"
        )
        raise InvalidInput(message, code="schema_only", commit=commit.id)
    outcome = Outcome.MERGED if made.counts else Outcome.ALREADY_UP_TO_DATE
    return _result(request, source.commit_id, outcome, made)


def _evolved(manifest: Manifest, base: Snapshot, source: Snapshot, target: Snapshot) -> Evolved:
    try:
        return evolve(manifest, base, source, target)
    except SchemaConflicts as error:
        raise MergeConflicts(error.conflicts, target.branch) from error


class _UpToDate(Exception):
    """The target has everything the source has."""


@dataclass(frozen=True, slots=True)
class _Made:
    commit: Commit | None = None
    counts: Mapping[str, Counts] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()


def _carry(
    manifest: Manifest,
    request: Request,
    bring: Callable[[Committed], ChangeSet],
    complete: Callable[[StagedCommit], StagedCommit] | None,
    options: MergeOptions,
) -> _Made:
    """Publish what is brought, or tell what would happen; a merge is a commit even if empty."""
    try:
        if options.dry_run:
            committed = Committed(manifest, head_snapshot(manifest, request.branch))
            images = validate(bring(committed), committed)
            options.decisions.check_used()
            return _Made(counts={key: image.counts() for key, image in images.items()})

        def prepare(committed: Committed) -> ChangeSet:
            changes = bring(committed)
            options.decisions.check_used()
            return changes

        commit = apply(
            manifest,
            request,
            prepare,
            again=lambda: True,
            always=complete is not None,
            complete=complete,
        )
        return _Made(commit, commit.counts if commit is not None else {})
    except MergeConflicts as error:
        if options.dry_run:
            return _Made(conflicts=error.conflicts)
        raise
    except ValidationFailed as error:
        conflicts = broken_rules(error)
        if options.dry_run:
            return _Made(conflicts=tuple(conflicts))
        raise MergeConflicts(conflicts, request.branch) from error


def _result(request: Request, source: str, outcome: Outcome, made: _Made) -> MergeResult:
    return MergeResult(
        source=source,
        target=request.branch,
        outcome=outcome,
        commit=made.commit,
        counts=made.counts,
        conflicts=made.conflicts,
        actor=request.actor,
    )


@dataclass(slots=True)
class Brought:
    """What a source changed; kept while its target moves, unless it is much."""

    source: Snapshot
    _kept: dict[tuple[int | None, int], list[Delta]] = field(default_factory=dict)

    def deltas(self, manifest: Manifest, before: Side | None, side: Side) -> Iterator[Delta]:
        """Yield what changed in a type since a base."""
        key = (None if before is None else before.entry.physical, side.entry.physical)
        if key in self._kept:
            yield from self._kept[key]
            return
        few: list[Delta] | None = []
        for delta in compare_type(manifest, before, side, Steps(manifest, (self.source,))):
            yield delta
            if few is not None:
                few = [*few, delta] if len(few) < KEPT_DELTAS else None
        if few is not None:
            self._kept[key] = few


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bringing:
    """Makes a change of the target out of what the source changed since the bases."""

    lines: Lines
    bases: tuple[Snapshot, ...]
    brought: Brought
    committed: Committed
    request: Request
    options: MergeOptions
    sharing: bool = False
    """Whether files of the source surely stay until the target has them, too."""
    added: frozenset[object] = frozenset()
    """Types the target gets from the source."""

    @property
    def source(self) -> Snapshot:
        """The state whose changes are brought."""
        return self.brought.source

    def changes(self) -> ChangeSet:
        """Return the change; raise MergeConflicts when the sides disagree."""
        target = self.committed.snapshot
        changes = ChangeSet(findings=Findings(_NO_LIMIT))
        conflicts: list[Conflict] = []
        kinds = (TypeKind.NODE, TypeKind.EDGE)
        sides = ((side_of(self.source, t), t) for k in kinds for t in target.schema.of_kind(k))
        moved = [(side, t) for side, t in sides if side is not None and self._moved(side, t)]
        # Before anything is read: conflicts show entities.
        check_whole((type_ for _, type_ in moved), self.request, self.committed)
        for side, type_ in moved:
            conflicts += self._bring(side, type_, changes)
        if conflicts:
            raise MergeConflicts(conflicts, target.branch)
        check_changes(changes, self.request, self.committed)
        return changes

    def _moved(self, side: Side, type_: AcceptedType) -> bool:
        """Tell whether the source may have something of a type that the target has not."""
        physical = side.entry.physical
        bases = [side_of(base, type_) for base in self.bases]
        unchanged = all(base is not None and base.entry.physical == physical for base in bases)
        target = self.committed.snapshot.entry(type_.entity)
        return not unchanged and (target.physical != physical or target.key in self.added)

    def _bring(self, side: Side, type_: AcceptedType, changes: ChangeSet) -> list[Conflict]:
        shape = find_shape(self.committed.snapshot.schema, type_.kind, type_.name)
        combiner = Combiner(shape, self.options.decisions, self.options.strict)
        conflicts: list[Conflict] = []
        change = changes.of(shape)
        adopted = self.sharing and len(self.bases) == 1 and self._stands_still(type_)
        adopted |= side.entry.key in self.added
        inserted: list[pa.Array] = []
        self.committed.consulted.add(shape.table_key)
        for trio in self._trios(side, shape):
            made = combiner.combine(trio)
            conflicts += made.conflicts
            adopted &= made.is_source
            inserted.append(made.inserted)
            if made.rows.num_rows:
                change.batches.append(Batch(made.rows, kept=self._same_models(side, shape)))
            change.deleted.update(dict.fromkeys(made.deleted))
        if adopted and (not change.is_empty or side.entry.key in self.added):
            change.adopted = side.entry
        elif self.sharing and sum(map(len, inserted)) >= WORTH_SHARING:
            change.shared = self._shared(side, type_, pa.concat_arrays(inserted))
        return conflicts

    def _same_models(self, side: Side, shape: Shape) -> frozenset[str]:
        """Return the properties whose vectors both sides have from one model."""
        if not any(embedded(shape)):
            return frozenset()
        target = Side.of(self.committed.snapshot, shape.type)
        with (
            reading(self.lines.manifest, side) as ours,
            reading(self.lines.manifest, target) as theirs,
        ):
            ids = shape.type.property_ids.items()
            return frozenset(name for name, id_ in ids if ours.model(id_) == theirs.model(id_))

    def _shared(
        self, side: Side, type_: AcceptedType, inserted: pa.Array
    ) -> list[tuple[Any, pa.Array]]:
        """Return fragments of the source that hold nothing but what it inserted."""
        base = side_of(self.bases[0], type_)
        if base is None or self.source.head.schema_hash != self._schema_hash:
            return []
        manifest = self.lines.manifest
        with reading(manifest, base) as old, reading(manifest, side) as new:
            found = added_fragments(old.handle, new.handle)
        return [
            (fragment, ids)
            for fragment, ids in found
            if pc.all(pc.is_in(ids, value_set=inserted)).as_py()
        ]

    @property
    def _schema_hash(self) -> str:
        return self.committed.snapshot.head.schema_hash

    def _stands_still(self, type_: AcceptedType) -> bool:
        """Tell whether the target has a type exactly as the base has it."""
        base = side_of(self.bases[0], type_)
        entry = self.committed.snapshot.entry(type_.entity)
        same_schema = self.source.head.schema_hash == self._schema_hash
        return same_schema and base is not None and base.entry.physical == entry.physical

    def _trios(self, side: Side, shape: Shape) -> Iterator[Trio]:
        """Yield the entities the source changed, in all states."""
        manifest, target = self.lines.manifest, self.committed.snapshot
        if len(self.bases) > 1:
            yield from self._crossed(side, shape)
            return
        before = side_of(self.bases[0], shape.type)
        for delta in self.brought.deltas(manifest, before, side):
            ids = _ids([delta])
            if len(ids):
                base = shape.schema.empty_table()
                if before is not None:
                    base = shaped(delta.before, before.type, shape)
                source = shaped(delta.after, side.type, shape)
                theirs = entities(manifest, target, shape, ids)
                decided = np.zeros(len(ids), np.bool_)
                yield Trio(ids, Aligned.of(ids, base), Aligned.of(ids, source), theirs, decided)

    def _crossed(self, side: Side, shape: Shape) -> Iterator[Trio]:
        """Do the same where there are several bases."""
        manifest, target = self.lines.manifest, self.committed.snapshot
        earlier = [side_of(base, shape.type) for base in self.bases]
        steps = Steps(manifest, (self.source,))
        ids = _ids([d for one in earlier for d in compare_type(manifest, one, side, steps)])
        for start in range(0, len(ids), AT_ONCE):
            some = ids.slice(start, AT_ONCE)
            base, undecided = self.lines.common(self.bases, shape, some)
            ours, theirs = (entities(manifest, s, shape, some) for s in (self.source, target))
            yield Trio(some, base, ours, theirs, undecided)


def _ids(deltas: Sequence[Delta]) -> pa.Array:
    columns = [side["id"] for delta in deltas for side in (delta.before, delta.after)]
    ids = pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())
    return ids.unique().sort()
