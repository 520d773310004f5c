"""Folders of arrays in memory-mapped files, which processes share and any may delete.

They are derived from a graph: beside its data, or for a bucket in the cache of the user. Each
folder has facts about its arrays; it is written under another name and moved into place.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from omnigraph.commit.model import DatasetEntry
from omnigraph.storage import Location
from omnigraph.storage.checksums import file_checksum
from omnigraph.storage.file_sync import FileSync

_SCRATCH_MAX_AGE_SECONDS = 3600.0
"""Seconds after which a scratch folder is no longer written to."""
_METADATA_FILE = "facts.json"
UNREADABLE = (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError)
"""What reading a file raises that is not there, damaged or of another release."""

Arrays = Mapping[str, np.ndarray]


class ArrayFiles:
    """The folders of arrays of one kind: `kept` of each home at most, the newest ones."""

    def __init__(self, location: Location, name: str, kept: int, *, may_write: bool) -> None:
        home = Path(location.uri) if location.is_local else user_cache_folder(location)
        self._name, self._folder, self._kept = name, home / name, kept
        self._may_write = may_write or not location.is_local
        # Arrays are mapped without comparing their checksums.
        self._files = FileSync(Location(str(self._folder), durability=location.durability))

    def home(self, entry: DatasetEntry, *more: str) -> Path:
        """Return the folder of what is derived from one dataset."""
        return self._folder / "-".join(
            (f"{entry.type_id:016x}", f"{entry.incarnation:016x}", *more)
        )

    @staticmethod
    def place(home: Path, key: str) -> Path:
        """Return the folder for arrays that a key identifies."""
        return home / hashlib.sha256(key.encode()).hexdigest()[:32]

    @staticmethod
    def newest_first(home: Path) -> Iterator[Path]:
        """Yield the folders of a home, newest first."""
        with suppress(OSError):
            folders = [path for path in home.iterdir() if not path.name.startswith(".")]
            yield from sorted(folders, key=lambda path: path.stat().st_mtime, reverse=True)

    @staticmethod
    def facts(folder: Path) -> dict[str, Any]:
        """Return the facts about the arrays of a folder; raise one of UNREADABLE without them."""
        facts: dict[str, Any] = json.loads((folder / _METADATA_FILE).read_text(encoding="utf-8"))
        stated = facts.pop("sum", None)
        if stated is not None and stated != _metadata_checksum(facts):
            raise ValueError(f"{folder} is damaged")
        return facts

    @staticmethod
    def mapped(folder: Path, name: str) -> Any:  # noqa: ANN401 - an array of any numbers
        """Return an array of a folder, mapped into memory."""
        return np.load(folder / f"{name}.npy", mmap_mode="r")

    def save(self, place: Path, arrays: Arrays, facts: Mapping[str, Any]) -> bool:
        """Write arrays and facts about them, and drop old ones; return whether that was done."""
        if not self._may_write:
            return False
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            scratch = Path(tempfile.mkdtemp(prefix=".tmp-", dir=place.parent))
            try:
                _write(scratch, arrays, facts)
                self._files.sync_tree(scratch)
                shutil.rmtree(place, ignore_errors=True)  # what is there could not be read
                os.rename(scratch, place)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            self._prune(place.parent)
            return True
        return False

    def damaged(self) -> Iterator[str]:
        """Yield the folders in which a file does not match its checksum, or that has none."""
        for facts in sorted(self._folder.glob(f"*/*/{_METADATA_FILE}")):
            folder = facts.parent
            if not folder.name.startswith(".") and not self._checksums_match(folder):
                yield f"{self._name}/{folder.parent.name}/{folder.name}"

    def _checksums_match(self, folder: Path) -> bool:
        """Return whether the arrays and the facts about them are those that were written."""
        try:
            sums = self.facts(folder)["sums"].items()
            return all(file_checksum(folder / name) == stated for name, stated in sums)
        except UNREADABLE:
            return False

    def _prune(self, home: Path) -> None:
        for path in list(self.newest_first(home))[self._kept :]:
            shutil.rmtree(path, ignore_errors=True)
        for path in home.glob(".tmp-*"):
            if time.time() - path.stat().st_mtime > _SCRATCH_MAX_AGE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def _write(folder: Path, arrays: Arrays, facts: Mapping[str, Any]) -> None:
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    sums = {file.name: file_checksum(file) for file in sorted(folder.glob("*.npy"))}
    stated = {**facts, "sums": sums}
    text = json.dumps({**stated, "sum": _metadata_checksum(stated)})
    (folder / _METADATA_FILE).write_text(text, encoding="utf-8")


def _metadata_checksum(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def user_cache_folder(location: Location) -> Path:
    """Return where files derived from a graph in a bucket are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "omnigraph" / hashlib.sha256(location.uri.encode()).hexdigest()[:16]
