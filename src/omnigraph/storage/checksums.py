"""Checksums of files: computed after a file was written, compared before it is trusted.

A checksum is the size of a file and the CRC-32 of its bytes, both in hexadecimal. It finds damage
by disks and copies; it is not a signature. Only files on a file system get one: reading a file back
from a bucket would cost every commit requests, and object stores check their objects themselves.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lance import LanceDataset, LanceFragment
from lance.fragment import FragmentMetadata

from omnigraph.errors import GraphCorrupt
from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.layout import version_file

_BLOCK = 1 << 20
_DATA, _INDEXES = "data/", "_indices/"
_THREADS = 4
_MAX_CHECKED = 65_536
_CHECKSUM_NAME = re.compile(r"\.([0-9a-f]+-[0-9a-f]{8})\.lance$")

_checked: set[str] = set()
"""Files of lineages this process has compared already: they never change."""


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
    with translate_errors("reading back what was written"):
        if len(listed) < _THREADS:
            return {name: file_checksum(root / name) for name in listed}
        with ThreadPoolExecutor(_THREADS) as threads:
            checksums = threads.map(lambda name: file_checksum(root / name), listed)
            return dict(zip(listed, checksums, strict=True))


def version_file_names(handle: LanceDataset) -> frozenset[str]:
    """Return what a version on a file system refers to: files, and the folders of indexes."""
    with translate_errors("listing the files of a version"):
        found = {version_file(int(handle.version))}
        found |= {f"{_INDEXES}{uuid}" for uuid in _index_segment_ids(handle)}
        for fragment in handle.get_fragments():
            data: list[Any] = fragment.data_files()
            found |= {f"{_DATA}{file.path}" for file in data}
            deletions = fragment.deletion_file()
            if deletions is not None:
                found.add(deletions)
    return frozenset(found)


def expand_file_names(root: Path, names: Iterable[str]) -> frozenset[str]:
    """Return all files that names stand for: blobs beside data files and files of indexes too."""
    found: set[str] = set()
    for name in names:
        is_index, is_data = name.startswith(_INDEXES), name.startswith(_DATA)
        if not is_index:
            found.add(name)
        if is_index or is_data:
            # Blobs too large for a data file are in a folder of the same name.
            folder = root / name.removesuffix(".lance")
            found |= {str(f.relative_to(root)) for f in folder.rglob("*") if f.is_file()}
    return frozenset(found)


def version_files(handle: LanceDataset) -> frozenset[str]:
    """Return all files of a version on a file system, below its dataset."""
    with translate_errors("listing the files of a version"):
        return expand_file_names(Path(str(handle.uri)), version_file_names(handle))


def _index_segment_ids(handle: LanceDataset) -> list[str]:
    indexes: Any = handle.describe_indices()
    return [str(segment.uuid) for index in indexes for segment in index.segments]


# --- files named by their checksum ---------------------------------------------------------------


def rename_with_checksums(
    uri: str, fragments: Sequence[FragmentMetadata]
) -> list[FragmentMetadata]:
    """Add checksums to the names of data files no version refers to yet; not in a bucket."""
    if "://" in uri:
        return list(fragments)
    root = Path(uri) / "data"
    named = []
    with translate_errors("naming rows"):
        for fragment in fragments:
            document: dict[str, Any] = fragment.to_json()
            for file in document["files"]:
                old = root / file["path"]
                new = old.with_name(f"{old.stem}.{file_checksum(old)}.lance")
                old.rename(new)
                file["path"] = new.name
                _mark_checked(str(new))
            named.append(FragmentMetadata.from_json(json.dumps(document)))
    return named


def check_file_checksums(uri: str, fragments: Iterable[LanceFragment]) -> None:
    """Compare data files that carry a checksum in their name; raise GraphCorrupt on damage."""
    if "://" in uri:
        return
    for fragment in fragments:
        data: list[Any] = fragment.data_files()
        for name in (file.path for file in data):
            stated = _CHECKSUM_NAME.search(name)
            file = Path(uri) / "data" / name
            if stated is None or str(file) in _checked:
                continue
            with translate_errors("reading the manifest"):
                if file_checksum(file) != stated.group(1):
                    where = f"{file.parent.parent.name}/data/{name}"
                    message = f"{where} is damaged: it does not match its checksum"
                    raise GraphCorrupt(f"{message}; restore it from a copy", file=where)
            _mark_checked(str(file))


def clear_checked_files() -> None:
    """Forget which files were compared: they are compared again when they are read next."""
    _checked.clear()


def _mark_checked(file: str) -> None:
    if len(_checked) >= _MAX_CHECKED:
        _checked.clear()
    _checked.add(file)
