"""This module reads and swaps the manifest lineage of one branch.

A lineage is a dataset: `__manifest` for main, one of its own for every other branch. Its newest
version holds the head row, in which the whole state of the branch is folded; reading a branch is
one probe for a newer version and, when there is one, one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.commit.format import check_stamp
from omnigraph.commit.model import Head
from omnigraph.commit.rows import HEAD_KEY, NAME_KINDS, Row, head_row, read_head, to_table
from omnigraph.errors import GraphCorrupt, NotFound, VersionReclaimed
from omnigraph.storage import Datasets
from omnigraph.storage.faults import translated
from omnigraph.storage.layout import lineage_path
from omnigraph.storage.literals import sql_text
from omnigraph.storage.swap import (
    ANCHOR,
    Found,
    merge_fragments,
    next_fragment,
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

    def names(self, kind: str, but: Sequence[int] = ()) -> list[Found]:
        """Return the rows of all branches or all tags, but of some fragments.

        It is cheap however long the history is.
        """
        fragments = [
            fragment
            for fragment in self.handle.get_fragments()
            if fragment.fragment_id >= self.head.names and fragment.fragment_id not in but
        ]
        with self.lineage.whole(self.handle):
            return read_rows(self.handle, f"object_type = {sql_text(kind)}", fragments)

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
        self.datasets = datasets
        self.path = lineage_path(native)
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
        except (NotFound, GraphCorrupt) as error:
            message = f"manifest version {version} does not exist or has been cleaned up"
            raise VersionReclaimed(message, manifest_version=version) from error

    def swap(
        self, base: LineageState, head: Head, rows: Iterable[Row] = (), stale: Sequence[Found] = ()
    ) -> LineageState:
        """Publish a new head and rows on top of `base`; raise Contention if it moved."""
        first = head_row(head)
        observe = self.datasets.observe
        observe("swap: begun")
        small = _tail(base.handle)
        merge = small if len(small) > TOO_MANY_FRAGMENTS else []
        table = to_table([first, *rows])
        handle = swap(base.handle, base.sentinel, table, stale, observe, merge)
        observe("swap: done")
        return self._remember(self._swapped(handle, head, first))

    def compact(self) -> int:
        """Merge small fragments when there are many; return how many it merged."""
        state = self.known
        if state is None:
            return 0
        with translated("compacting the manifest"):
            small = _tail(state.handle)
            if len(small) <= MAX_TAIL_FRAGMENTS:
                return 0
            merged = [fragment.fragment_id for fragment in small]
            table = state.handle.scanner(fragments=small).to_table()
        elsewhere = [found for kind in NAME_KINDS for found in state.names(kind, merged)]
        self.datasets.observe("compaction: rows read")
        is_name = pc.is_in(table["object_type"], pa.array(NAME_KINDS))
        is_history = pc.invert(pc.or_(is_name, pc.equal(table["object_id"], HEAD_KEY)))
        history = [table.filter(is_history)] if pc.any(is_history).as_py() else []
        # Names stay beside the head: nobody has to look for them in a long history.
        head = replace(state.head, names=next_fragment(state.handle) + len(history))
        first = head_row(head)
        moved = to_table([first, *(Row(**found.row) for found in elsewhere)])
        newest = pa.concat_tables([moved, table.filter(is_name)])
        addresses = [found.address for found in elsewhere]
        handle = merge_fragments(state.handle, merged, [*history, newest], addresses)
        self.datasets.observe("compaction: done")
        self._remember(self._swapped(handle, head, first))
        return len(merged)

    def _swapped(self, handle: Any, head: Head, first: Row) -> LineageState:  # noqa: ANN401
        """Return the state a swap made: there is nothing to read back."""
        newest = int(handle.get_fragments()[-1].fragment_id)
        sentinel = Found(newest << 32, {"object_id": HEAD_KEY, "metadata": first.metadata})
        return LineageState(int(handle.version), head, sentinel, handle, self)

    def whole(self, handle: Any) -> AbstractContextManager[None]:  # noqa: ANN401 - a Lance handle
        """Run a read; raise NotFound when the lineage or version is gone, else GraphCorrupt."""
        return self.datasets.whole(self.path, int(handle.version))

    def _read(self, version: int | None) -> LineageState:
        handle = self.datasets.open(self.path, version)
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
