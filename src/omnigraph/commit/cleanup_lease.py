"""Announce cleanups to writers, so that both agree on what may be removed.

Before cleanup marks what it keeps, it announces itself in the head of every branch, by the swap
that all writers use. Whatever was published or named before is seen by its marks; whatever comes
later finds the announcement and is refused if what it relies on may be removed. All times are the
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
"""An announcement this old is of a cleanup that died: one that lives renews it."""
LEASE_RENEWAL = timedelta(minutes=5)
STORE_CLOCK_TOLERANCE = timedelta(seconds=2)
"""Times of objects may be older than the truth by this much."""
MAX_CLOCK_SKEW = timedelta(minutes=1)
"""An announced time this far ahead of the store's clock cannot be right."""


class CleanupLease:
    """A cleanup under way, as it announces itself; `began` is the store's time.

    Files the store wrote before `cutoff` may be removed, and states that were not a head since
    `horizon`.
    """

    def __init__(
        self, manifest: Manifest, *, began: datetime, horizon: datetime, cutoff: datetime
    ) -> None:
        self._manifest = manifest
        self._began = began
        self._horizon = to_milliseconds(horizon)
        self._cutoff = to_milliseconds(cutoff)
        self._id: str | None = None

    def announce(self) -> None:
        """Announce to every branch that a cleanup begins."""
        self._announce(self._began)
        for branch in self._manifest.branches().values():
            with suppress(NotFound):  # it was just deleted, or is lost, which the marks will show
                _set_cleanup_cutoff(
                    self._manifest.lineage(branch.native), self._cutoff, self._began
                )

    def go_on(self) -> None:
        """Check, before something is removed, that what was announced still holds."""
        assert self._id is not None, "it was announced"
        now = self._manifest.objects.now()
        if now < self._began - STORE_CLOCK_TOLERANCE:
            # Files of writers that began since would seem to be older than the cutoff.
            message = "the clock of the storage went back; run the cleanup again"
            raise StorageUnavailable(message, code="storage_clock_changed")
        if now - commit_id_time(self._id) > LEASE_RENEWAL:
            self._announce(now)

    def conclude(self) -> None:
        """Withdraw the announcement: what was to be removed is gone, or stays."""
        _update_head(self._manifest.main, lambda head: replace(head, sweeping=self._others(head)))

    def _announce(self, now: datetime) -> None:
        before, new = self._id, str(ULID.from_datetime(now))

        def begin(head: Head) -> Head:
            if new in head.sweeping:
                return head  # only the answer of the swap was lost
            if before is not None and before not in unexpired_cleanups(head, now):
                message = "this cleanup was taken for dead; run it again"
                raise Contention(message, code="cleanup_expired")
            swept = max(min(head.swept, to_milliseconds(now)), self._cutoff)
            sweeping = {**unexpired_cleanups(head, now), new: self._horizon}
            sweeping.pop(before or "", None)
            return replace(head, swept=swept, sweep=new, sweeping=sweeping)

        _update_head(self._manifest.main, begin)
        self._id = new

    def _others(self, head: Head) -> dict[str, int]:
        return {id_: since for id_, since in head.sweeping.items() if id_ != self._id}


def unexpired_cleanups(head: Head, now: datetime) -> dict[str, int]:
    """Return the cleanups main's head announces that may still remove something."""
    return {
        i: since for i, since in head.sweeping.items() if commit_id_time(i) > now - LEASE_TIMEOUT
    }


def copy_cleanup_state(lineage: Lineage, main: Head) -> None:
    """Announce on a lineage that is not registered yet what main's head announces."""
    _update_head(lineage, lambda head: replace(head, swept=main.swept, sweep=main.sweep))


def is_kept_by_cleanups(manifest: Manifest, source: Snapshot, head: Head) -> bool:
    """Return whether the cleanups that main's head announces keep a state, whatever happens.

    They keep what is a head now, and what was made since their horizon, of branches that stay.
    """
    sweeping = unexpired_cleanups(head, manifest.objects.now()) if head.sweeping else {}
    if not sweeping:
        return True
    if source.native is not None:
        names = [b for b in manifest.registered().values() if b.native == source.native]
        if not names or names[0].leaving:
            return False
    if manifest.lineage(source.native).state().head.commit_id == source.commit_id:
        return True
    row, _ = find_commit(manifest, source.commit_id)
    made = manifest.lineage(row.native).path + "/" + version_file(row.commit.manifest_version)
    published = manifest.objects.modified(made)
    return published is not None and published.timestamp() * 1000 > max(sweeping.values())


def is_safe_from_cleanup(manifest: Manifest, source: Snapshot) -> bool:
    """Return whether a state is one cleanup keeps now, as long as none begins after this.

    A branch that is deleted later is then missed only by a cleanup that announces itself first.
    """
    head = manifest.main.state().head
    if head.sweeping and unexpired_cleanups(head, manifest.objects.now()):
        return False
    names = {b.native for b in manifest.registered().values() if not b.leaving}
    return source.native is None or source.native in names


def release_stale_leases(manifest: Manifest) -> None:
    """Withdraw announcements of dead cleanups, and those that are ahead of the store's clock.

    A clock that was wrong leaves the latter, and nothing else would end them.
    """
    now = manifest.objects.now()
    ahead = now + MAX_CLOCK_SKEW

    def lifting(head: Head) -> Head:
        left = {
            id_: s
            for id_, s in unexpired_cleanups(head, now).items()
            if commit_id_time(id_) < ahead
        }
        return replace(head, swept=min(head.swept, to_milliseconds(now)), sweeping=left)

    for native in (None, *(branch.native for branch in manifest.branches().values())):
        with suppress(NotFound):  # it was just deleted, or is lost
            _update_head(manifest.lineage(native), lifting)


def _set_cleanup_cutoff(lineage: Lineage, until: int, now: datetime) -> None:
    """Announce on the lineage of a branch that files written before a time may be removed."""

    def expiring(head: Head) -> Head:
        swept = max(min(head.swept, to_milliseconds(now)), until)
        return replace(head, swept=swept, sweep=str(ULID.from_datetime(now)))

    _update_head(lineage, expiring)


def _update_head(lineage: Lineage, change: Callable[[Head], Head]) -> None:
    def attempt() -> None:
        state = lineage.state()
        head = change(state.head)
        if head != state.head and not state.head.closed:
            lineage.swap(state, head)

    retry_swap(attempt)
    maintain_lineage(lineage)


def to_milliseconds(time: datetime) -> int:
    """Return a time as heads hold it."""
    return int(time.timestamp() * 1000)
