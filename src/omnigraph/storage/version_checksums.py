"""Checksums of all files of a version, in a file beside it, so that readers can compare them.

The history has the same checksums, one row per commit; collecting those of a version would read all
of it. The file is derived: without it, or if it is damaged itself, files are read unchecked.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from omnigraph.storage.checksums import file_checksum
from omnigraph.storage.layout import INDEX_FOLDER, checksum_file

CHECKED_BYTES = 8 * 1024 * 1024
"""Larger files are compared by size only; `verify --deep` compares their content."""
MAX_CHECKED_BYTES = 64 * 1024 * 1024
"""Bytes that opening a version compares; the files beyond are compared by size only."""
MAX_LISTED_FILES = 512
"""Number of files above which a version has no list: each commit would write all of it again."""

_DATA = "data/"


def write_version_checksums(root: Path, version: int, checksums: Mapping[str, str]) -> None:
    """Write the checksums of the files of a version, unless they are many; best effort."""
    if len(checksums) > MAX_LISTED_FILES:
        return
    text = json.dumps(dict(sorted(checksums.items())), separators=(",", ":"))
    document = f"{version} {zlib.crc32(text.encode()):08x} {text}"
    file = root / checksum_file(version)
    with suppress(OSError):
        try:
            file.write_text(document)
        except FileNotFoundError:
            file.parent.mkdir(exist_ok=True)
            file.write_text(document)


def read_version_checksums(root: Path, version: int) -> dict[str, str]:
    """Return the checksums of the files of a version by name; empty if they are unknown."""
    try:
        stated, crc, text = (root / checksum_file(version)).read_text().split(" ", 2)
        if (int(stated), int(crc, 16)) != (version, zlib.crc32(text.encode())):
            return {}
        checksums: dict[str, str] = json.loads(text)
    except (OSError, ValueError):
        return {}
    return checksums


def inherited_checksums(checksums: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """Return the checksums of files that a version still refers to, by its files and folders."""
    return {name: value for name, value in checksums.items() if _referred_to(name) in names}


def _referred_to(name: str) -> str:
    """Return the name by which a version refers to a file: that of its index or data file."""
    parts = name.split("/")
    if name.startswith(INDEX_FOLDER):
        return "/".join(parts[:2])
    if name.startswith(_DATA) and len(parts) > 2:
        return f"{_DATA}{parts[1]}.lance"
    return name


def find_damaged(
    root: Path, checksums: Mapping[str, str], known: Collection[str]
) -> Iterator[tuple[str, bool]]:
    """Yield the files that do not match, except known ones, and whether each exists."""
    left = MAX_CHECKED_BYTES
    for name, stated in checksums.items():
        if name in known:
            continue
        file = root / name
        try:
            size = file.stat().st_size
            is_checked = size <= min(CHECKED_BYTES, left)
            left -= size if is_checked else 0
            if size != int(stated.partition("-")[0], 16) or (
                is_checked and file_checksum(file) != stated
            ):
                yield name, True
        except FileNotFoundError:
            yield name, False
        except OSError:
            continue  # the read itself reports it
