"""Checksums of files: computed after a file was written, compared before it is used.

A checksum is the size of a file and the CRC-32 of its bytes, both in hexadecimal. It detects
damage by disks and copies; it is not a signature. Only files on a file system get one: reading a
file back from a bucket would add requests to every commit, and object stores check their objects.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from lance import LanceDataset, LanceFragment
from lance.fragment import DataFile, FragmentMetadata

from omnigraph.errors import NEXT_STEP, GraphCorrupt
from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.layout import data_file_names, index_segment_ids, referenced_files

_BLOCK = 1 << 20
_DATA, _INDEXES = "data/", "_indices/"
_THREADS = 4
_MAX_CHECKED = 65_536
_CHECKSUM_NAME = re.compile(r"\.([0-9a-f]+-[0-9a-f]{8})\.lance$")

_checked: set[str] = set()
"""Files of lineages that this process has already compared: they never change."""


def file_checksum(file: Path) -> str:
    """Return the checksum of a file."""
    size, crc = 0, 0
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            size, crc = size + len(block), zlib.crc32(block, crc)
    return f"{size:x}-{crc:08x}"


def file_checksums(root: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the checksums of files below a folder, by name."""
    listed = sorted(names)
    with translate_errors("computing checksums"):
        if len(listed) < _THREADS:
            return {name: file_checksum(root / name) for name in listed}
        with ThreadPoolExecutor(_THREADS) as threads:
            checksums = threads.map(lambda name: file_checksum(root / name), listed)
            return dict(zip(listed, checksums, strict=True))


def version_file_names(handle: LanceDataset) -> frozenset[str]:
    """Return the files and index folders that a version on a file system refers to."""
    with translate_errors("listing the files of a version"):
        folders = {f"{_INDEXES}{uuid}" for uuid in index_segment_ids(handle)}
    return frozenset(referenced_files(handle) | folders)


def expand_file_names(root: Path, names: Iterable[str]) -> frozenset[str]:
    """Expand names to files: adds large blobs of data files and the files of index folders."""
    files: set[str] = set()
    for name in names:
        is_index, is_data = name.startswith(_INDEXES), name.startswith(_DATA)
        if not is_index:
            files.add(name)
        if is_index or is_data:
            # Blobs too large for a data file are in a folder with its name.
            folder = root / name.removesuffix(".lance")
            files |= {str(f.relative_to(root)) for f in folder.rglob("*") if f.is_file()}
    return frozenset(files)


def version_files(handle: LanceDataset) -> frozenset[str]:
    """Return all files of a version on a file system, below its dataset."""
    with translate_errors("listing the files of a version"):
        return expand_file_names(Path(str(handle.uri)), version_file_names(handle))


# --- files named by their checksum ---------------------------------------------------------------


def rename_with_checksums(
    uri: str, fragments: Sequence[FragmentMetadata]
) -> list[FragmentMetadata]:
    """Add checksums to the names of new data files, unless they are in a bucket."""
    if "://" in uri:
        return list(fragments)
    root = Path(uri) / "data"
    named = []
    with translate_errors("renaming data files"):
        for fragment in fragments:
            files = [_rename_with_checksum(root, file) for file in fragment.files]
            named.append(replace(fragment, files=files))
    return named


def _rename_with_checksum(root: Path, file: DataFile) -> DataFile:
    [name] = data_file_names([file])
    new = f"{name.removesuffix('.lance')}.{file_checksum(root / name)}.lance"
    (root / name).rename(root / new)
    _mark_checked(str(root / new))
    return DataFile(
        new,
        file.fields,
        file.column_indices,
        file.file_major_version,
        file.file_minor_version,
        file.file_size_bytes,
        file.base_id,
    )


def stated_checksum(name: str) -> str | None:
    """Return the checksum in the name of a data file, or None."""
    stated = _CHECKSUM_NAME.search(name)
    return None if stated is None else stated.group(1)


def check_file_checksums(uri: str, fragments: Iterable[LanceFragment]) -> None:
    """Compare data files with the checksums in their names; raise GraphCorrupt on a mismatch."""
    if "://" in uri:
        return
    for fragment in fragments:
        for name in data_file_names(fragment.data_files()):
            stated = stated_checksum(name)
            file = Path(uri) / "data" / name
            if stated is None or str(file) in _checked:
                continue
            with translate_errors("reading the manifest"):
                if file_checksum(file) != stated:
                    where = f"{file.parent.parent.name}/data/{name}"
                    message = f"{where} is damaged: it does not match its checksum"
                    raise GraphCorrupt(f"{message}; {NEXT_STEP}", file=where)
            _mark_checked(str(file))


def clear_checked_files() -> None:
    """Forget which files were compared; they are compared again at the next read."""
    _checked.clear()


def _mark_checked(file: str) -> None:
    if len(_checked) >= _MAX_CHECKED:
        _checked.clear()
    _checked.add(file)
