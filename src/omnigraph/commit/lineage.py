"""This module reads and swaps the manifest lineage of one branch.

A lineage is a Lance branch of `__manifest`. Its newest version holds the head row, in which the
whole state of the branch is folded; reading a branch is one probe for a newer version and, when
there is one, one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any

import pyarrow.compute as pc

from omnigraph.commit.format import check_stamp
from omnigraph.commit.model import Head
from omnigraph.commit.rows import HEAD_KEY, Row, head_row, read_head, to_table
from omnigraph.errors import NotFound, VersionReclaimed
from omnigraph.storage import Datasets
from omnigraph.storage.faults import translated
from omnigraph.storage.layout import lineage_path
from omnigraph.storage.literals import sql_text
from omnigraph.storage.swap import (
    ANCHOR,
    Found,
    merge_fragments,
    read_oldest,
    read_rows,
    read_sentinel,
    swap,
)

MAX_TAIL_FRAGMENTS = 16
"""Small fragments a lineage may have before a publisher merges them."""
TOO_MANY_FRAGMENTS = 2 * MAX_TAIL_FRAGMENTS
"""When merging by itself keeps losing to publishers, the next publish merges as well."""
TIER_GROWTH = 8
"""A fragment this many times larger than all newer ones together is not merged with them yet."""
BASE_FRAGMENT_ROWS = 65_536
"""A fragment of this size is left alone by publishers."""


@dataclass(frozen=True, slots=True)
class LineageState:
    """One version of a lineage."""

    version: int
    head: Head
    sentinel: Found = field(repr=False)
    handle: Any = field(repr=False)
    lineage: Lineage = field(repr=False)

    def rows(self, condition: str) -> list[Found]:
        """Return the rows that satisfy a condition."""
        with self.lineage.whole(self.handle):
            return read_rows(self.handle, condition)

    def row(self, object_id: str) -> Found | None:
        """Return one row by its key."""
        found = self.rows(f"object_id = {sql_text(object_id)}")
        return found[0] if found else None

    def oldest_row(self, object_id: str) -> Found | None:
        """Return one row by its key; cheap when it is as old as the lineage."""
        with self.lineage.whole(self.handle):
            return read_oldest(self.handle, f"object_id = {sql_text(object_id)}")


class Lineage:
    """The manifest lineage of one branch; None is main."""

    def __init__(self, datasets: Datasets, native: str | None) -> None:
        self.native = native
        self._datasets = datasets
        self._path = lineage_path(native)
        self._state: LineageState | None = None
        self._lock = Lock()

    @property
    def known(self) -> LineageState | None:
        """The newest state seen so far, asking nobody."""
        with self._lock:
            return self._state

    def state(self) -> LineageState:
        """Return the newest state: one probe, and one row when something is newer."""
        known = self.known
        if known is not None:
            with translated("probing the manifest"):
                if known.handle.latest_version == known.version:
                    return known
        return self._remember(self._read(None))

    def at(self, version: int) -> LineageState:
        """Return the state at an older manifest version."""
        known = self.known
        if known is not None and known.version == version:
            return known
        try:
            return self._read(version)
        except NotFound as error:
            message = f"manifest version {version} does not exist or has been cleaned up"
            raise VersionReclaimed(message, manifest_version=version) from error

    def swap(
        self, base: LineageState, head: Head, rows: Iterable[Row] = (), stale: Sequence[Found] = ()
    ) -> LineageState:
        """Publish a new head and rows on top of `base`; raise Contention if it moved."""
        first = head_row(head)
        observe = self._datasets.observe
        observe("swap: begun")
        small = _tail(base.handle)
        merge = small if len(small) > TOO_MANY_FRAGMENTS else []
        table = to_table([first, *rows])
        handle = swap(base.handle, base.sentinel, table, stale, observe, merge)
        observe("swap: done")
        # The head is the first row of the newest fragment, so there is nothing to read back.
        newest = int(handle.get_fragments()[-1].fragment_id)
        sentinel = Found(newest << 32, {"object_id": HEAD_KEY, "metadata": first.metadata})
        return self._remember(LineageState(int(handle.version), head, sentinel, handle, self))

    def compact(self) -> bool:
        """Merge small fragments when there are many; tell whether there were."""
        state = self.known
        if state is None:
            return False
        with translated("compacting the manifest"):
            small = _tail(state.handle)
            if len(small) <= MAX_TAIL_FRAGMENTS:
                return False
            table = state.handle.scanner(fragments=small).to_table()
        self._datasets.observe("compaction: rows read")
        is_head = pc.equal(table["object_id"], HEAD_KEY)
        rows, head = table.filter(pc.invert(is_head)), table.filter(is_head)
        handle = merge_fragments(state.handle, [f.fragment_id for f in small], rows, head)
        self._datasets.observe("compaction: done")
        self._remember(self._state_of(handle))
        return True

    def forget_old_versions(self, horizon: datetime) -> None:
        """Remove versions that were not the newest since; branches forked from one keep theirs."""
        state = self.state()
        with translated("cleaning the manifest"):
            handle: Any = self._datasets.open(self._path, state.version)
            made = {v["version"]: v["timestamp"].astimezone(UTC) for v in handle.versions()}
            newest = max((v for v in made if made[v] < horizon), default=0)
            old = [version for version in made if version < newest]
            if old:
                handle.cleanup_old_versions(versions=old, error_if_tagged_old_versions=False)

    def whole(self, handle: Any) -> AbstractContextManager[None]:  # noqa: ANN401 - a Lance handle
        """Run a read; raise NotFound when the lineage or version is gone, else GraphCorrupt."""
        return self._datasets.whole(self._path, int(handle.version))

    def _read(self, version: int | None) -> LineageState:
        handle = self._datasets.open(self._path, version)
        check_stamp(handle.schema.metadata)
        return self._state_of(handle)

    def _state_of(self, handle: Any) -> LineageState:  # noqa: ANN401 - a Lance handle
        with self.whole(handle):
            sentinel = read_sentinel(handle, "object_id", HEAD_KEY, ["object_id", "metadata"])
        return LineageState(int(handle.version), read_head(sentinel.row), sentinel, handle, self)

    def _remember(self, state: LineageState) -> LineageState:
        with self._lock:
            if self._state is None or self._state.version <= state.version:
                self._state = state
        return state


def _tail(handle: Any) -> list[Any]:  # noqa: ANN401 - a Lance handle
    """Return the newest fragments, up to one that is large itself or for what came after it.

    So a round of merging writes few rows however long the history is, and there are few tiers.
    """
    chosen: list[Any] = []
    rows = MAX_TAIL_FRAGMENTS
    for fragment in reversed(handle.get_fragments()):
        size = fragment.physical_rows
        if fragment.fragment_id == ANCHOR or size > min(TIER_GROWTH * rows, BASE_FRAGMENT_ROWS):
            break
        chosen.append(fragment)
        rows += size
    return chosen
