"""Publish staged commits by compare-and-swap on the manifest.

`publish` is the only function that makes a commit visible. One attempt reads the head, checks
everything the writer relied on and does one compare-and-swap; a lost race repeats every check.
There are three outcomes: a returned commit is visible; a conflict means that nothing changed;
OutcomeUnknown means that storage could not be read.
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
"""Further attempts of a small swap; the caller could only repeat the same swap."""

_FIRST_BACKOFF_SECONDS = 0.005


def publish(lineage: Lineage, branch: str, staged: StagedCommit) -> Commit:
    """Make a staged commit visible on a branch and return it.

    Raises:
        ExpectedVersionMismatch: a dataset it read or wrote has changed.
        SchemaMoved: the accepted schema has changed.
        PreconditionFailed: the head is not `staged.if_commit`.
        NotFound: the branch was deleted.
        Contention: the retry budget is spent, or it was staged too long ago.
        OutcomeUnknown: storage could not be read after a failed swap.
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
    """A failed swap and the version it was based on.

    It may have succeeded although its response was lost; a rejection may be the response to a retry
    within the storage client.
    """

    error: OmniError
    version: int

    def is_settled_by(self, state: LineageState, staged: StagedCommit) -> bool:
        """Return whether a state proves that the swap did not succeed."""
        newer = state.version - self.version
        return newer == 0 or (newer == 1 and state.head.commit_id != staged.id)


def _read_state(
    lineage: Lineage, branch: str, staged: StagedCommit, doubt: _UncertainSwap | None
) -> tuple[LineageState, Commit | None]:
    """Return the newest state, and the commit if it is already published."""
    try:
        state = lineage.state()
        settled = doubt is None or doubt.is_settled_by(state, staged)
        return state, None if settled and not staged.known_id else _find_published(state, staged)
    except NotFound as error:
        if lineage.lineage_id is None:
            raise
        raise branch_not_found_error(branch) from error
    except StorageUnavailable as error:
        if doubt is None:
            raise
        raise OutcomeUnknown(staged.id) from error


def _prepare(
    lineage: Lineage, state: LineageState, branch: str, staged: StagedCommit
) -> tuple[Commit, Head, list[NewManifestRow]]:
    """Check the preconditions of the writer and return what the swap writes."""
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
    rows = [commit_row(commit, lineage.lineage_id)]
    for change in staged.datasets:
        rows += _apply_dataset(change, datasets, commit, state)
    if staged.schema is not None and state.row(f"schema:{schema_hash}") is None:
        rows.append(schema_row(schema_hash, staged.schema.source, staged.schema.document))
    if staged.history:
        written = {row.object_id for row in rows}
        inherited = rows_not_in_lineage(state, staged.history)
        rows += [row for row in inherited if row.object_id not in written]
    new_head = replace(
        head,
        commit_id=staged.id,
        schema_hash=schema_hash,
        datasets=datasets,
        created_at=commit.created_at,
    )
    return commit, new_head, rows


def _commit_time(state: LineageState) -> datetime:
    """Return the current time, but later than the head, which another clock may have stamped."""
    parent = state.head.created_at
    if parent is None and (row := state.row(commit_key(state.head.commit_id))) is not None:
        parent = read_commit(row.row).commit.created_at
    now = datetime.now(UTC)
    return now if parent is None else max(now, parent + timedelta(microseconds=1))


def _check_preconditions(state: LineageState, branch: str, staged: StagedCommit) -> None:
    head = state.head
    if head.closed:
        raise branch_not_found_error(branch)
    if staged.last_cleanup is not None and staged.last_cleanup != head.last_cleanup:
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
    """Return the logical version of a physical one, from history."""
    if physical is None:
        return None
    rows = state.rows(f"object_type = 'table_version' AND stable_table_id = {key[0]}")
    entries = (read_version(row.row)[1] for row in rows)
    return next((e.version for e in entries if (e.key, e.physical) == (key, physical)), None)


def _apply_dataset(
    change: StagedDataset,
    datasets: dict[tuple[TypeId, IncarnationId], DatasetEntry],
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
    entry = DatasetEntry(change.type_id, change.incarnation, version, change.physical, change.rows)
    datasets[change.key] = entry
    rows = [version_row(entry, change.table_key, commit.id, change.checksums)]
    if before is None:
        assert change.location is not None, "a new dataset has a location"
        registration = table_row(entry, change.table_key, change.location)
        if state.row(registration.object_id) is None:  # it may have been dropped before
            rows.append(registration)
    return rows


def _find_published(state: LineageState, staged: StagedCommit) -> Commit | None:
    """Return the commit if it is published; raise Contention if its ID was fenced."""
    stored = state.row(commit_key(staged.id))
    if stored is None:
        return None
    row = read_commit(stored.row)
    if row.aborted:
        message = f"commit {staged.id} was aborted by recovery; stage it again"
        raise Contention(message, code="commit_fenced", commit_id=staged.id)
    return row.commit


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
