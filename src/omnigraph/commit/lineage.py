"""Read and swap the manifest lineage of one branch.

A lineage is a dataset: `__manifest` for main, a separate one for every other branch. Its newest
version holds the head row with the complete state of the branch; reading a branch is one probe for
a newer version and, if there is one, one row.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.commit.commit_queue import lock_folder
from omnigraph.commit.head_sync import sync_relaxed_state
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
from omnigraph.commit.model import MAIN, Head
from omnigraph.commit.shared_rows import SLOTS, SharedRows, read_shared_rows, write_shared_rows
from omnigraph.errors import (
    NEXT_STEP,
    Contention,
    FormatUnsupported,
    GraphCorrupt,
    NotFound,
    VersionReclaimed,
)
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
from omnigraph.storage.layout import data_file_names, lineage_path, version_file
from omnigraph.storage.lru_cache import LruCache
from omnigraph.storage.row_lookup import sql_text
from omnigraph.storage.small_fragments import put_key_columns
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


def check_columns(schema: pa.Schema) -> None:
    """Raise GraphCorrupt unless the columns are those of a lineage; format 1 has no footprint."""
    columns = {field.name: field.type for field in schema}
    columns.setdefault(FOOTPRINT, _COLUMNS[FOOTPRINT])
    if columns != _COLUMNS:
        raise GraphCorrupt(f"the manifest has other columns: {', '.join(schema.names)}")


_COLUMNS = {field.name: field.type for field in MANIFEST_SCHEMA}

MAX_TAIL_FRAGMENTS = 16
"""Small fragments of a lineage above which a publisher merges them."""
TOO_MANY_FRAGMENTS = 2 * MAX_TAIL_FRAGMENTS
"""Small fragments above which a publish merges them in its own swap."""
TIER_GROWTH = 8
"""A fragment this many times larger than all newer ones together is not merged with them yet."""
BASE_FRAGMENT_ROWS = 65_536
"""Publishers do not merge fragments of this size or larger."""
MAX_CACHED_FRAGMENTS = 64
"""Number of fragments whose rows, written or read by this process, it caches completely."""
MIN_VERSION_AGE_IN_BUCKET = timedelta(hours=1)
"""Versions in a bucket are not removed before this age."""
PAGE_ROWS = 512
"""Number of history rows that are read together."""
MAX_CACHED_PAGE_BYTES = 4 << 20
"""Size of the history pages of one lineage that a process caches."""
PROBE_WINDOW = MIN_VERSION_AGE_IN_BUCKET / 2
"""Time after a probe in which a version cannot have been removed from a bucket."""
SHARING_SECONDS = 60.0
"""Time after a change of another process in which this one leaves rows for it."""
CONTENDED_SECONDS = 0.05
"""How long another process is expected to publish again soon."""
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

    def rows(
        self, condition: str, *, footprints: bool = False, columns: list[str] | None = None
    ) -> list[ManifestRow]:
        """Return the rows that satisfy a condition; footprints only where they are needed."""
        columns = columns or self._columns(footprints=footprints)
        with self.lineage.check_intact(self.handle):
            return read_rows(self.handle, condition, columns=columns)

    def pages(self, first: int = 1) -> list[HistoryRange]:
        """Return the pages of the history, the newest first; nothing is read.

        The first ones are small, because most readers need only the newest commits; the very first
        one has up to `first` fragments.
        """
        pages, page, rows = list[HistoryRange](), list[FragmentRange](), 0
        most = min(first, TOO_MANY_FRAGMENTS)
        for fragment in reversed(self.handle.get_fragments()):
            whole = FragmentRange.of(fragment)
            if page and (rows + whole.count > PAGE_ROWS or len(page) == most):
                pages.append(page)
                page, rows, most = [], 0, min(2 * most, TOO_MANY_FRAGMENTS)
            if whole.count <= PAGE_ROWS:
                page = [whole, *page]
                rows += whole.count
            else:
                pages += [[part] for part in whole.split()]
        return [*pages, page] if page else pages

    def read_page(self, page: HistoryRange, *, footprints: bool = False) -> pa.Table:
        """Return the rows of a page, the oldest first; footprints only where they are needed."""
        return self.lineage.read_page(self.handle, page, footprints=footprints)

    def rows_after(self, version: int, *, footprints: bool = False) -> list[dict[str, Any]]:
        """Return the rows written after a version of this lineage, and some older ones.

        The cost does not depend on the length of the history.
        """
        tables: list[pa.Table] = []
        for page in self.pages(first=max(self.version - version, 1)):
            tables.insert(0, self.lineage.read_page(self.handle, page, footprints=footprints))
            # The rows of one version are in one fragment: at its start, those of the next version
            # are complete, and within it as soon as there is an older one.
            last = version if page[0].start else version + 1
            if any(written <= last for written in self._written_at(tables[0])):
                break
        return [row for table in tables for row in table.to_pylist()]

    def _written_at(self, table: pa.Table) -> Iterator[int]:
        """Yield the versions that wrote the heads and commits of a page."""
        for row in table.select(_VERSION_COLUMNS).to_pylist():
            kind, lineage_id = row["object_type"], row["table_branch"]
            own_commit = kind == "graph_commit" and lineage_id == self.lineage.lineage_id
            if own_commit or kind in ("graph_head", "proposal_event"):
                yield row["table_version"]

    def names(self, kind: str, but: Sequence[int] = ()) -> list[ManifestRow]:
        """Return the rows of all branches or all tags, except those in the fragments `but`.

        The cost does not depend on the length of the history.
        """
        rows: list[ManifestRow] = []
        fragments = [
            fragment
            for fragment in self.handle.get_fragments()
            if fragment.fragment_id >= self.head.names and fragment.fragment_id not in but
        ]
        changed = [f for f in fragments if f.num_deletions or f.physical_rows > PAGE_ROWS]
        with self.lineage.check_intact(self.handle):
            rows += read_rows(self.handle, f"object_type = {sql_text(kind)}", changed)
        unchanged = [FragmentRange.of(f) for f in fragments if f not in changed]
        for part, table in self.lineage.read_ranges(self.handle, unchanged):
            first = part.fragment.fragment_id << 32
            for number, name in enumerate(table["object_type"].to_pylist()):
                if name == kind:
                    rows.append(ManifestRow(first + number, table.slice(number, 1).to_pylist()[0]))
        return rows

    def row(self, object_id: str) -> dict[str, Any] | None:
        """Return one row by its key, without its footprint; cheap for rows that are new."""
        condition = f"object_id = {sql_text(object_id)}"
        for page in self.pages():
            fragment = page[0].fragment
            if len(page) == 1 and fragment.physical_rows > PAGE_ROWS:
                older = [
                    f for f in self.handle.get_fragments() if f.fragment_id <= fragment.fragment_id
                ]
                with self.lineage.check_intact(self.handle):
                    rows = [
                        row.row for row in read_rows(self.handle, condition, older, self._columns())
                    ]
                return rows[0] if rows else None
            table = self.read_page(page)
            rows = table.filter(pc.equal(table["object_id"], object_id)).to_pylist()
            if rows:
                return dict(rows[0])
        return None

    def _columns(self, *, footprints: bool = False) -> list[str]:
        return [n for n in self.handle.schema.names if footprints or n != FOOTPRINT]

    def first_commit(self) -> str:
        """Return the ID of the commit that created the graph, on main's lineage."""
        with self.lineage.check_intact(self.handle):
            row = read_oldest_row(self.handle, "object_type = 'graph_commit'")
        if row is None:
            raise GraphCorrupt("the manifest has no commits")
        return str(row.row["object_id"]).removeprefix("commit:")

    def oldest_row(self, object_id: str) -> ManifestRow | None:
        """Return one row by its key; cheap for rows as old as the lineage."""
        with self.lineage.check_intact(self.handle):
            return read_oldest_row(self.handle, f"object_id = {sql_text(object_id)}")


