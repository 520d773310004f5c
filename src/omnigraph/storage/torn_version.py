"""Find version files that a power failure left incomplete, and set them aside.

Lance writes a version file completely and then links it to its name, so no process that is alive
ever sees a part of one. Only its writer can sync it, after that: until then a power failure may
leave the name with a file that is empty, cut, or zero in places. Such a version was not
acknowledged, because its writer had not returned.
"""

from __future__ import annotations

import fcntl
import json
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ulid import ULID

from omnigraph.storage.file_sync import FileSync
from omnigraph.storage.layout import TORN, parse_version_file, version_file

_FOOTER = struct.Struct("<QHH4s")
_MAGIC = b"LANC"
_LENGTH = struct.Struct("<I")
_BLOCK = 4096
_HINT = "_versions/latest_version_hint.json"


@dataclass(frozen=True, slots=True)
class TornVersion:
    """A version of a dataset that its writer could not complete; `moved_to` None if it is gone."""

    path: str
    version: int
    moved_to: str | None = None


def is_whole(file: Path) -> bool:
    """Return whether a version file has all its bytes; a missing file is not whole."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return False
    if len(data) < _FOOTER.size + _LENGTH.size:
        return False
    start, _, _, magic = _FOOTER.unpack(data[-_FOOTER.size :])
    end = len(data) - _FOOTER.size
    if magic != _MAGIC or start + _LENGTH.size > end:
        return False
    if start + _LENGTH.size + _LENGTH.unpack_from(data, start)[0] != end:
        return False
    # Protobuf has no such runs of zeros: a block that the disk did not write.
    zeros = bytes(_BLOCK)
    return all(data[at : at + _BLOCK] != zeros for at in range(0, len(data), _BLOCK))


def find_torn_version(root: Path, path: str) -> tuple[TornVersion, int | None] | None:
    """Return the newest version of a dataset if it is torn, and the one before it.

    None if the newest version is whole, or if there is none. A torn version without one before it
    is returned only if it is the first: any other is damage.
    """
    versions = _stored_versions(root / path)
    if not versions or is_whole(root / path / version_file(versions[-1])):
        return None
    torn = TornVersion(path, versions[-1])
    before = versions[-2] if len(versions) > 1 else None
    if before is None:
        return (torn, None) if torn.version == 1 else None
    return (torn, before) if is_whole(root / path / version_file(before)) else None


def set_aside_torn_version(root: Path, path: str, files: FileSync) -> TornVersion | None:
    """Move the newest version file of a dataset away if it is torn; return where it is.

    Processes do this one after the other, and each checks again: a version that another writer has
    published meanwhile under the same number is whole, and stays.
    """
    if find_torn_version(root, path) is None:
        return None
    folder = root / TORN
    files.make_folder(folder)
    with (folder / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = find_torn_version(root, path)
        if found is None:
            return None
        torn = found[0]
        target = f"{TORN}/{ULID()}.{path.replace('/', '.')}.{torn.version}.manifest"
        files.move(f"{path}/{version_file(torn.version)}", target)
        (root / path / _HINT).unlink(missing_ok=True)
        return TornVersion(path, torn.version, target)


def forget_lost_version(root: Path, path: str) -> TornVersion | None:
    """Return the newest version that Lance noted if a power failure took it, and drop the note."""
    file = root / path / _HINT
    with suppress(OSError, ValueError, TypeError, KeyError):
        hinted = int(json.loads(file.read_bytes())["version"])
        if (root / path / version_file(hinted)).exists():
            return None
        versions = _stored_versions(root / path)
        if versions and hinted > versions[-1]:
            file.unlink()
            return TornVersion(path, hinted)
    return None


def _stored_versions(folder: Path) -> list[int]:
    with suppress(FileNotFoundError, NotADirectoryError):
        names = [f"_versions/{entry.name}" for entry in (folder / "_versions").iterdir()]
        return sorted(v for name in names if (v := parse_version_file(name)) is not None)
    return []
