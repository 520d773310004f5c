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

DEAD_AFTER = timedelta(hours=6)
"""An announcement this old is of a cleanup that died, or it has to give up."""


def announce(manifest: Manifest, horizon: datetime, cutoff: datetime) -> str:
    """Tell every branch that a cleanup begins; return its id.

    What was staged until `cutoff` may be removed, and states that were not a head since `horizon`.
    """
    sweep = str(ULID())

    def begin(head: Head) -> Head:
        sweeping = {**under_way(head), sweep: _milliseconds(horizon)}
        swept = max(head.swept, _milliseconds(cutoff))
        return replace(head, swept=swept, sweep=sweep, sweeping=sweeping)

    _change_head(manifest.main, begin)
    for branch in manifest.branches().values():
        with suppress(NotFound):  # it was just deleted, or is lost, which the marks will tell
            expire(manifest.lineage(branch.native), _milliseconds(cutoff))
    return sweep


def conclude(manifest: Manifest, sweep: str) -> None:
    """Take an announcement back: what was to be removed is gone, or stays."""

    def end(head: Head) -> Head:
        left = {id_: since for id_, since in head.sweeping.items() if id_ != sweep}
        return replace(head, sweeping=left)

    _change_head(manifest.main, end)


def under_way(head: Head) -> dict[str, int]:
    """Return the cleanups main's head announces that may still remove something."""
    dead = datetime.now(UTC) - DEAD_AFTER
    return {id_: since for id_, since in head.sweeping.items() if minted_at(id_) > dead}


def check_alive(sweep: str) -> None:
    """Give up a cleanup that nobody will wait for much longer."""
    if datetime.now(UTC) - minted_at(sweep) > DEAD_AFTER - DEAD_AFTER / 6:
        message = "this cleanup takes too long; run it again to go on"
        raise Contention(message, code="cleanup_expired")


def expire(lineage: Lineage, until: int) -> None:
    """Let nothing be published on a lineage that was staged until a time, in milliseconds."""
    _change_head(lineage, lambda head: replace(head, swept=max(head.swept, until)))


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
