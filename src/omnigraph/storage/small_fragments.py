"""Look up keys in small fragments by cached columns instead of a scan.

Writers of few rows leave many small fragments that no index covers, and each change looks up the
IDs it relies on. A scan opens every one of these fragments. Files never change, so a column of a
fragment is read once per process; a writer caches what it has written and reads nothing back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset, LanceFragment
from lance.fragment import FragmentMetadata

from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.layout import data_file_names
from omnigraph.storage.lru_cache import LruCache

MAX_ROWS = 4_096
"""Rows of a small fragment."""
MAX_FRAGMENTS = 256
"""Number of small fragments above which a dataset is scanned."""
MAX_CACHED_BYTES = 32 << 20
KEY_COLUMNS = ("id", "src", "dst")
"""Columns that writers look up, cached when they are written."""
_ROW_ADDRESS = "_rowaddr"

_Key: TypeAlias = tuple[str, tuple[str, ...], str | None, int, str]
"""Dataset, data files, deletion file, rows and column: what identifies values that are cached."""


class _Column(NamedTuple):
    """The values of a column of a fragment, and the offsets of their rows in it."""

    values: pa.Array
    offsets: npt.NDArray[np.uint64]


_columns: LruCache[_Key, _Column] = LruCache(
    MAX_CACHED_BYTES, size=lambda column: int(column.values.nbytes + column.offsets.nbytes) + 512
)


def split_small_fragments(
    handle: LanceDataset,
) -> tuple[list[LanceFragment], list[LanceFragment]]:
    """Return the small fragments of a version and the others; no small ones if they are many."""
    fragments = handle.get_fragments()
    small = [fragment for fragment in fragments if fragment.physical_rows <= MAX_ROWS]
    if len(small) > MAX_FRAGMENTS:
        return [], fragments
    return small, [f for f in fragments if f.physical_rows > MAX_ROWS]


def find_keys(
    handle: LanceDataset, fragments: Sequence[LanceFragment], column: str, keys: pa.Array
) -> pa.Table:
    """Return the values and row addresses of those rows of small fragments that have a key."""
    columns = _read_columns(handle, fragments, column)
    values = pa.chunked_array([part.values for part in columns], keys.type)
    places = np.flatnonzero(np.asarray(pc.is_in(values, value_set=keys)))
    addresses = np.empty(0, np.uint64)
    if len(places):
        numbers = np.array([fragment.fragment_id << 32 for fragment in fragments], np.uint64)
        firsts = np.repeat(numbers, [len(part.values) for part in columns])
        offsets = np.concatenate([part.offsets for part in columns])
        addresses = firsts[places] + offsets[places]
    schema = pa.schema([handle.schema.field(column), (_ROW_ADDRESS, pa.uint64())])
    return pa.table([values.take(pa.array(places)), addresses], schema=schema)


def cache_key_columns(
    handle: LanceDataset, rows: pa.Table, new: Sequence[FragmentMetadata]
) -> None:
    """Cache the key columns of rows that were written as one small fragment."""
    if len(new) == 1 and rows.num_rows <= MAX_ROWS:
        keys = rows.select([name for name in KEY_COLUMNS if name in rows.column_names])
        [file, *others] = data_file_names(new[0].files)
        if not others:
            put_key_columns(str(handle.uri), file, keys)


def put_key_columns(uri: str, file: str, keys: pa.Table) -> None:
    """Cache key columns of a small fragment that consists of one file, as it was written."""
    offsets = np.arange(keys.num_rows, dtype=np.uint64)
    for column in keys.column_names:
        cached = _Column(keys[column].combine_chunks(), offsets)
        _columns.put((uri, (file,), None, keys.num_rows, column), cached)


def cached_key_columns(handle: LanceDataset, fragment: LanceFragment) -> pa.Table | None:
    """Return the key columns of a small fragment if they are cached."""
    names = [name for name in KEY_COLUMNS if name in handle.schema.names]
    cached = {name: _columns.get(_key(handle, fragment, name)) for name in names}
    found = {name: column.values for name, column in cached.items() if column is not None}
    return pa.table(found) if len(found) == len(names) else None


def clear_cached_columns() -> None:
    """Forget all columns; they are read again at the next lookup."""
    _columns.clear()


def _read_columns(
    handle: LanceDataset, fragments: Sequence[LanceFragment], column: str
) -> list[_Column]:
    """Return a column of each fragment; what is not cached is read by one scan."""
    keys = [_key(handle, fragment, column) for fragment in fragments]
    cached = [_columns.get(key) for key in keys]
    missing = [f for f, part in zip(fragments, cached, strict=True) if part is None]
    read = _scan(handle, missing, column) if missing else {}
    return [
        part if part is not None else _columns.put(key, read[fragment.fragment_id])
        for fragment, key, part in zip(fragments, keys, cached, strict=True)
    ]


def _scan(
    handle: LanceDataset, fragments: Sequence[LanceFragment], column: str
) -> dict[int, _Column]:
    """Read a column of some fragments; return it by their numbers."""
    with translate_errors("reading rows"):
        rows = handle.scanner(
            columns=[column], with_row_address=True, fragments=list(fragments)
        ).to_table()
    values, addresses = rows[column].combine_chunks(), np.asarray(rows[_ROW_ADDRESS])
    numbers, offsets = addresses >> np.uint64(32), addresses & np.uint64(0xFFFF_FFFF)
    parts = {}
    for fragment in fragments:
        places = np.flatnonzero(numbers == fragment.fragment_id)
        parts[fragment.fragment_id] = _Column(values.take(pa.array(places)), offsets[places])
    return parts


def _key(handle: LanceDataset, fragment: LanceFragment, column: str) -> _Key:
    """Return the key of a column: a state within a group has fewer rows of the same file."""
    files: list[Any] = fragment.data_files()
    rows = int(fragment.physical_rows)
    return (str(handle.uri), data_file_names(files), fragment.deletion_file(), rows, column)
