"""This module reads and swaps the manifest lineage of one branch.

A lineage is a dataset: `__manifest` for main, one of its own for every other branch. Its newest
version holds the head row, in which the whole state of the branch is folded; reading a branch is
one probe for a newer version and, when there is one, one row.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.commit.manifest_rows import (
    FORMAT_VERSION_KEY,
    HEAD_KEY,
    NAME_ROW_TYPES,
    NewManifestRow,
    checksum_rows,
    head_row,
    manifest_table,
    read_head,
    update_row_checksum,
)
from omnigraph.commit.model import Head
from omnigraph.errors import Contention, FormatUnsupported, GraphCorrupt, NotFound, VersionReclaimed
from omnigraph.storage import Datasets
from omnigraph.storage.checksums import check_file_checksums
from omnigraph.storage.compare_and_swap import (
    ANCHOR_FRAGMENT,
    ManifestRow,
    compare_and_swap,
    next_fragment_id,
    read_head_row,
    read_oldest_row,
    read_rows,
)
from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.layout import lineage_path
from omnigraph.storage.lru_cache import LruCache
from omnigraph.storage.row_lookup import sql_text
from omnigraph.version import INTERNAL_SCHEMA_VERSION

# ----------------------------------------------------------------------
# This module checks the format stamp of a manifest, in both directions.


def check_format_version(metadata: Mapping[bytes, bytes] | None) -> None:
    """Refuse a manifest this package cannot read, saying what to do about it."""
    found = (metadata or {}).get(FORMAT_VERSION_KEY)
    text = None if found is None else found.decode(errors="replace")
    if text == str(INTERNAL_SCHEMA_VERSION):
        return
    if text is None or not text.isdigit():
        raise FormatUnsupported(
            "this manifest has no readable format stamp: not made by omnigraph, or damaged",
            found=text,
        )
    if int(text) > INTERNAL_SCHEMA_VERSION:
        raise FormatUnsupported(
            f"this graph has format {text}, newer than {INTERNAL_SCHEMA_VERSION}: "
            "upgrade omnigraph first",
            found=text,
        )
    raise FormatUnsupported(
        f"this graph has format {text}, older than {INTERNAL_SCHEMA_VERSION}: export it with the "
        "version of omnigraph that wrote it, and import it with this one",
        found=text,
    )


MAX_TAIL_FRAGMENTS = 16
"""Small fragments a lineage may have before a publisher merges them."""
TOO_MANY_FRAGMENTS = 2 * MAX_TAIL_FRAGMENTS
"""When merging by itself keeps losing to publishers, the next publish merges as well."""
TIER_GROWTH = 8
"""A fragment this many times larger than all newer ones together is not merged with them yet."""
BASE_FRAGMENT_ROWS = 65_536
"""A fragment of this size is left alone by publishers."""
MAX_CACHED_FRAGMENTS = 64
"""Fragments a process remembers the rows of, because it wrote them."""
SLOW_SWAP_SECONDS = 30.0
"""A swap that took longer is looked for in storage before it counts as done."""


@dataclass(frozen=True, slots=True)
class LineageState:
    """One version of a lineage."""

    version: int
    head: Head
    handle: Any = field(repr=False)
    lineage: Lineage = field(repr=False)

    def rows(self, condition: str) -> list[ManifestRow]:
        """Return the rows that satisfy a condition."""
        with self.lineage.whole(self.handle):
            return read_rows(self.handle, condition)

    def names(self, kind: str, but: Sequence[int] = ()) -> list[ManifestRow]:
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

    def row(self, object_id: str) -> ManifestRow | None:
        """Return one row by its key."""
        found = self.rows(f"object_id = {sql_text(object_id)}")
        return found[0] if found else None

    def oldest_row(self, object_id: str) -> ManifestRow | None:
        """Return one row by its key; cheap when it is as old as the lineage."""
        with self.lineage.whole(self.handle):
            return read_oldest_row(self.handle, f"object_id = {sql_text(object_id)}")


class Lineage:
    """The manifest lineage of one branch; None is main."""

    def __init__(self, datasets: Datasets, native: str | None) -> None:
        self.native = native
        self.datasets = datasets
        self.path = lineage_path(native)
        self._state: LineageState | None = None
        self._probed = 0.0
        self._written: LruCache[int, pa.Table] = LruCache(MAX_CACHED_FRAGMENTS)
        self._lock = Lock()

    @property
    def known(self) -> LineageState | None:
        """The newest state seen so far, asking nobody."""
        with self._lock:
            return self._state

    def state(self) -> LineageState:
        """Return the newest state: one probe, and one row when something is newer."""
        known, now = self.known, _boot_clock()
        if known is not None:
            with translate_errors("probing the manifest"):
                if known.handle.latest_version == known.version:
                    self._probed = now
                    return known
        found = self._remember(self._read(None))
        self._probed = now
        return found

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
        self,
        base: LineageState,
        head: Head,
        rows: Iterable[NewManifestRow] = (),
        stale: Sequence[ManifestRow] = (),
    ) -> LineageState:
        """Publish a new head and rows on top of `base`; raise Contention if it moved."""
        probed, observe, rows = self._probed, self.datasets.observe, list(rows)
        observe("swap: begun")
        if base.head.row_sum is not None:
            total = update_row_checksum(base.head.row_sum, rows, (found.row for found in stale))
            head = replace(head, row_sum=total)
        first = head_row(head, base.version + 1)
        newest, history, merged = manifest_table([first, *rows]), list[pa.Table](), list[int]()
        if len(base.handle.get_fragments()) > TOO_MANY_FRAGMENTS:
            small = _small_newest_fragments(base.handle)
            if len(small) > TOO_MANY_FRAGMENTS:
                history, names = self._merge(small, gone=stale)
                newest = pa.concat_tables([newest, names]).combine_chunks()
                merged = [fragment.fragment_id for fragment in small]
        left = [found for found in stale if found.address >> 32 not in merged]
        handle = compare_and_swap(base.handle, [*history, newest], observe, left, merged)
        observe("swap: done")
        if _boot_clock() - probed > SLOW_SWAP_SECONDS:
            self._confirm(int(handle.version))
        return self._made(handle, head, [*history, newest])

    def record_row_sum(self) -> None:
        """Record the checksum of the rows in a head that has none: an older release wrote it."""
        state = self.state()
        if state.head.row_sum is None and not state.head.closed:
            rows = state.rows("object_type <> 'graph_head'")
            self.swap(state, replace(state.head, row_sum=checksum_rows(f.row for f in rows)))

    def _confirm(self, version: int) -> None:
        """Raise Contention unless a version is the newest of a lineage that is all there.

        A process that was put to sleep within a swap may wake up when the version that beat it has
        been forgotten, or the whole lineage removed, and then finds nothing in its way.
        """
        state = self._read(None)
        state.rows("object_type = 'schema'")
        if state.version != version:
            raise Contention("publishing took long, and others published since")

    def compact(self) -> int:
        """Merge small fragments when there are many; return how many it merged."""
        state = self.known
        small = _small_newest_fragments(state.handle) if state is not None else []
        if state is None or len(small) <= MAX_TAIL_FRAGMENTS:
            return 0
        merged = [fragment.fragment_id for fragment in small]
        with self.whole(state.handle):
            history, names = self._merge(small)
        elsewhere = [found for kind in NAME_ROW_TYPES for found in state.names(kind, but=merged)]
        observe = self.datasets.observe
        observe("compaction: rows read")
        # Names stay beside the head: nobody has to look for them in a long history.
        head = replace(state.head, names=next_fragment_id(state.handle) + len(history))
        first = head_row(head, state.version + 1)
        moved = manifest_table([first, *(NewManifestRow(**found.row) for found in elsewhere)])
        newest = pa.concat_tables([moved, names]).combine_chunks()
        handle = compare_and_swap(state.handle, [*history, newest], observe, elsewhere, merged)
        observe("compaction: done")
        self._made(handle, head, [*history, newest])
        return len(merged)

    def _merge(
        self, small: Sequence[Any], gone: Sequence[ManifestRow] = ()
    ) -> tuple[list[pa.Table], pa.Table]:
        """Return the history rows and the names of fragments; what this process wrote is known."""
        with translate_errors("compacting the manifest"):
            tables = [self._rows_of(fragment) for fragment in reversed(small)]
        # Lance is slow to write many chunks.
        table = pa.concat_tables(tables).combine_chunks()
        dropped = [HEAD_KEY, *(found.row["object_id"] for found in gone)]
        left = table.filter(pc.invert(pc.is_in(table["object_id"], pa.array(dropped))))
        is_name = pc.is_in(left["object_type"], pa.array(NAME_ROW_TYPES))
        history = left.filter(pc.invert(is_name))
        return [history] if history.num_rows else [], left.filter(is_name)

    def _rows_of(self, fragment: Any) -> pa.Table:  # noqa: ANN401 - a Lance fragment
        written = self._written.get(fragment.fragment_id)
        if written is not None and not fragment.num_deletions:
            return written
        check_file_checksums(self.datasets.location.child(self.path), [fragment])
        return fragment.to_table()

    def _made(self, handle: Any, head: Head, tables: Sequence[pa.Table]) -> LineageState:  # noqa: ANN401
        """Remember what a swap made of tables: there is nothing to read back."""
        newest = next_fragment_id(handle) - 1
        for number, table in enumerate(reversed(tables)):
            self._written.put(newest - number, table)
        return self._remember(LineageState(int(handle.version), head, handle, self))

    def whole(self, handle: Any) -> AbstractContextManager[None]:  # noqa: ANN401 - a Lance handle
        """Run a read; raise NotFound when the lineage or version is gone, else GraphCorrupt."""
        return self.datasets.whole(self.path, int(handle.version))

    def _read(self, version: int | None) -> LineageState:
        handle = self.datasets.open(self.path, version)
        check_format_version(handle.schema.metadata)
        return self._state_of(handle)

    def _state_of(self, handle: Any) -> LineageState:  # noqa: ANN401 - a Lance handle
        with self.whole(handle):
            row = read_head_row(handle, ["object_id", "table_version", "metadata"])
            if row is None or (row["object_id"], row["table_version"]) != (
                HEAD_KEY,
                handle.version,
            ):
                # Something else wrote here. What we know is what the last of us knew.
                heads = read_rows(handle, f"object_id = {sql_text(HEAD_KEY)}")
                if not heads:
                    raise GraphCorrupt("the manifest holds no head")
                row = max((found.row for found in heads), key=lambda row: row["table_version"])
        return LineageState(int(handle.version), read_head(row), handle, self)

    def _remember(self, state: LineageState) -> LineageState:
        with self._lock:
            if self._state is None or self._state.version <= state.version:
                self._state = state
        return state


def _boot_clock() -> float:
    """Return seconds that no change of the time of day moves, and that count while asleep."""
    asleep_too = getattr(time, "CLOCK_BOOTTIME", None)  # where there is none, days count
    return time.time() if asleep_too is None else time.clock_gettime(asleep_too)


def _small_newest_fragments(handle: Any) -> list[Any]:  # noqa: ANN401 - a Lance handle
    """Return the newest fragments, up to one that is large itself or for what came after it.

    So a round of merging writes few rows however long the history is, and there are few tiers.
    """
    chosen: list[Any] = []
    rows = MAX_TAIL_FRAGMENTS
    for fragment in reversed(handle.get_fragments()):
        size = fragment.physical_rows
        if fragment.fragment_id == ANCHOR_FRAGMENT or size > min(
            TIER_GROWTH * rows, BASE_FRAGMENT_ROWS
        ):
            break
        chosen.append(fragment)
        rows += size
    return chosen
