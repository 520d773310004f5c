"""Publish staged commits by compare-and-swap on the manifest.

`publish` is the only function that makes a commit visible. One attempt reads the head, checks
everything the writer relied on and does one compare-and-swap; a lost race repeats every check.
There are three outcomes: a returned commit is visible; a conflict means that nothing changed;
OutcomeUnknown means that storage could not be read.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from time import sleep

import pyarrow as pa

from omnigraph.commit.commit_events import CommitEvent, report
from omnigraph.commit.footprint import TypeKey
from omnigraph.commit.lineage import Lineage, LineageState
from omnigraph.commit.lineage_maintenance import maintain_lineage
from omnigraph.commit.manifest import branch_not_found_error
from omnigraph.commit.manifest_rows import (
    CommitRow,
    NewManifestRow,
    commit_key,
    commit_row,
    read_commit,
    read_version,
    schema_row,
    table_row,
    tombstone_row,
    version_row,
)
from omnigraph.commit.model import Commit, CommitId, DatasetEntry, Head
from omnigraph.commit.protection import check_publish, head_after_merge
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset, check_staged_files
from omnigraph.commit.staged_sync import sync_staged_files
from omnigraph.errors import (
    CleanupBegan,
    Contention,
    ExpectedVersionMismatch,
    NotFound,
    OmniError,
    OutcomeUnknown,
    PreconditionFailed,
    SchemaMoved,
    StorageUnavailable,
)
from omnigraph.storage.layout import data_file_names
from omnigraph.storage.small_fragments import cached_key_columns

PUBLISHER_RETRY_BUDGET = 5
"""Further attempts after a lost race."""

_SWAP_RETRY_BUDGET = 20 * PUBLISHER_RETRY_BUDGET
"""Further attempts of a small swap; the caller could only repeat the same swap."""

_FIRST_BACKOFF_SECONDS = 0.005

CHECKPOINT_INTERVAL = 64
"""Commits whose generation is a multiple of this record all their datasets."""


def publish(lineage: Lineage, branch: str, staged: StagedCommit) -> Commit:
    """Make a staged commit visible on a branch and return it.

    Raises:
        ExpectedVersionMismatch: a dataset it read or wrote has changed.
        SchemaMoved: the accepted schema has changed.
        PreconditionFailed: the head is not `staged.if_commit`.
        NotFound: the branch was deleted.
        Contention: the retry budget is spent, or it was staged too long ago.
        BranchProtected: the branch is protected, and the commit shows no permit.
        OutcomeUnknown: storage could not be read after a failed swap.
    """
    [commit] = publish_group(lineage, branch, [staged])
    return commit


def publish_group(
    lineage: Lineage, branch: str, group: Sequence[StagedCommit], version: int | None = None
) -> list[Commit]:
    """Make staged commits visible by one swap, in this order; return them.

    Each is staged on the state that the ones before it leave; `version` is the state of the first,
    if that was just read: the swap fails if there is a newer one. Raises the errors of `publish`;
    then none of them is visible.
    """
    doubt: _UncertainSwap | None = None
    for attempt in range(PUBLISHER_RETRY_BUDGET + 1):
        cached = lineage.cached_state
        if attempt == 0 and cached is not None and cached.version == version:
            state, landed = cached, None
        else:
            state, landed = _read_state(lineage, branch, group, doubt)
        if landed is not None:
            return landed
        if not state.is_current_format:
            retry_swap(lineage.upgrade)
            state = lineage.state()
        commits, head, rows = _prepare(lineage, state, branch, group)
        sync_staged_files(lineage.datasets, group)
        try:
            lineage.swap(state, head, rows)
        except (Contention, NotFound, StorageUnavailable) as error:
            doubt = _UncertainSwap(error, state.version)
            report(CommitEvent.LOST_SWAP, attempt + 1)
            _back_off(attempt)
        else:
            report(CommitEvent.PUBLISHED, len(group))
            maintain_lineage(lineage)
            if lineage.shares_rows:
                lineage.share_rows(state, _new_keys(lineage, group))
            return commits
    _, landed = _read_state(lineage, branch, group, doubt)
    if landed is not None:
        return landed
    assert doubt is not None, "every attempt returned or failed"
    raise doubt.error


def _new_keys(lineage: Lineage, group: Sequence[StagedCommit]) -> dict[tuple[str, str], pa.Table]:
    """Return the cached keys of the small fragments that a group adds, by path and data file."""
    keys: dict[tuple[str, str], pa.Table] = {}
    changes = [change for staged in group for change in staged.datasets]
    files = {name for change in changes for name in change.checksums}
    versions = {(c.path, c.physical) for c in changes if c.physical not in (None, c.expected)}
    for path, version in versions:
        assert version is not None, "dropped datasets are left out"
        handle = lineage.datasets.at(path, version)
        for fragment in reversed(handle.get_fragments()):
            file, *others = data_file_names(fragment.data_files())
            if others or f"data/{file}" not in files:
                break
            columns = cached_key_columns(handle, fragment)
            if columns is not None:
                keys[path, file] = columns
    return keys


@dataclass(frozen=True, slots=True)
class _UncertainSwap:
    """A failed swap and the version it was based on.

    It may have succeeded although its response was lost; a rejection may be the response to a retry
    within the storage client.
    """

    error: OmniError
    version: int


def _read_state(
    lineage: Lineage, branch: str, group: Sequence[StagedCommit], doubt: _UncertainSwap | None
) -> tuple[LineageState, list[Commit] | None]:
    """Return the newest state, and the commits if they are already published."""
    try:
        state = lineage.state()
        unsettled = doubt is not None and state.version > doubt.version
        if not unsettled and not any(staged.known_id for staged in group):
            return state, None
        since = 0 if doubt is None or any(staged.known_id for staged in group) else doubt.version
        return state, find_published(state, [staged.id for staged in group], since)
    except NotFound as error:
        if lineage.lineage_id is None:
            raise
        raise branch_not_found_error(branch) from error
    except StorageUnavailable as error:
        if doubt is None:
            raise
        raise OutcomeUnknown(group[0].id) from error


def _prepare(
    lineage: Lineage, state: LineageState, branch: str, group: Sequence[StagedCommit]
) -> tuple[list[Commit], Head, list[NewManifestRow]]:
    """Check the preconditions of the writers and return what the swap writes."""
    _check_preconditions(state, branch, group)
    commits: list[CommitRow] = []
    states: list[dict[TypeKey, DatasetEntry]] = []
    changes: list[list[NewManifestRow]] = []
    inherited: list[NewManifestRow] = []
    head, datasets = state.head, dict(state.head.datasets)
    for staged in group:
        check_staged_files(lineage, state.head, staged)
        bypass = not staged.maintenance and check_publish(branch, head, staged.permit)
        schema_hash = staged.schema.hash if staged.schema is not None else head.schema_hash
        commit = Commit(
            id=staged.id,
            parents=(head.commit_id, *staged.merged_parents),
            branch=branch,
            actor=staged.actor,
            message=staged.message,
            operation=staged.operation,
            created_at=_commit_time(state, head),
            manifest_version=state.version + 1,
            counts=staged.counts,
            proposal=staged.permit.proposal,
            bypass=bypass,
            schema_hash=schema_hash,
            watermarks=staged.watermarks,
        )
        rows = [
            row
            for change in staged.datasets
            for row in _apply_dataset(change, datasets, commit, state)
        ]
        if staged.schema is not None and state.row(f"schema:{schema_hash}") is None:
            rows.append(schema_row(schema_hash, staged.schema.source, staged.schema.document))
        head = replace(
            head_after_merge(head, staged.permit, staged.id),
            commit_id=staged.id,
            schema_hash=schema_hash,
            datasets=datasets,
            created_at=commit.created_at,
            generation=max(head.generation, staged.merged_generation) + 1,
        )
        commits.append(CommitRow(commit, lineage.lineage_id, generation=head.generation))
        states.append(dict(datasets))
        changes.append(rows)
        if staged.history:
            inherited += _rows_not_in_lineage(state, staged, {row.object_id for row in rows})
    rows = inherited
    for staged, row, shown, changed in zip(group, commits, states, changes, strict=True):
        if staged is not group[-1]:
            differing = (entry for key, entry in shown.items() if datasets.get(key) != entry)
            row = replace(row, state=tuple(differing))
        if row.generation % CHECKPOINT_INTERVAL == 0:
            row = replace(row, datasets=tuple(shown.values()))
        # Histories are read from the newest row: with a commit, its datasets have been read.
        rows += [commit_row(row, staged.footprint.encode()), *changed]
    return [row.commit for row in commits], head, rows


def _rows_not_in_lineage(
    state: LineageState, staged: StagedCommit, written: set[str]
) -> list[NewManifestRow]:
    """Return the inherited rows that neither the lineage holds nor this commit writes."""
    if state.version > staged.history_version:
        written |= {row["object_id"] for row in state.rows_after(staged.history_version)}
    return [row for row in staged.history if row.object_id not in written]


def _commit_time(state: LineageState, head: Head) -> datetime:
    """Return the current time, but later than the head, which another clock may have stamped."""
    parent = head.created_at
    if parent is None and (row := state.row(commit_key(head.commit_id))) is not None:
        parent = read_commit(row).commit.created_at
    now = datetime.now(UTC)
    return now if parent is None else max(now, parent + timedelta(microseconds=1))


def _check_preconditions(state: LineageState, branch: str, group: Sequence[StagedCommit]) -> None:
    head = state.head
    if head.closed:
        raise branch_not_found_error(branch)
    parent, running = head.commit_id, {key: e.physical for key, e in head.datasets.items()}
    for staged in group:
        if staged.last_cleanup is not None and staged.last_cleanup != head.last_cleanup:
            raise CleanupBegan(staged.id)
        if staged.if_commit is not None and parent != staged.if_commit:
            raise PreconditionFailed(staged.if_commit, parent)
        if staged.read_schema is not None and head.schema_hash != staged.read_schema:
            raise SchemaMoved(staged.read_schema, head.schema_hash)
        for table_key, (key, physical) in staged.reads.items():
            entry = head.datasets.get(key)
            _check_version(state, table_key, key, physical, entry.physical if entry else None)
        for change in staged.datasets:
            _check_version(
                state, change.table_key, change.key, change.expected, running.get(change.key)
            )
            if change.physical is not None:
                running[change.key] = change.physical
        parent = staged.id


def _check_version(
    state: LineageState, table_key: str, key: TypeKey, expected: int | None, actual: int | None
) -> None:
    if actual != expected:
        entry = state.head.datasets.get(key)
        raise ExpectedVersionMismatch(
            table_key,
            _logical_version(state, key, expected),
            entry.version if entry is not None else None,
        )


def _logical_version(state: LineageState, key: TypeKey, physical: int | None) -> int | None:
    """Return the logical version of a physical one, from history."""
    if physical is None:
        return None
    rows = state.rows(f"object_type = 'table_version' AND stable_table_id = {key[0]}")
    entries = (read_version(row.row)[1] for row in rows)
    return next((e.version for e in entries if (e.key, e.physical) == (key, physical)), None)


def _apply_dataset(
    change: StagedDataset,
    datasets: dict[TypeKey, DatasetEntry],
    commit: Commit,
    state: LineageState,
) -> list[NewManifestRow]:
    """Apply one change to the datasets of the head and return its history rows."""
    before = datasets.get(change.key)
    if change.physical is None:
        assert before is not None, "the expected version was checked"
        del datasets[change.key]
        return [tombstone_row(before, change.table_key, commit.id)]
    version = 1 if before is None else before.version + 1
    entry = DatasetEntry(*change.key, version, change.physical, change.rows, change.excluded)
    datasets[change.key] = entry
    rows = [version_row(entry, change.table_key, commit.id, change.checksums)]
    if before is None:
        assert change.location is not None, "a new dataset has a location"
        registration = table_row(entry, change.table_key, change.location)
        if state.row(registration.object_id) is None:  # it may have been dropped before
            rows.append(registration)
    return rows


def find_published(
    state: LineageState, ids: Sequence[CommitId], since: int = 0
) -> list[Commit] | None:
    """Return commits if they were published after a version of the lineage.

    Raises:
        Contention: the ID of one was fenced.
    """
    stored = (
        [row for id_ in ids if (row := state.row(commit_key(id_))) is not None]
        if not since
        else [row for row in state.rows_after(since) if row["object_id"] in map(commit_key, ids)]
    )
    rows = [read_commit(row) for row in stored]
    fenced = next((row.commit.id for row in rows if row.aborted), None)
    if fenced is not None:
        message = f"commit {fenced} was aborted by recovery; stage it again"
        raise Contention(message, code="commit_fenced", commit_id=fenced)
    commits = {row.commit.id: row.commit for row in rows}
    if len(commits) < len(ids):
        return None
    state.lineage.sync(state.version)  # their writer may have died before it did
    return [commits[id_] for id_ in ids]


def retry_swap(attempt: Callable[[], None], budget: int = _SWAP_RETRY_BUDGET) -> None:
    """Run a small idempotent swap, with retries after lost races and storage errors."""
    for number in range(budget + 1):
        try:
            attempt()
        except (Contention, StorageUnavailable) as error:
            allowed = budget if isinstance(error, Contention) else PUBLISHER_RETRY_BUDGET
            if number >= allowed:
                raise
            _back_off(min(number, PUBLISHER_RETRY_BUDGET))
        else:
            return


def _back_off(attempt: int) -> None:
    """Wait with exponential backoff and jitter."""
    sleep(_FIRST_BACKOFF_SECONDS * 2**attempt * (0.5 + random.random()))  # noqa: S311 - jitter
