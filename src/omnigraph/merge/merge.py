"""Merge a state into a branch: branches, single commits (cherry-pick), and their inverse (revert).

Everything is a change of the target, made of what the source changed since the base: it is
validated and published like any other change, with the source as second parent. Cost follows the
change, not the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from omnigraph.commit.cleanup_lease import is_safe_from_cleanup
from omnigraph.commit.commit_log import CommitLog
from omnigraph.commit.history import find_commit
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import NewManifestRow
from omnigraph.commit.model import Commit, CommitId, Snapshot
from omnigraph.commit.snapshot import head_snapshot, snapshot_of_commit
from omnigraph.commit.staged_commit import StagedCommit
from omnigraph.errors import CleanupBegan, InvalidInput
from omnigraph.merge.conflicts import MergeConflicts, rule_conflicts
from omnigraph.merge.key_changes import find_rekeyed_changes
from omnigraph.merge.merge_base import CommitGraph
from omnigraph.merge.merge_changes import MergeChanges, SourceDelta
from omnigraph.merge.model import MergeOptions, MergeOutcome, MergeResult
from omnigraph.merge.schema_evolution import EvolvedTarget, evolve_target
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.group_commit import apply_changes
from omnigraph.write.request import WriteRequest, check_schema_changes_allowed
from omnigraph.write.staging import count_changes
from omnigraph.write.transaction import PendingChange
from omnigraph.write.validator import validate
from omnigraph.write.violations import ValidationFailed


def merge(
    manifest: Manifest, request: WriteRequest, source: Snapshot, options: MergeOptions
) -> MergeResult:
    """Merge a state into the branch of the request, whose history then has the source's.

    Raises:
        MergeConflicts: the two do not go together; all conflicts are listed, nothing changed.
    """
    if source.branch == request.branch and source == head_snapshot(manifest, request.branch):
        message = f"a branch cannot be merged into itself: {source.branch}"
        raise InvalidInput(message, code="merge_into_itself", branch=source.branch)
    run = _MergeRun(manifest, request, source, options)
    result = MergeResult(
        source=source.branch,
        target=request.branch,
        outcome=MergeOutcome.ALREADY_UP_TO_DATE,
        actor=request.actor,
    )
    try:
        result = _publish_merge(manifest, request, run.bring, run.complete, options, result)
    except _AlreadyUpToDate:
        return result
    return replace(result, outcome=run.outcome(result.commit))


class _MergeRun:
    """One merge, prepared as often as its target moves.

    What does not depend on the target is read once.
    """

    def __init__(
        self, manifest: Manifest, request: WriteRequest, source: Snapshot, options: MergeOptions
    ) -> None:
        self._manifest = manifest
        self._request = request
        self._source = source
        self._options = options
        self._history: tuple[NewManifestRow, ...] = ()
        self._history_version = 0
        self._source_delta = SourceDelta(source)
        self._last_cleanup = ""
        self._evolved = EvolvedTarget(source, source)
        self._forward_from: CommitId | None = None

    def outcome(self, commit: Commit | None) -> MergeOutcome:
        """Return what the merge came to; `commit` may follow others than it was prepared on."""
        before = self._forward_from if commit is None else commit.parents[0]
        forward = before is not None and before == self._forward_from
        return MergeOutcome.FAST_FORWARD if forward else MergeOutcome.MERGED

    def bring(self, committed: CommittedState) -> ChangeSet:
        """Return what becomes of the newest state of the target."""
        manifest, source, target = self._manifest, self._source, committed.snapshot
        lines = CommitGraph.of(manifest, source, target)
        diverged = lines.divergence(source.commit_id, target.commit_id)
        bases = lines.snapshots(diverged.bases)
        if not bases:
            message = f"{source.branch} and {target.branch} have no history in common"
            raise InvalidInput(message, code="no_merge_base")
        if bases[0].commit_id == source.commit_id:
            raise _AlreadyUpToDate
        self._history = lines.missing_history(diverged.only_one)
        self._history_version = target.manifest_version
        forward = bases[0].commit_id == target.commit_id
        self._forward_from = target.commit_id if forward else None
        self._last_cleanup = target.head.last_cleanup
        hashes = (state.head.schema_hash for state in (*bases, source, target))
        check_schema_changes_allowed(hashes, self._request)
        sharing = is_safe_from_cleanup(manifest, source)
        self._evolved = evolve_target(manifest, bases, source, target)
        if self._evolved.added and not sharing:
            raise CleanupBegan(source.commit_id)
        committed.snapshot = self._evolved.after
        for type_ in self._evolved.changed_types():
            committed.read(committed.row_schema(type_.kind, type_.name))
        bringing = MergeChanges(
            lines=lines,
            bases=bases,
            source_delta=self._source_delta,
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
            broken = rule_conflicts(changes.findings.listed)
            raise MergeConflicts([*conflicts, *broken], target.branch)
        return changes

    def complete(self, staged: StagedCommit) -> StagedCommit:
        """Say where the changes come from, and what the schema becomes."""
        staged_merge = replace(
            staged,
            merged_parents=(self._source.commit_id,),
            merged_generation=self._source.head.generation,
            history=self._history,
            history_version=self._history_version,
            last_cleanup=self._last_cleanup,
        )
        return self._evolved.complete(self._manifest, staged_merge)


def revert(
    manifest: Manifest, request: WriteRequest, commit_id: str, options: MergeOptions
) -> MergeResult:
    """Undo what a commit did since its first parent."""
    commit, before, after = _commit_states(manifest, commit_id)
    request = replace(request, message=request.message or f"revert {commit.id}")
    return _apply_commit(manifest, request, commit, (after, before), options)


def cherry_pick(
    manifest: Manifest, request: WriteRequest, commit_id: str, options: MergeOptions
) -> MergeResult:
    """Do what a commit did since its first parent, elsewhere."""
    commit, before, after = _commit_states(manifest, commit_id)
    request = replace(request, message=request.message or commit.message)
    return _apply_commit(manifest, request, commit, (before, after), options)


def _commit_states(manifest: Manifest, commit_id: str) -> tuple[Commit, Snapshot, Snapshot]:
    """Return a commit and the states before and after it."""
    commit = find_commit(manifest, commit_id)[0].commit
    if not commit.parents:
        message = f"commit {commit_id} made the graph; there is nothing before it"
        raise InvalidInput(message, code="parentless_commit", commit=commit_id)
    before, after = (snapshot_of_commit(manifest, id_) for id_ in (commit.parents[0], commit.id))
    return commit, before, after


def _apply_commit(
    manifest: Manifest,
    request: WriteRequest,
    commit: Commit,
    states: tuple[Snapshot, Snapshot],
    options: MergeOptions,
) -> MergeResult:
    """Do on a branch to entities what happened between two states."""
    base, source = states
    lines, source_delta = CommitGraph(manifest, CommitLog(())), SourceDelta(source)

    def bring(committed: CommittedState) -> ChangeSet:
        schema = committed.snapshot.schema
        rekeyed = list(find_rekeyed_changes(manifest, (base,), (source,), schema))
        if rekeyed:
            raise MergeConflicts(rekeyed, request.branch)
        return MergeChanges(
            lines=lines,
            bases=(base,),
            source_delta=source_delta,
            committed=committed,
            request=request,
            options=options,
        ).changes()

    result = MergeResult(
        source=source.commit_id,
        target=request.branch,
        outcome=MergeOutcome.ALREADY_UP_TO_DATE,
        actor=request.actor,
    )
    result = _publish_merge(manifest, request, bring, None, options, result)
    if not (result.counts or result.conflicts) and base.head.schema_hash != source.head.schema_hash:
        message = (
            f"commit {commit.id} changed the schema, which `schema apply` changes; "
            "there are no entities to bring"
        )
        raise InvalidInput(message, code="schema_only", commit=commit.id)
    return replace(result, outcome=MergeOutcome.MERGED) if result.counts else result


class _AlreadyUpToDate(Exception):
    """The target has everything the source has."""


def _publish_merge(
    manifest: Manifest,
    request: WriteRequest,
    bring: Callable[[CommittedState], ChangeSet],
    complete: Callable[[StagedCommit], StagedCommit] | None,
    options: MergeOptions,
    result: MergeResult,
) -> MergeResult:
    """Publish the merged changes and complete the result; an empty merge is a commit, too."""
    try:
        if options.dry_run:
            committed = CommittedState(manifest, head_snapshot(manifest, request.branch))
            images = validate(bring(committed), committed)
            options.decisions.check_used()
            return replace(result, counts=count_changes(images))

        def prepare(committed: CommittedState) -> ChangeSet:
            changes = bring(committed)
            options.decisions.check_used()
            return changes

        commit = apply_changes(
            manifest,
            PendingChange(
                request,
                prepare,
                always=complete is not None,
                complete=complete,
                inspect=options.inspect,
            ),
        )
        return replace(result, commit=commit, counts={} if commit is None else commit.counts)
    except MergeConflicts as error:
        if options.dry_run:
            return replace(result, conflicts=error.conflicts)
        raise
    except ValidationFailed as error:
        conflicts = rule_conflicts(error.violations)
        if options.dry_run:
            return replace(result, conflicts=tuple(conflicts))
        raise MergeConflicts(conflicts, request.branch) from error