_HEAD_COLUMNS = ["object_id", "table_version", "metadata"]
_VERSION_COLUMNS = ["object_type", "table_version", "table_branch"]


@dataclass(frozen=True, slots=True)
class FragmentRange:
    """Consecutive rows of a fragment of a lineage."""

    fragment: Any
    start: int
    count: int

    @classmethod
    def of(cls, fragment: Any) -> FragmentRange:  # noqa: ANN401 - a Lance fragment
        """Return all rows of a fragment."""
        return cls(fragment, 0, fragment.physical_rows - fragment.num_deletions)

    def split(self) -> Iterator[FragmentRange]:
        """Yield ranges of growing size, up to `PAGE_ROWS` rows, the newest first."""
        end, size = self.start + self.count, PAGE_ROWS // 4
        while end > self.start:
            start = max(end - size, self.start)
            yield FragmentRange(self.fragment, start, end - start)
            end, size = start, min(2 * size, PAGE_ROWS)

    @property
    def is_end(self) -> bool:
        """Whether no rows of the fragment follow."""
        return self.start + self.count == FragmentRange.of(self.fragment).count

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows that the fragment was written with."""
        return bool(self.count == self.fragment.physical_rows)

    @property
    def key(self) -> tuple[int, int, int]:
        """What identifies the rows: an ID is never reused, but rows may be deleted."""
        return (self.fragment.fragment_id, self.fragment.num_deletions, self.start)


HistoryRange: TypeAlias = list[FragmentRange]
"""A page of history rows, the oldest first."""


class Lineage:
    """The manifest lineage of one branch; `lineage_id` None is main."""

    def __init__(self, datasets: Datasets, lineage_id: str | None) -> None:
        self.lineage_id = lineage_id
        self.datasets = datasets
        self.path = lineage_path(lineage_id)
        self._state: LineageState | None = None
        self._probed = 0.0
        self._shared_until = 0.0
        self._written: LruCache[int, pa.Table] = LruCache(MAX_CACHED_FRAGMENTS)
        self._pages = _page_cache()
        self._lock = Lock()

    def forget(self) -> None:
        """Drop everything cached: a version was set aside, and its number is used again."""
        with self._lock:
            self._state = None
            self._written = LruCache(MAX_CACHED_FRAGMENTS)
            self._pages = _page_cache()

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
                if self._is_newest(cached.version, now):
                    self._probed = now
                    return cached
        if cached is None:
            self.datasets.report_lost_version(self.path)
        else:
            self.expect_other_writers()
        state = self._remember(self._read(None, cached))
        self._probed = now
        return state

    def _is_newest(self, version: int, now: float) -> bool:
        """Return whether there is no newer version than one that was the newest.

        Versions are removed from the oldest on: while this one exists, no newer one was removed. In
        a bucket none is removed soon after it was written, which saves a request.
        """
        if self.datasets.has(self.path, version + 1):
            return False
        recent = now - self._probed < PROBE_WINDOW.total_seconds()
        local = self.datasets.location.is_local
        return (recent and not local) or self.datasets.has(self.path, version)

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

    def open_version(self, version: int) -> LineageState:
        """Return the state at a version without the cache; raise GraphCorrupt if it is another."""
        state = self._read(version)
        if state.version != version:
            raise GraphCorrupt(f"the file of version {version} holds version {state.version}")
        return state

    # --- rows shared with other processes ------------------------------------------------------

    @property
    def shares_rows(self) -> bool:
        """Whether other processes of the machine have published on this lineage lately."""
        return _boot_clock() < self._shared_until and self.datasets.location.is_local

    @property
    def is_contended(self) -> bool:
        """Whether another process has published on this lineage a moment ago."""
        return _boot_clock() < self._shared_until - SHARING_SECONDS + CONTENDED_SECONDS

    def expect_other_writers(self) -> None:
        """Share rows for some time: another process writes to the lineage."""
        self._shared_until = _boot_clock() + SHARING_SECONDS

    def share_rows(self, base: LineageState, keys: Mapping[tuple[str, str], pa.Table]) -> None:
        """Leave what was written after a state, and keys of new rows, for other processes."""
        state = self.cached_state
        if state is None:
            return
        new: dict[str, pa.Table] = {}
        for fragment in reversed(state.handle.get_fragments()):
            table = self._written.get(fragment.fragment_id)
            if fragment.fragment_id < next_fragment_id(base.handle) or table is None:
                break
            new[data_file_names(fragment.data_files())[0]] = table
        write_shared_rows(*self._shared_names, state.version, SharedRows(new, keys))

    def _take_shared_rows(self, known: LineageState, handle: Any) -> None:  # noqa: ANN401 - Lance
        """Cache the rows that other processes left since a state, so that they are not read."""
        if not self.datasets.location.is_local:
            return
        first = max(known.version, int(handle.version) - SLOTS)
        lineage: dict[str, pa.Table] = {}
        for version in range(first + 1, int(handle.version) + 1):
            shared = read_shared_rows(*self._shared_names, version)
            if shared is not None:
                lineage.update(shared.lineage)
                for (path, file), keys in shared.keys.items():
                    put_key_columns(self.datasets.location.child(path), file, keys)
        for fragment in reversed(handle.get_fragments()):
            table = lineage.get(data_file_names(fragment.data_files())[0])
            if table is None:
                break
            self._written.put(fragment.fragment_id, table)

    @property
    def _shared_names(self) -> tuple[Path, str]:
        return lock_folder(self.datasets.location), self.lineage_id or MAIN

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
        if base.head.relaxed:
            sync_relaxed_state(self.datasets, self.path, base.head)
        head = replace(head, relaxed=self.datasets.is_relaxed)
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
        handle = self._compare_and_swap(base, [*history, newest], left, merged)
        observe("swap: done")
        if _boot_clock() - probed > SLOW_SWAP_SECONDS:
            self._confirm(int(handle.version))
        return self._remember_swap(handle, head, [*history, newest])

    def _compare_and_swap(
        self,
        base: LineageState,
        tables: Sequence[pa.Table],
        stale: Sequence[ManifestRow],
        merged: Sequence[int],
    ) -> Any:  # noqa: ANN401 - a Lance handle
        """Publish a version; its files and its base are on disk before it, itself on return."""

        def sync(names: list[str]) -> None:
            self.datasets.sync_files(self.path, [*names, version_file(base.version)])

        observe = self.datasets.observe
        handle = compare_and_swap(base.handle, tables, observe, stale, merged, sync)
        self.sync(int(handle.version))
        return handle

    def sync(self, version: int) -> None:
        """Sync a version, unless this process has done so.

        A version that was removed has a successor, which was synced before.
        """
        with suppress(NotFound):
            self.datasets.sync_version(self.path, version)

    def upgrade(self) -> None:
        """Give the lineage the current format; raise Contention after a lost race."""
        base = self.state()
        if not base.is_current_format:
            self.sync(base.version)
            handle = add_columns_and_stamp(base.handle, MANIFEST_SCHEMA)
            self.sync(int(handle.version))
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
        handle = self._compare_and_swap(state, [*history, newest], elsewhere, merged)
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

    def read_page(
        self,
        handle: Any,  # noqa: ANN401 - a Lance handle
        page: HistoryRange,
        *,
        footprints: bool = False,
    ) -> pa.Table:
        """Return the rows of a page; they are cached."""
        ranges = self.read_ranges(handle, page, footprints=footprints)
        return pa.concat_tables(table for _, table in ranges)

    def read_ranges(
        self,
        handle: Any,  # noqa: ANN401 - a Lance handle
        parts: Sequence[FragmentRange],
        *,
        footprints: bool = False,
    ) -> list[tuple[FragmentRange, pa.Table]]:
        """Return the rows of complete fragments, or of one range, read by one scan."""
        columns = [name for name in handle.schema.names if footprints or name != FOOTPRINT]
        tables = {part.key: self._cached_rows(part, columns) for part in parts}
        missing = [part for part in parts if tables[part.key] is None]
        if missing:
            fragments = [part.fragment for part in missing]
            limits = {"offset": missing[0].start or None, "limit": missing[0].count}
            with self.check_intact(handle), translate_errors("reading the manifest"):
                check_file_checksums(handle.uri, fragments)
                scanner = handle.scanner(
                    columns=columns, fragments=fragments, **(limits if len(missing) == 1 else {})
                )
                rows = scanner.to_table().combine_chunks()
            for part in missing:
                table, rows = rows.slice(0, part.count), rows.slice(part.count)
                tables[part.key] = table
                if footprints and part.is_whole:
                    self._written.put(part.fragment.fragment_id, table)
                else:
                    self._pages.put(part.key, table)
        return [(part, tables[part.key]) for part in parts]

    def _cached_rows(self, part: FragmentRange, columns: list[str]) -> pa.Table | None:
        written = self._written.get(part.fragment.fragment_id)
        if written is not None and not part.fragment.num_deletions:
            return written.select(columns).slice(part.start, part.count)
        page = self._pages.get(part.key)
        if page is None or not set(columns) <= set(page.column_names):
            return None
        return page.select(columns)

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

    def _read(self, version: int | None, known: LineageState | None = None) -> LineageState:
        try:
            handle = self.datasets.open(self.path, version)
            with translate_errors("reading the manifest"):
                schema = handle.schema  # Lance decodes it only now
            check_format_version(schema.metadata)
            check_columns(schema)
            if known is not None:
                self._take_shared_rows(known, handle)
            return self._state_of(handle)
        except GraphCorrupt as error:
            if NEXT_STEP in error.message:
                raise
            raise GraphCorrupt(f"{error.message}; {NEXT_STEP}", **error.details) from error

    def _state_of(self, handle: Any) -> LineageState:  # noqa: ANN401 - a Lance handle
        with self.check_intact(handle):
            row = self._head_row(handle)
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

    def _head_row(self, handle: Any) -> dict[str, Any] | None:  # noqa: ANN401 - a Lance handle
        newest = handle.get_fragments()[-1]
        written = self._written.get(newest.fragment_id)
        if written is None or newest.num_deletions:
            return read_head_row(handle, _HEAD_COLUMNS)
        return dict(written.slice(0, 1).select(_HEAD_COLUMNS).to_pylist()[0])

    def _remember(self, state: LineageState) -> LineageState:
        with self._lock:
            if self._state is None or self._state.version <= state.version:
                self._state = state
        return state


def _page_cache() -> LruCache[tuple[int, int, int], pa.Table]:
    return LruCache(MAX_CACHED_PAGE_BYTES, size=lambda table: int(table.nbytes))


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
