"""Read and write small objects on disk or in a bucket.

The protocols depend on `put_if_absent`: a store that ignores the condition would lose updates
silently, so `probe` rejects such a store before a graph is created on it.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import urlparse

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    NotFoundError,
    PreconditionError,
    UnknownConfigurationKeyError,
)
from obstore.store import LocalStore, S3Store
from ulid import ULID

from omnigraph.errors import InvalidInput, StorageUnavailable
from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.file_sync import FileSync
from omnigraph.storage.location import Location

MAX_RETRIES = 3
RETRY_SECONDS = 10
"""Requests are not retried after this time; the option `client_retry_timeout` overrides it."""

# Objects are small: a read that stalls for this long has failed.
_CLIENT_OPTIONS: dict[str, Any] = {
    "allow_http": "false",
    "connect_timeout": "5s",
    "read_timeout": "10s",
    "timeout": "30s",
}
PROBE_FOLDER = "__probe"
"""The folder of temporary objects that test the store."""
RESERVE = "__reserve"
RESERVE_BYTES = 256 * 1024
"""Disk space for the announcements of a cleanup: about 16 KB for each branch."""
_BULK = 1_000
"""Number of objects that one request deletes."""
_BLOCK = 5 * 1024 * 1024
_MISSING = (NotFoundError, FileNotFoundError)
_LANCE_ONLY_OPTIONS = ("download_retry_count",)


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One stored object, by its path below the root."""

    path: str
    size: int
    modified: datetime


