"""This module is the door: the only function that makes a commit visible.

One attempt = read the head, check everything the writer relied on, one compare-and-swap. A lost
race re-runs every check. Outcomes are exactly three: a returned commit is visible; a conflict means
nothing happened; OutcomeUnknown means storage could not be asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from time import sleep

from omnigraph.catalog import IncarnationId, TypeId
from omnigraph.commit.history import rows_not_in_lineage
from omnigraph.commit.lineage import Lineage, LineageState
from omnigraph.commit.lineage_maintenance import maintain_lineage
from omnigraph.commit.manifest import branch_not_found_error
from omnigraph.commit.manifest_rows import (
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
from omnigraph.commit.model import Commit, DatasetEntry, Head
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset, check_staged_files
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

PUBLISHER_RETRY_BUDGET = 5
"""Further attempts after a lost race."""

_SWAP_RETRY_BUDGET = 20 * PUBLISHER_RETRY_BUDGET
"""The same for a small swap, which nobody could do better by coming back with another."""

_FIRST_BACKOFF_SECONDS = 0.005


def publish(lineage: Lineage, branch: str, staged: StagedCommit) -> Commit:
    """Make a staged commit visible on a branch and return it.

    Raises:
        ExpectedVersionMismatch: a dataset it read or wrote moved.
        SchemaMoved: the accepted schema moved.
        PreconditionFailed: the head is not `staged.if_commit`.
        NotFound: the branch is gone.
        Contention: the retry budget is spent, or it was staged too long ago.
        OutcomeUnknown: storage could not be asked.
    """
    doubt: _UncertainSwap | None = None
    for attempt in range(PUBLISHER_RETRY_BUDGET + 1):
        state, landed = _read_state(lineage, branch, staged, doubt)
        if landed is not None:
            return landed
        commit, head, rows = _prepare(lineage, state, branch, staged)
        try:
            lineage.swap(state, head, rows)
        except (Contention, NotFound, StorageUnavailable) as error:
            doubt = _UncertainSwap(error, state.version)
            _back_off(attempt)
        else:
            maintain_lineage(lineage)
            return commit
    _, landed = _read_state(lineage, branch, staged, doubt)
    if landed is not None:
        return landed
    assert doubt is not None, "every attempt returned or failed"
    raise doubt.error


@dataclass(frozen=True, slots=True)
class _UncertainSwap:
    """A swap that failed, and what it was tried on.

    It may have landed although its answer was lost; even a refusal may answer a repetition below.
    """

    error: OmniError
    version: int

    def is_settled_by(self, state: LineageState, staged: StagedCommit) -> bool:
        """Tell whether a state shows that the swap did not land, which no other version could."""
        newer = state.version - self.version
        return newer == 0 or (newer == 1 and state.head.commit_id != staged.id)


def _read_state(
    lineage: Lineage, branch: str, staged: StagedCommit, doubt: _UncertainSwap | None
) -> tuple[LineageState, Commit | None]:
    """Return the newest state, and the commit if it is there already."""
    try:
        state = lineage.state()
        settled = doubt is None or doubt.is_settled_by(state, staged)
        return state, None if settled and not staged.known_id else _find_published(state, staged)
    except NotFound as error:
        if lineage.native is None:
            raise
        raise branch_not_found_error(branch) from error
    except StorageUnavailable as error:
        if doubt is None:
            raise
        raise OutcomeUnknown(staged.id) from error


def _prepare(
    lineage: Lineage, state: LineageState, branch: str, staged: StagedCommit
) -> tuple[Commit, Head, list[NewManifestRow]]:
    """Check what the writer relied on and return what the swap writes."""
    head = state.head
    _check_preconditions(state, branch, staged)
    check_staged_files(lineage, head, staged)
    schema_hash = staged.schema.hash if staged.schema is not None else head.schema_hash
    commit = Commit(
        id=staged.id,
        parents=(head.commit_id, *staged.merged_parents),
        branch=branch,
        actor=staged.actor,
        message=staged.message,
        operation=staged.operation,
        created_at=_commit_time(state),
        manifest_version=state.version + 1,
        counts=staged.counts,
        schema_hash=schema_hash,
    )
    datasets = dict(head.datasets)
    rows = [commit_row(commit, lineage.native)]
    for change in staged.datasets:
        rows += _apply_dataset(change, datasets, commit, state)
    if staged.schema is not None and state.row(f"schema:{schema_hash}") is None:
        rows.append(schema_row(schema_hash, staged.schema.source, staged.schema.document))
    if staged.history:
        made = {row.object_id for row in rows}
        rows += [
            row for row in rows_not_in_lineage(state, staged.history) if row.object_id not in made
        ]
    new_head = replace(
        head,
        commit_id=staged.id,
        schema_hash=schema_hash,
        datasets=datasets,
        created_at=commit.created_at,
    )
    return commit, new_head, rows


def _commit_time(state: LineageState) -> datetime:
    """Return the time, but later than that of the head, whose clock may have been ahead."""
    parent = state.head.created_at
    if parent is None and (found := state.row(commit_key(state.head.commit_id))) is not None:
        parent = read_commit(found.row).commit.created_at
    now = datetime.now(UTC)
    return now if parent is None else max(now, parent + timedelta(microseconds=1))


def _check_preconditions(state: LineageState, branch: str, staged: StagedCommit) -> None:
    head = state.head
    if head.closed:
        raise branch_not_found_error(branch)
    if staged.sweep is not None and staged.sweep != head.sweep:
        raise CleanupBegan(staged.id)
    if staged.if_commit is not None and head.commit_id != staged.if_commit:
        raise PreconditionFailed(staged.if_commit, head.commit_id)
    if staged.read_schema is not None and head.schema_hash != staged.read_schema:
        raise SchemaMoved(staged.read_schema, head.schema_hash)
    expected = {change.table_key: (change.key, change.expected) for change in staged.datasets}
    for table_key, (key, physical) in {**staged.reads, **expected}.items():
        entry = head.datasets.get(key)
        if (entry.physical if entry is not None else None) != physical:
            raise ExpectedVersionMismatch(
                table_key,
                _logical_version(state, key, physical),
                entry.version if entry is not None else None,
            )


def _logical_version(
    state: LineageState, key: tuple[TypeId, IncarnationId], physical: int | None
) -> int | None:
    """Return the small version people know for a physical one, from history."""
    if physical is None:
        return None
    found = state.rows(f"object_type = 'table_version' AND stable_table_id = {key[0]}")
    entries = (read_version(row.row)[1] for row in found)
    return next((e.version for e in entries if (e.key, e.physical) == (key, physical)), None)


def _apply_dataset(
    change: StagedDataset,
    datasets: dict[tuple[TypeId, IncarnationId], DatasetEntry],
    commit: Commit,
    state: LineageState,
) -> list[NewManifestRow]:
    """Fold one change into the datasets of the head and return its history rows."""
    before = datasets.get(change.key)
    if change.physical is None:
        assert before is not None, "the expected version was checked"
        del datasets[change.key]
        return [tombstone_row(before, change.table_key, commit.id)]
    version = 1 if before is None else before.version + 1
    entry = DatasetEntry(change.type_id, change.incarnation, version, change.physical, change.rows)
    datasets[change.key] = entry
    rows = [version_row(entry, change.table_key, commit.id, change.sums)]
    if before is None:
        assert change.location is not None, "a new dataset has a location"
        registration = table_row(entry, change.table_key, change.location)
        if state.row(registration.object_id) is None:  # it may have been dropped before
            rows.append(registration)
    return rows


def _find_published(state: LineageState, staged: StagedCommit) -> Commit | None:
    """Return the commit if it is there; raise when its id has been fenced."""
    found = state.row(commit_key(staged.id))
    if found is None:
        return None
    row = read_commit(found.row)
    if row.aborted:
        message = f"commit {staged.id} was given up by recovery; stage it again"
        raise Contention(message, code="commit_fenced", commit_id=staged.id)
    return row.commit


def retry_swap(attempt: Callable[[], None], budget: int = _SWAP_RETRY_BUDGET) -> None:
    """Run a small idempotent swap until it is not preempted, within a budget."""
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
    """Wait a little longer after each lost race, not all writers equally long."""
    sleep(_FIRST_BACKOFF_SECONDS * 2**attempt * (0.5 + random.random()))  # noqa: S311 - jitter
