"""This module merges one state into a branch: branches, single commits, and their inverse.

Everything is a change of the target, made of what the source changed since the base: it is
validated and published like any other change, with the source as second parent. Cost follows the
change, not the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from omnigraph.commit.history import find_commit, missing_history
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, Counts, Snapshot
from omnigraph.commit.snapshot import head_snapshot, snapshot_of_commit
from omnigraph.commit.staged import StagedCommit
from omnigraph.commit.sweeps import stays
from omnigraph.errors import CleanupBegan, InvalidInput
from omnigraph.merge.bringing import Bringing, Brought
from omnigraph.merge.conflicts import Conflict, MergeConflicts, broken_rules
from omnigraph.merge.evolve import Evolved, evolve
from omnigraph.merge.model import MergeOptions, MergeResult, Outcome
from omnigraph.merge.states import Lines
from omnigraph.write.apply import apply
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.committed import Committed
from omnigraph.write.request import Request
from omnigraph.write.rights import check_one_schema
from omnigraph.write.stage import changed_counts
from omnigraph.write.validate import validate
from omnigraph.write.violations import ValidationFailed


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
        self._evolved = evolve(manifest, bases, source, target)
        if self._evolved.added and not sharing:
            raise CleanupBegan(source.commit_id)
        committed.snapshot = self._evolved.after
        bringing = Bringing(
            lines=lines,
            bases=bases,
            brought=self._brought,
            committed=committed,
            request=self._request,
            options=self._options,
            sharing=sharing,
            added=self._evolved.added,
        )
        changes, conflicts = bringing.collect()
        self._evolved.check_existing(manifest, changes)
        conflicts = [*self._evolved.conflicts, *conflicts]
        if conflicts:
            # Entities that conflict are in no valid state yet: no other rule can be checked.
            broken = broken_rules(changes.findings.listed)
            raise MergeConflicts([*conflicts, *broken], target.branch)
        return changes

    def complete(self, staged: StagedCommit) -> StagedCommit:
        """Say where the changes come from, and what the schema becomes."""
        parents = (self._source.commit_id,)
        made = replace(staged, merged_parents=parents, history=self._history, sweep=self._sweep)
        return self._evolved.complete(self._manifest, made)


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
        return Bringing(
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
            return _Made(counts=changed_counts(images))

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
        conflicts = broken_rules(error.violations)
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
