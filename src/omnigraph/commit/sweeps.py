"""This module lets cleanup and everybody else agree on what may be removed.

Before cleanup marks what it keeps, it announces itself in the head of every branch, by the swap
that all writers use. Whatever was published or named before is seen by its marks; whatever comes
later finds the announcement and is refused if what it relies on may be going.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from ulid import ULID

from omnigraph.commit.lineage import Lineage
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Head, Snapshot
from omnigraph.commit.publish import retrying
from omnigraph.commit.staged import minted_at
from omnigraph.commit.upkeep import upkeep
from omnigraph.errors import Contention, NotFound

DEAD_AFTER = timedelta(minutes=30)
"""An announcement this old is of a cleanup that died: one that lives renews it."""
RENEW_AFTER = timedelta(minutes=5)


class Sweep:
    """A cleanup under way, as it announces itself.

    What was staged until `cutoff` may be removed, and states that were not a head since `horizon`.
    """

    def __init__(self, manifest: Manifest, horizon: datetime, cutoff: datetime) -> None:
        self._manifest = manifest
        self._horizon = _milliseconds(horizon)
        self._cutoff = _milliseconds(cutoff)
        self._id: str | None = None

    def announce(self) -> None:
        """Tell every branch that a cleanup begins."""
        self._announce()
        for branch in self._manifest.branches().values():
            with suppress(NotFound):  # it was just deleted, or is lost, which the marks will tell
                expire(self._manifest.lineage(branch.native), self._cutoff, self._id)

    def go_on(self) -> None:
        """Make sure that nobody takes this cleanup for dead, before it removes something."""
        assert self._id is not None, "it was announced"
        if datetime.now(UTC) - minted_at(self._id) > RENEW_AFTER:
            self._announce()

    def conclude(self) -> None:
        """Take the announcement back: what was to be removed is gone, or stays."""
        _change_head(self._manifest.main, lambda head: replace(head, sweeping=self._others(head)))

    def _announce(self) -> None:
        before, now = self._id, str(ULID())

        def begin(head: Head) -> Head:
            if before is not None and before not in under_way(head) and head.sweep != now:
                message = "this cleanup was taken for dead; run it again"
                raise Contention(message, code="cleanup_expired")
            sweeping = {**self._others(head), now: self._horizon}
            swept = max(head.swept, self._cutoff)
            return replace(head, swept=swept, sweep=now, sweeping=sweeping)

        _change_head(self._manifest.main, begin)
        self._id = now

    def _others(self, head: Head) -> dict[str, int]:
        return {id_: since for id_, since in under_way(head).items() if id_ != self._id}


def under_way(head: Head) -> dict[str, int]:
    """Return the cleanups main's head announces that may still remove something."""
    dead = datetime.now(UTC) - DEAD_AFTER
    return {id_: since for id_, since in head.sweeping.items() if minted_at(id_) > dead}


def expire(lineage: Lineage, until: int, sweep: str | None = None) -> None:
    """Let nothing be published on a lineage that was staged until a time, in milliseconds.

    `sweep` is the cleanup because of which.
    """
    _change_head(
        lineage,
        lambda head: replace(head, swept=max(head.swept, until), sweep=sweep or head.sweep),
    )


def is_spared(manifest: Manifest, source: Snapshot, head: Head) -> bool:
    """Tell whether the cleanups that main's head announces keep a state, whatever happens.

    They keep what is a head now, and what was one since their horizon, of branches that stay.
    """
    sweeping = under_way(head)
    if not sweeping:
        return True
    if source.native is not None:
        names = [b for b in manifest.registered().values() if b.native == source.native]
        if not names or names[0].leaving:
            return False
    if _milliseconds(minted_at(source.commit_id)) >= max(sweeping.values()):
        return True
    return manifest.lineage(source.native).state().head.commit_id == source.commit_id


def stays(manifest: Manifest, source: Snapshot) -> bool:
    """Tell whether a state is one cleanup keeps now, as long as none begins after this.

    A branch that is deleted later is then missed only by a cleanup that announces itself first.
    """
    if under_way(manifest.main.state().head):
        return False
    names = {b.native for b in manifest.registered().values() if not b.leaving}
    return source.native is None or source.native in names


def _change_head(lineage: Lineage, change: Callable[[Head], Head]) -> None:
    def attempt() -> None:
        state = lineage.state()
        head = change(state.head)
        if head != state.head and not state.head.closed:
            lineage.swap(state, head)

    retrying(attempt)
    upkeep(lineage)


def _milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)