class ObjectStore:
    """The objects below the root of a graph."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self.files = FileSync(location)
        self._opened: LocalStore | S3Store | None = None

    @property
    def _store(self) -> LocalStore | S3Store:
        if self._opened is None:
            self._opened = _open_store(self._location, self.files)
        return self._opened

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create an object; return False if it already exists."""
        with translate_errors(f"writing {path}"):
            if self.files.enabled:
                return self.files.write(path, data, replace=False)
            try:
                obstore.put(self._store, path, data, mode="create")
            except (AlreadyExistsError, FileExistsError):
                return False
            return True

    def put(self, path: str, data: bytes) -> None:
        """Write an object, replacing an existing one."""
        with translate_errors(f"writing {path}"):
            if self.files.enabled:
                self.files.write(path, data, replace=True)
            else:
                obstore.put(self._store, path, data)

    def replace(self, path: str, old: bytes, new: bytes) -> bool:
        """Replace an object if its content is `old`; return False if it is not.

        Of several processes that replace the same content, one succeeds.
        """
        with translate_errors(f"writing {path}"):
            if isinstance(self._store, LocalStore):
                return self._replace_file(path, old, new)
            try:
                stored = obstore.get(self._store, path)
                if bytes(stored.bytes()) != old:
                    return False
                tag = cast(Any, {"e_tag": stored.meta["e_tag"]})
                obstore.put(self._store, path, new, mode=tag)
            except _MISSING:
                return False
            except PreconditionError:
                # We replaced it if only the response was lost and the request was retried.
                return self.get(path) == new
            return True

    def _replace_file(self, path: str, old: bytes, new: bytes) -> bool:
        """Replace a file under a file lock, which the system releases when its holder dies."""
        file = Path(self._location.uri, path)
        if not file.exists():
            return False
        with (file.parent / f".{file.name}.swap").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.get(path) != old:
                return False
            self.put(path, new)
            return True

    def get(self, path: str) -> bytes | None:
        """Return the content of an object, or None if it does not exist."""
        stored = self.get_dated(path)
        return None if stored is None else stored[0]

    def get_dated(self, path: str) -> tuple[bytes, datetime] | None:
        """Return the content and the modification time of an object, or None."""
        with translate_errors(f"reading {path}"):
            try:
                stored = obstore.get(self._store, path)
                return bytes(stored.bytes()), stored.meta["last_modified"]
            except _MISSING:
                return None

    def part(self, path: str, start: int, stop: int) -> memoryview:
        """Return a byte range of an object, which must exist."""
        with translate_errors(f"reading {path}"):
            return memoryview(obstore.get_range(self._store, path, start=start, end=stop))

    def open(self, path: str) -> tuple[int, Iterator[bytes]] | None:
        """Return the size of an object and its content in chunks, or None if it does not exist."""
        with translate_errors(f"reading {path}"):
            try:
                stored = obstore.get(self._store, path)
            except _MISSING:
                return None
            return stored.meta["size"], (bytes(chunk) for chunk in stored.stream())

    def put_file(self, path: str, file: IO[bytes]) -> None:
        """Write an object from a file, as a multipart upload if it is large; it is not synced."""
        with translate_errors(f"writing {path}"):
            obstore.put(self._store, path, iter(lambda: file.read(_BLOCK), b""))

    def exists(self, path: str) -> bool:
        """Return whether an object exists."""
        if not self._location.is_local:
            return self.size(path) is not None
        # Writers and readers call this for every commit and query; a local stat needs no store.
        with translate_errors(f"looking for {path}"):
            try:
                return stat.S_ISREG(os.stat(f"{self._location.uri}/{path}").st_mode)
            except (FileNotFoundError, NotADirectoryError):
                return False

    def size(self, path: str) -> int | None:
        """Return the size of an object in bytes, or None if it does not exist."""
        info = self._head(path)
        return None if info is None else info.size

    def modified(self, path: str) -> datetime | None:
        """Return the modification time of an object by the store's clock, or None."""
        info = self._head(path)
        return None if info is None else info.modified

    def _head(self, path: str) -> ObjectInfo | None:
        with translate_errors(f"looking for {path}"):
            try:
                stored = obstore.head(self._store, path)
                return ObjectInfo(path, stored["size"], stored["last_modified"])
            except _MISSING:
                return None

    def now(self) -> datetime:
        """Return the current time by the store's clock, which all processes share.

        It is the modification time of a new object. Only such times can be compared with
        `modified`; clocks of machines may be wrong.
        """
        path = f"{PROBE_FOLDER}/{ULID()}"
        with translate_errors("reading the time of the store"):
            obstore.put(self._store, path, b"")
            now = obstore.head(self._store, path)["last_modified"]
        self.delete([path])
        return now

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield every object below a prefix."""
        with translate_errors(f"listing {prefix}"):
            for page in obstore.list(self._store, prefix):
                for stored in page:
                    yield ObjectInfo(stored["path"], stored["size"], stored["last_modified"])

    def folders(self, prefix: str) -> tuple[str, ...]:
        """Return the names of the folders right below a prefix."""
        with translate_errors(f"listing {prefix}"):
            listing = obstore.list_with_delimiter(self._store, prefix)
            prefixes = listing["common_prefixes"]
            return tuple(path.rstrip("/").rsplit("/", 1)[-1] for path in prefixes)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects in the given order; missing ones are ignored."""
        listed = list(paths)
        with translate_errors("deleting objects"):
            if isinstance(self._store, S3Store):
                for start in range(0, len(listed), _BULK):
                    obstore.delete(self._store, listed[start : start + _BULK])
                return
            for path in listed:
                try:
                    obstore.delete(self._store, path)
                except _MISSING:
                    continue

    def move(self, path: str, to: str) -> None:
        """Rename an object, in a bucket by a copy; a missing one is ignored."""
        with translate_errors(f"moving {path}"), suppress(*_MISSING):
            obstore.rename(self._store, path, to)

    def hold_reserve(self) -> None:
        """Reserve disk space for a cleanup that has to run when the disk is full.

        Best effort: a bucket needs none, and without it only that cleanup has less space.
        """
        if self._location.is_local and self.size(RESERVE) != RESERVE_BYTES:
            with suppress(OSError), Path(self._location.uri, RESERVE).open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)

    def release_reserve(self) -> None:
        """Free the reserved space."""
        if self._location.is_local:
            self.delete([RESERVE])

    def reach(self) -> None:
        """Check that a bucket responds; Lance would retry for minutes."""
        if not self._location.is_local:
            with translate_errors(f"reaching {self._location}"):
                next(iter(obstore.list(self._store, PROBE_FOLDER)), None)

    def probe(self) -> None:
        """Raise StorageUnavailable if two writers can create the same object."""
        path = f"{PROBE_FOLDER}/{ULID()}"
        # The first result is ignored: its response may be lost and the request retried.
        self.put_if_absent(path, b"1")
        unsafe = self.put_if_absent(path, b"2")
        self.delete([path])
        if unsafe:
            raise StorageUnavailable(
                "this store ignores create-if-absent, so concurrent writers would lose updates; "
                "use a store that supports conditional writes",
                code="storage_unsafe",
            )


def _open_store(location: Location, files: FileSync) -> LocalStore | S3Store:
    if location.is_local:
        folder = Path(location.uri)
        with translate_errors(f"opening {location}"):
            files.make_folder(folder)
            return LocalStore(prefix=folder, automatic_cleanup=True)
    parsed = urlparse(location.uri)
    config: dict[str, Any] = {
        k: v for k, v in location.options.items() if k not in _LANCE_ONLY_OPTIONS
    }
    retries = int(config.pop("client_max_retries", MAX_RETRIES))
    retry_timeout = timedelta(seconds=int(config.pop("client_retry_timeout", RETRY_SECONDS)))
    client = {
        **_CLIENT_OPTIONS,
        **{key: config.pop(key) for key in _CLIENT_OPTIONS if key in config},
    }
    client["allow_http"] = client["allow_http"] == "true"
    try:
        return S3Store(
            parsed.netloc,
            prefix=parsed.path.strip("/") or None,
            config=cast(Any, config),
            client_options=cast(Any, client),
            retry_config={"max_retries": retries, "retry_timeout": retry_timeout},
        )
    except UnknownConfigurationKeyError as error:
        message = str(error).partition("\n")[0]
        raise InvalidInput(message, code="storage_option_invalid", uri=location.uri) from error
