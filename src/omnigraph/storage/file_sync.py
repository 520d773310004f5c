"""Write files and the names of files to stable storage.

Lance never syncs: without this, a power failure may leave a published version without its files.
A file is stable once it was synced itself and the folders that hold its name were synced after it
got that name. Everything a graph syncs goes through `FileSync.fsync`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import random
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from omnigraph.errors import NotFound, StorageUnavailable
from omnigraph.storage.durability import Durability
from omnigraph.storage.error_translation import translate_error, translate_errors
from omnigraph.storage.location import Location
from omnigraph.storage.lru_cache import LruCache

MAX_SYNCED = 8_192
"""Number of names that are known to be stable: a commit adds about four."""
MAX_FOLDERS = 1_024
"""Number of folders whose parents are cached."""
MIN_PARALLEL = 16
_THREADS = 4
_MAX_ATTEMPTS = 8
_CLOCK_TICK_NS = 3_000_000_000
"""Changes of a folder within this time may have the same time stamp."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_ONCE = -1
"""In place of a time: a folder outside of the graph, whose other names do not matter."""
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
"""On macOS, `fsync` leaves data in the cache of the disk."""
_UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
"""Errors of file systems that cannot sync folders."""


def fsync_path(path: Path) -> None:
    """Sync the content of a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if _FULL_SYNC is None:
            os.fsync(descriptor)
        else:
            fcntl.fcntl(descriptor, _FULL_SYNC)
    except OSError as error:
        if error.errno not in _UNSUPPORTED or not path.is_dir():
            raise
    finally:
        os.close(descriptor)


class FileSync:
    """Syncs files below the root of a graph, each once; does nothing in buckets and if relaxed.

    Tests replace `fsync` to record what is stable.
    """

    def __init__(self, location: Location) -> None:
        self.enabled = location.is_local and location.durability is Durability.FULL
        self.fsync: Callable[[Path], None] = fsync_path
        self._uri = location.uri
        self._root = Path(location.uri)
        self._synced: LruCache[str, bool] = LruCache(MAX_SYNCED)
        self._failed: set[str] = set()
        self._folders: LruCache[Path, int] = LruCache(MAX_FOLDERS)
        """Modification times at which the names in a folder were stable."""
        self._above: set[Path] = set()
        """Folders above the root that this process created."""
        self._parents: LruCache[Path, tuple[Path, ...]] = LruCache(MAX_FOLDERS)

    def sync(self, names: Iterable[str]) -> None:
        """Sync files and their names; a name must never be used again for other content.

        Raises:
            NotFound: a file was removed.
            StorageUnavailable: the disk failed. A later sync of the same file fails, too: the
                system reports a lost write only once.
        """
        if not self.enabled:
            return
        new = [name for name in dict.fromkeys(names) if name not in self._synced]
        lost = next((name for name in new if name in self._failed), None)
        if lost is not None:
            raise _sync_error(lost, "an earlier sync failed")
        if new:
            try:
                self._sync_all(Path(f"{self._uri}/{name}") for name in new)
                folders = dict.fromkeys(os.path.dirname(name) for name in new)
                self._sync_names(Path(f"{self._uri}/{folder}") for folder in folders)
            except FileNotFoundError as error:
                message = f"{new[0]} or a file published with it was removed"
                raise NotFound(message, code="storage_not_found", cause=str(error)) from error
            except OSError as error:
                self._failed.update(new)
                if error.errno in _FULL:
                    raise translate_error(error, f"syncing {new[0]}") from error
                raise _sync_error(new[0], str(error)) from error
        for name in new:
            self._synced.put(name, True)

    def sync_tree(self, folder: Path) -> None:
        """Sync all files and folders below a folder."""
        if self.enabled:
            with translate_errors(f"syncing {folder}"):
                self._sync_all(sorted(folder.rglob("*")))
                self._sync_names([folder])

    def move(self, name: str, target: str) -> None:
        """Rename a file; the change is stable when this returns."""
        source, file = self._root / name, self._root / target
        self.make_folder(file.parent)
        source.rename(file)
        if self.enabled:
            self._sync_names([file.parent, source.parent])
        self._synced.remove(name)

    def write(self, name: str, data: bytes, *, replace: bool) -> bool:
        """Write a small file so that it has its old or its new content after a power failure.

        Returns False if it exists and is not to be replaced. Readers never see a part of it.
        """
        file = self._root / name
        for _ in range(_MAX_ATTEMPTS):
            self.make_folder(file.parent)
            # If another process removes the empty folder, try again.
            with suppress(FileNotFoundError):
                return self._write(file, data, replace=replace)
        self.make_folder(file.parent)
        return self._write(file, data, replace=replace)

    def make_folder(self, folder: Path) -> None:
        """Create a folder; its name is synced with the first file in it."""
        above = [p for p in (folder, *folder.parents) if not p.is_relative_to(self._root)]
        missing = [path for path in above if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        if missing:
            self._above.update(missing)
            self._parents = LruCache(MAX_FOLDERS)

    def _write(self, file: Path, data: bytes, *, replace: bool) -> bool:
        # The object store does not list names of this form.
        unfinished = file.with_name(f"{file.name}#{random.randrange(1 << 62)}")  # noqa: S311
        try:
            unfinished.write_bytes(data)
            self.fsync(unfinished)
            if replace:
                unfinished.replace(file)
            else:
                os.link(unfinished, file)
        except FileExistsError:
            return False
        finally:
            with suppress(FileNotFoundError):
                unfinished.unlink()
        self._sync_names([file.parent])
        return True

    def _sync_all(self, paths: Iterable[Path]) -> None:
        listed = list(paths)
        if len(listed) < MIN_PARALLEL:
            for path in listed:
                self.fsync(path)
            return
        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(self.fsync, listed))

    def _sync_names(self, folders: Iterable[Path]) -> None:
        """Sync the names in folders and in the folders above them that have changed."""
        chain = (path for folder in folders for path in (folder, *self._parents_of(folder)))
        for folder in dict.fromkeys(chain):
            # Every process may remove and create folders, so what is stable is known by time.
            known = self._folders.get(folder)
            if known == _ONCE:
                continue
            modified = os.stat(folder).st_mtime_ns
            if known != modified:
                self._sync_folder(folder, modified)

    def _sync_folder(self, folder: Path, modified: int) -> None:
        if not self._is_own(folder):
            with suppress(PermissionError):
                self.fsync(folder)
            self._folders.put(folder, _ONCE)
            return
        self.fsync(folder)
        if time.time_ns() - modified > _CLOCK_TICK_NS:
            self._folders.put(folder, modified)

    def _is_own(self, folder: Path) -> bool:
        return folder.is_relative_to(self._root)

    def _parents_of(self, folder: Path) -> tuple[Path, ...]:
        """Return the folders above one, up to one that existed before the graph."""
        parents = self._parents.get(folder)
        if parents is None:
            chain, below = list[Path](), folder
            while self._is_own(below) or below in self._above:
                below = below.parent
                chain.append(below)
            parents = self._parents.put(folder, tuple(chain))
        return parents


def _sync_error(name: str, cause: str) -> StorageUnavailable:
    message = (
        f"{name} could not be synced to disk; check the disk, run `omnigraph verify --deep` and "
        "open the graph again"
    )
    return StorageUnavailable(message, code="sync_failed", cause=cause)
