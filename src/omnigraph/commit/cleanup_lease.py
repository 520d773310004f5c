"""Announce cleanups to concurrent writers, so that both agree on which files may be removed.

Before cleanup marks the files to keep, it announces itself in the head of every branch by the same
swap that writers use. Commits and names published earlier are included in its marks; later writers
find the announcement and fail if files they rely on may be removed. All times are the
store's: clocks of machines may be wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from ulid import ULID

from omnigraph.commit.history import find_commit
from omnigraph.commit.lineage import Lineage
from omnigraph.commit.lineage_maintenance import maintain_lineage
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Head, Snapshot
from omnigraph.commit.publish import retry_swap
from omnigraph.commit.staged_commit import commit_id_time
from omnigraph.errors import Contention, NotFound, StorageUnavailable
from omnigraph.storage.layout import version_file

LEASE_TIMEOUT = timedelta(minutes=30)
"""An announcement older than this belongs to a dead cleanup; a live one renews it."""
LEASE_RENEWAL = timedelta(minutes=5)
STORE_CLOCK_TOLERANCE = timedelta(seconds=2)
"""Modification times of objects may be this much too early."""
MAX_CLOCK_SKEW = timedelta(minutes=1)
"""An announced time this far ahead of the store's clock is invalid."""


class CleanupLease:
    """The announcement of a running cleanup; `began` is a time of the store.

    Files that the store wrote before `cutoff` may be removed, and states that have not been a head
    since `horizon`.
    """

    def __init__(
        self, manifest: Manifest, *, began: datetime, horizon: datetime, cutoff: datetime
    ) -> None:
        self._manifest = manifest
        self._began = began
        self._horizon = to_milliseconds(horizon)
        self._cutoff = to_milliseconds(cutoff)
        self._id: str | None = None

    def acquire(self) -> None:
        """Announce the cleanup on every branch."""
        self._announce(self._began)
        for branch in self._manifest.branches().values():
            with suppress(NotFound):  # just deleted, or lost, which marking reports
                _set_cleanup_cutoff(
                    self._manifest.lineage(branch.lineage_id), self._cutoff, self._began
                )

    def renew(self) -> None:
        """Check that the announcement is still valid, and renew it if it is old."""
        assert self._id is not None, "the lease was acquired"
        now = self._manifest.objects.now()
        if now < self._began - STORE_CLOCK_TOLERANCE:
            # Files of writers that started since would seem to be older than the cutoff.
            message = "the clock of the storage was set back; run the cleanup again"
            raise StorageUnavailable(message, code="storage_clock_changed")
        if now - commit_id_time(self._id) > LEASE_RENEWAL:
            self._announce(now)

    def release(self) -> None:
        """Withdraw the announcement."""
        _update_head(
            self._manifest.main, lambda head: replace(head, active_cleanups=self._others(head))
        )

    def _announce(self, now: datetime) -> None:
        before, new = self._id, str(ULID.from_datetime(now))

        def begin(head: Head) -> Head:
            if new in head.active_cleanups:
                return head  # only the response of the swap was lost
            if before is not None and before not in unexpired_cleanups(head, now):
                message = "the lease of this cleanup expired; run it again"
                raise Contention(message, code="cleanup_expired")
            cleanup_cutoff = max(min(head.cleanup_cutoff, to_milliseconds(now)), self._cutoff)
            active_cleanups = {**unexpired_cleanups(head, now), new: self._horizon}
            active_cleanups.pop(before or "", None)
            return replace(
                head,
                cleanup_cutoff=cleanup_cutoff,
                last_cleanup=new,
                active_cleanups=active_cleanups,
            )

        _update_head(self._manifest.main, begin)
        self._id = new

    def _others(self, head: Head) -> dict[str, int]:
        return {id_: since for id_, since in head.active_cleanups.items() if id_ != self._id}


def unexpired_cleanups(head: Head, now: datetime) -> dict[str, int]:
    """Return the cleanups announced in main's head that have not expired."""
    return {
        i: since
        for i, since in head.active_cleanups.items()
        if commit_id_time(i) > now - LEASE_TIMEOUT
    }


def copy_cleanup_state(lineage: Lineage, main: Head) -> None:
    """Copy the announcement in main's head to a lineage that is not registered yet."""
    _update_head(
        lineage,
        lambda head: replace(
            head, cleanup_cutoff=main.cleanup_cutoff, last_cleanup=main.last_cleanup
        ),
    )


def is_kept_by_cleanups(manifest: Manifest, source: Snapshot, head: Head) -> bool:
    """Return whether the cleanups announced in main's head certainly keep a snapshot.

    They keep current heads, and states published since their horizon, of branches that are not
    being deleted.
    """
    active_cleanups = (
        unexpired_cleanups(head, manifest.objects.now()) if head.active_cleanups else {}
    )
    if not active_cleanups:
        return True
    if source.lineage_id is not None:
        names = [
            b for b in manifest.registered_branches().values() if b.lineage_id == source.lineage_id
        ]
        if not names or names[0].deleting:
            return False
    if manifest.lineage(source.lineage_id).state().head.commit_id == source.commit_id:
        return True
    row, _ = find_commit(manifest, source.commit_id)
    file = manifest.lineage(row.lineage_id).path + "/" + version_file(row.commit.manifest_version)
    published = manifest.objects.modified(file)
    return published is not None and published.timestamp() * 1000 > max(active_cleanups.values())


def is_safe_from_cleanup(manifest: Manifest, source: Snapshot) -> bool:
    """Return whether cleanup keeps a snapshot, as long as no cleanup starts after this call.

    If its branch is deleted later, only a cleanup that is announced first can remove it.
    """
    state = manifest.main.state()
    if state.head.active_cleanups and unexpired_cleanups(state.head, manifest.objects.now()):
        return False
    names = {b.lineage_id for b in manifest.registered_branches(state).values() if not b.deleting}
    return source.lineage_id is None or source.lineage_id in names


def release_stale_leases(manifest: Manifest) -> None:
    """Withdraw announcements of dead cleanups, and those ahead of the store's clock.

    The latter remain after a wrong clock was corrected, and never expire otherwise.
    """
    now = manifest.objects.now()
    ahead = now + MAX_CLOCK_SKEW

    def release(head: Head) -> Head:
        left = {
            id_: s
            for id_, s in unexpired_cleanups(head, now).items()
            if commit_id_time(id_) < ahead
        }
        return replace(
            head,
            cleanup_cutoff=min(head.cleanup_cutoff, to_milliseconds(now)),
            active_cleanups=left,
        )

    for lineage_id in (None, *(branch.lineage_id for branch in manifest.branches().values())):
        with suppress(NotFound):  # just deleted, or lost
            _update_head(manifest.lineage(lineage_id), release)


def _set_cleanup_cutoff(lineage: Lineage, until: int, now: datetime) -> None:
    """Announce on a lineage that files written before a time may be removed."""

    def announce(head: Head) -> Head:
        cleanup_cutoff = max(min(head.cleanup_cutoff, to_milliseconds(now)), until)
        return replace(
            head, cleanup_cutoff=cleanup_cutoff, last_cleanup=str(ULID.from_datetime(now))
        )

    _update_head(lineage, announce)


def _update_head(lineage: Lineage, change: Callable[[Head], Head]) -> None:
    def attempt() -> None:
        state = lineage.state()
        head = change(state.head)
        if head != state.head and not state.head.closed:
            lineage.swap(state, head)

    retry_swap(attempt)
    maintain_lineage(lineage)


def to_milliseconds(time: datetime) -> int:
    """Return a time in milliseconds since the epoch, as stored in heads."""
    return int(time.timestamp() * 1000)
