"""Read and swap the manifest lineage of one branch.

A lineage is a dataset: `__manifest` for main, a separate one for every other branch. Its newest
version holds the head row with the complete state of the branch; reading a branch is one probe for
a newer version and, if there is one, one row.
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
    FOOTPRINT,
    FORMAT_VERSION_KEY,
    HEAD_KEY,
    MANIFEST_SCHEMA,
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
    add_columns_and_stamp,
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
from omnigraph.version import INTERNAL_SCHEMA_VERSION, READABLE_SCHEMA_VERSIONS

_CURRENT_FORMAT = str(INTERNAL_SCHEMA_VERSION).encode()


def check_format_version(metadata: Mapping[bytes, bytes] | None) -> None:
    """Raise FormatUnsupported, with the next step, for a format this release cannot read."""
    stamp = (metadata or {}).get(FORMAT_VERSION_KEY)
    text = None if stamp is None else stamp.decode(errors="replace")
    if text is not None and text in map(str, READABLE_SCHEMA_VERSIONS):
        return
    if text is None or not text.isdigit():
        raise FormatUnsupported(
            "the manifest has no readable format version: not written by omnigraph, or damaged",
            found=text,
        )
    if int(text) > INTERNAL_SCHEMA_VERSION:
        raise FormatUnsupported(
            f"this graph has format {text}, newer than {INTERNAL_SCHEMA_VERSION}: "
            "upgrade omnigraph first",
            found=text,
        )
    raise FormatUnsupported(
        f"this graph has format {text}, older than {READABLE_SCHEMA_VERSIONS[0]}: export it with "
        "the version of omnigraph that wrote it, and import it with this one",
        found=text,
    )


MAX_TAIL_FRAGMENTS = 16
"""Small fragments of a lineage above which a publisher merges them."""
TOO_MANY_FRAGMENTS = 2 * MAX_TAIL_FRAGMENTS
"""Small fragments above which a publish merges them in its own swap."""
TIER_GROWTH = 8
"""A fragment this many times larger than all newer ones together is not merged with them yet."""
BASE_FRAGMENT_ROWS = 65_536
"""Publishers do not merge fragments of this size or larger."""
MAX_CACHED_FRAGMENTS = 64
"""Number of fragments written by this process whose rows it caches."""
SLOW_SWAP_SECONDS = 30.0
"""A swap that took longer is confirmed by reading storage before it counts as done."""


@dataclass(frozen=True, slots=True)
class LineageState:
    """One version of a lineage."""

    version: int
    head: Head
    handle: Any = field(repr=False)
    lineage: Lineage = field(repr=False)

    @property
    def is_current_format(self) -> bool:
        """Whether the lineage has the format that this release writes."""
        return bool(self.handle.schema.metadata[FORMAT_VERSION_KEY] == _CURRENT_FORMAT)

    def rows(self, condition: str, *, footprints: bool = False) -> list[ManifestRow]:
        """Return the rows that satisfy a condition; footprints only where they are needed."""
        columns = [n for n in self.handle.schema.names if footprints or n != FOOTPRINT]
        with self.lineage.check_intact(self.handle):
            return read_rows(self.handle, condition, columns=columns)

    def names(self, kind: str, but: Sequence[int] = ()) -> list[ManifestRow]:
        """Return the rows of all branches or all tags, except those in the fragments `but`.

        The cost does not depend on the length of the history.
        """
        fragments = [
            fragment
            for fragment in self.handle.get_fragments()
            if fragment.fragment_id >= self.head.names and fragment.fragment_id not in but
        ]
        with self.lineage.check_intact(self.handle):
            return read_rows(self.handle, f"object_type = {sql_text(kind)}", fragments)

    def row(self, object_id: str) -> ManifestRow | None:
        """Return one row by its key."""
        rows = self.rows(f"object_id = {sql_text(object_id)}")
        return rows[0] if rows else None

    def oldest_row(self, object_id: str) -> ManifestRow | None:
        """Return one row by its key; cheap for rows as old as the lineage."""
        with self.lineage.check_intact(self.handle):
            return read_oldest_row(self.handle, f"object_id = {sql_text(object_id)}")


class Lineage:
    """The manifest lineage of one branch; `lineage_id` None is main."""

    def __init__(self, datasets: Datasets, lineage_id: str | None) -> None:
        self.lineage_id = lineage_id
        self.datasets = datasets
        self.path = lineage_path(lineage_id)
        self._state: LineageState | None = None
        self._probed = 0.0
        self._written: LruCache[int, pa.Table] = LruCache(MAX_CACHED_FRAGMENTS)
        self._lock = Lock()

    @property
    def cached_state(self) -> LineageState | None:
        """The newest state read or written by this process; no request to storage."""
        with self._lock:
            return self._state

    def state(self) -> LineageState:
        """Return the newest state: one probe, and one row if there is a newer version."""
        cached, now = self.cached_state, _boot_clock()
        if cached is not None:
            with translate_errors("probing the manifest"):
                if cached.handle.latest_version == cached.version:
                    self._probed = now
                    return cached
        state = self._remember(self._read(None))
        self._probed = now
        return state

    def at(self, version: int) -> LineageState:
        """Return the state at an older manifest version."""
        cached = self.cached_state
        if cached is not None and cached.version == version:
            return cached
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
        """Publish a new head and rows based on `base`; raise Contention after a lost race."""
        probed, observe, rows = self._probed, self.datasets.observe, list(rows)
        observe("swap: begun")
        if base.head.row_checksum is not None:
            total = update_row_checksum(base.head.row_checksum, rows, (old.row for old in stale))
            head = replace(head, row_checksum=total)
        first = head_row(head, base.version + 1)
        newest = manifest_table([first, *rows], base.handle.schema)
        history, merged = list[pa.Table](), list[int]()
        if len(base.handle.get_fragments()) > TOO_MANY_FRAGMENTS:
            small = _small_newest_fragments(base.handle)
            if len(small) > TOO_MANY_FRAGMENTS:
                history, names = self._merge(small, gone=stale)
                newest = pa.concat_tables([newest, names]).combine_chunks()
                merged = [fragment.fragment_id for fragment in small]
        left = [old for old in stale if old.address >> 32 not in merged]
        handle = compare_and_swap(base.handle, [*history, newest], observe, left, merged)
        observe("swap: done")
        if _boot_clock() - probed > SLOW_SWAP_SECONDS:
            self._confirm(int(handle.version))
        return self._remember_swap(handle, head, [*history, newest])

    def upgrade(self) -> None:
        """Give the lineage the current format; raise Contention after a lost race."""
        base = self.state()
        if not base.is_current_format:
            handle = add_columns_and_stamp(base.handle, MANIFEST_SCHEMA)
            self._written = LruCache(MAX_CACHED_FRAGMENTS)  # without the new column
            self._remember(replace(base, version=int(handle.version), handle=handle))

    def record_row_checksum(self) -> None:
        """Add the checksum of the rows to a head written by a release that records none."""
        state = self.state()
        if state.head.row_checksum is None and not state.head.closed:
            rows = state.rows("object_type <> 'graph_head'")
            self.swap(state, replace(state.head, row_checksum=checksum_rows(f.row for f in rows)))

    def _confirm(self, version: int) -> None:
        """Raise Contention unless a version is the newest of an intact lineage.

        A process that was suspended during a swap may resume after the competing version, or the
        whole lineage, was removed; its swap then succeeds although it lost.
        """
        state = self._read(None)
        state.rows("object_type = 'schema'")
        if state.version != version:
            raise Contention("publishing took too long: other commits were published meanwhile")

    def compact(self) -> int:
        """Merge small fragments if there are many; return the number of merged fragments."""
        state = self.cached_state
        small = _small_newest_fragments(state.handle) if state is not None else []
        if state is None or len(small) <= MAX_TAIL_FRAGMENTS:
            return 0
        merged = [fragment.fragment_id for fragment in small]
        with self.check_intact(state.handle):
            history, names = self._merge(small)
        elsewhere = [row for kind in NAME_ROW_TYPES for row in state.names(kind, but=merged)]
        observe = self.datasets.observe
        observe("compaction: rows read")
        # Names stay in the newest fragment, so that reading them does not scan a long history.
        head = replace(state.head, names=next_fragment_id(state.handle) + len(history))
        first = head_row(head, state.version + 1)
        others = (NewManifestRow(**row.row) for row in elsewhere)
        moved = manifest_table([first, *others], state.handle.schema)
        newest = pa.concat_tables([moved, names]).combine_chunks()
        handle = compare_and_swap(state.handle, [*history, newest], observe, elsewhere, merged)
        observe("compaction: done")
        self._remember_swap(handle, head, [*history, newest])
        return len(merged)

    def _merge(
        self, small: Sequence[Any], gone: Sequence[ManifestRow] = ()
    ) -> tuple[list[pa.Table], pa.Table]:
        """Return the history rows and the names of fragments, from the cache where possible."""
        with translate_errors("compacting the manifest"):
            tables = [self._rows_of(fragment) for fragment in reversed(small)]
        # Lance is slow to write many chunks.
        table = pa.concat_tables(tables).combine_chunks()
        dropped = [HEAD_KEY, *(row.row["object_id"] for row in gone)]
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

    def _remember_swap(
        self,
        handle: Any,  # noqa: ANN401 - a Lance handle
        head: Head,
        tables: Sequence[pa.Table],
    ) -> LineageState:
        """Cache the tables and the state that a swap wrote, so that nothing is read back."""
        newest = next_fragment_id(handle) - 1
        for number, table in enumerate(reversed(tables)):
            self._written.put(newest - number, table)
        return self._remember(LineageState(int(handle.version), head, handle, self))

    def check_intact(self, handle: Any) -> AbstractContextManager[None]:  # noqa: ANN401 - a Lance handle
        """Run a read; a missing file raises NotFound if the version is gone, else GraphCorrupt."""
        return self.datasets.check_intact(self.path, int(handle.version))

    def _read(self, version: int | None) -> LineageState:
        handle = self.datasets.open(self.path, version)
        check_format_version(handle.schema.metadata)
        return self._state_of(handle)

    def _state_of(self, handle: Any) -> LineageState:  # noqa: ANN401 - a Lance handle
        with self.check_intact(handle):
            row = read_head_row(handle, ["object_id", "table_version", "metadata"])
            if row is None or (row["object_id"], row["table_version"]) != (
                HEAD_KEY,
                handle.version,
            ):
                # Another program wrote this version: use the newest head that omnigraph wrote.
                heads = read_rows(handle, f"object_id = {sql_text(HEAD_KEY)}")
                if not heads:
                    raise GraphCorrupt("the manifest has no head")
                row = max((head.row for head in heads), key=lambda row: row["table_version"])
        return LineageState(int(handle.version), read_head(row), handle, self)

    def _remember(self, state: LineageState) -> LineageState:
        with self._lock:
            if self._state is None or self._state.version <= state.version:
                self._state = state
        return state


def _boot_clock() -> float:
    """Return seconds of a clock that ignores time changes and advances during suspension."""
    boot_clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.time() if boot_clock is None else time.clock_gettime(boot_clock)


def _small_newest_fragments(handle: Any) -> list[Any]:  # noqa: ANN401 - a Lance handle
    """Return the newest fragments, up to one that is large or much larger than the newer ones.

    A merge thus writes few rows however long the history is, and there are few tiers.
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
