"""This module reads and writes small objects beside the datasets, the same on disk and in a bucket.

The one primitive everything rests on is `put_if_absent`: a store that does not honour it would lose
updates silently, so `probe` refuses such a store before a graph is made on it.
"""

from __future__ import annotations

import fcntl
import os
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
from omnigraph.storage.location import Location

MAX_RETRIES = 3
RETRY_SECONDS = 10
"""No request is repeated after this long; the option `client_retry_timeout` says otherwise."""

# Objects are small: who sends no byte for so long will send none.
_CLIENT_OPTIONS: dict[str, Any] = {
    "allow_http": "false",
    "connect_timeout": "5s",
    "read_timeout": "10s",
    "timeout": "30s",
}
PROBE_FOLDER = "__probe"
"""Where objects are written only to learn something about the store."""
RESERVE = "__reserve"
RESERVE_BYTES = 256 * 1024
"""Space for the announcements of a cleanup: about 16 KB for each branch."""
_BULK = 1_000
"""Objects one request deletes."""
_BLOCK = 5 * 1024 * 1024
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
        self._opened: LocalStore | S3Store | None = None

    @property
    def _store(self) -> LocalStore | S3Store:
        if self._opened is None:
            self._opened = _open_store(self._location)
        return self._opened

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create an object; return False when it exists already."""
        with translate_errors(f"writing {path}"):
            try:
                obstore.put(self._store, path, data, mode="create")
            except (AlreadyExistsError, FileExistsError):
                return False
            return True

    def put(self, path: str, data: bytes) -> None:
        """Write an object, replacing what is there."""
        with translate_errors(f"writing {path}"):
            obstore.put(self._store, path, data)

    def replace(self, path: str, old: bytes, new: bytes) -> bool:
        """Replace an object whose content is `old`; return False when it is not, or not any more.

        Of several that replace the same content one succeeds, whatever process each runs in.
        """
        with translate_errors(f"writing {path}"):
            if isinstance(self._store, LocalStore):
                return self._replace_file(path, old, new)
            try:
                found = obstore.get(self._store, path)
                if bytes(found.bytes()) != old:
                    return False
                tag = cast(Any, {"e_tag": found.meta["e_tag"]})
                obstore.put(self._store, path, new, mode=tag)
            except (NotFoundError, FileNotFoundError):
                return False
            except PreconditionError:
                # Ours, if only the answer was lost and the request was sent again.
                return self.get(path) == new
            return True

    def _replace_file(self, path: str, old: bytes, new: bytes) -> bool:
        """Replace a file under a lock the system releases when its holder dies."""
        file = Path(self._location.uri, path)
        if not file.exists():
            return False
        with (file.parent / f".{file.name}.swap").open("wb") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            if self.get(path) != old:
                return False
            self.put(path, new)
            return True

    def get(self, path: str) -> bytes | None:
        """Return the content of an object, or None when there is none."""
        found = self.get_dated(path)
        return None if found is None else found[0]

    def get_dated(self, path: str) -> tuple[bytes, datetime] | None:
        """Return the content of an object and when the store wrote it, or None."""
        with translate_errors(f"reading {path}"):
            try:
                found = obstore.get(self._store, path)
                return bytes(found.bytes()), found.meta["last_modified"]
            except (NotFoundError, FileNotFoundError):
                return None

    def part(self, path: str, start: int, stop: int) -> memoryview:
        """Return some bytes of an object, which must be there."""
        with translate_errors(f"reading {path}"):
            return memoryview(obstore.get_range(self._store, path, start=start, end=stop))

    def open(self, path: str) -> tuple[int, Iterator[bytes]] | None:
        """Return the size of an object and its content in pieces, or None when there is none."""
        with translate_errors(f"reading {path}"):
            try:
                found = obstore.get(self._store, path)
            except (NotFoundError, FileNotFoundError):
                return None
            return found.meta["size"], (bytes(chunk) for chunk in found.stream())

    def put_file(self, path: str, file: IO[bytes]) -> None:
        """Write an object from a file, in parts if it is large."""
        with translate_errors(f"writing {path}"):
            obstore.put(self._store, path, iter(lambda: file.read(_BLOCK), b""))

    def exists(self, path: str) -> bool:
        """Tell whether there is an object."""
        return self.size(path) is not None

    def size(self, path: str) -> int | None:
        """Return how many bytes an object has, None when there is none."""
        with translate_errors(f"looking for {path}"):
            try:
                return obstore.head(self._store, path)["size"]
            except (NotFoundError, FileNotFoundError):
                return None

    def modified(self, path: str) -> datetime | None:
        """Return when an object was written, by the store's clock, None when there is none."""
        with translate_errors(f"looking for {path}"):
            try:
                return obstore.head(self._store, path)["last_modified"]
            except (NotFoundError, FileNotFoundError):
                return None

    def now(self) -> datetime:
        """Return the time by the store's clock, which all processes share: that of a new object.

        Only such times can be compared with `modified`; clocks of machines may be wrong.
        """
        path = f"{PROBE_FOLDER}/{ULID()}"
        with translate_errors("reading the time of the store"):
            obstore.put(self._store, path, b"")
            found = obstore.head(self._store, path)["last_modified"]
        self.delete([path])
        return found

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield every object below a prefix."""
        with translate_errors(f"listing {prefix}"):
            for page in obstore.list(self._store, prefix):
                for found in page:
                    yield ObjectInfo(found["path"], found["size"], found["last_modified"])

    def folders(self, prefix: str) -> tuple[str, ...]:
        """Return the names of the folders right below a prefix."""
        with translate_errors(f"listing {prefix}"):
            found = obstore.list_with_delimiter(self._store, prefix)
            return tuple(path.rstrip("/").rsplit("/", 1)[-1] for path in found["common_prefixes"])

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects in the given order; those that are gone already are fine."""
        listed = list(paths)
        with translate_errors("deleting objects"):
            if isinstance(self._store, S3Store):
                for start in range(0, len(listed), _BULK):
                    obstore.delete(self._store, listed[start : start + _BULK])
                return
            for path in listed:
                try:
                    obstore.delete(self._store, path)
                except (NotFoundError, FileNotFoundError):
                    continue

    def hold_reserve(self) -> None:
        """Hold some space of a disk for a cleanup that has to run when it is full.

        It is best effort: a bucket needs none, and without it only that cleanup has less room.
        """
        if self._location.is_local and self.size(RESERVE) != RESERVE_BYTES:
            with suppress(OSError), Path(self._location.uri, RESERVE).open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)

    def release_reserve(self) -> None:
        """Give the space back that was held."""
        if self._location.is_local:
            self.delete([RESERVE])

    def reach(self) -> None:
        """Make sure that a bucket answers; Lance, asked first, would not give up for minutes."""
        if not self._location.is_local:
            with translate_errors(f"reaching {self._location}"):
                next(iter(obstore.list(self._store, PROBE_FOLDER)), None)

    def probe(self) -> None:
        """Refuse a store that lets two writers create the same object."""
        path = f"{PROBE_FOLDER}/{ULID()}"
        # What the first attempt says does not matter: its answer may be lost and asked for again.
        self.put_if_absent(path, b"1")
        lies = self.put_if_absent(path, b"2")
        self.delete([path])
        if lies:
            raise StorageUnavailable(
                "this store ignores create-if-absent, so writers would lose each other's work",
                code="storage_unsafe",
            )


def _open_store(location: Location) -> LocalStore | S3Store:
    if location.is_local:
        folder = Path(location.uri)
        with translate_errors(f"opening {location}"):
            folder.mkdir(parents=True, exist_ok=True)
            return LocalStore(prefix=folder, automatic_cleanup=True)
    parsed = urlparse(location.uri)
    config: dict[str, Any] = {
        k: v for k, v in location.options.items() if k not in _LANCE_ONLY_OPTIONS
    }
    retries = int(config.pop("client_max_retries", MAX_RETRIES))
    patience = timedelta(seconds=int(config.pop("client_retry_timeout", RETRY_SECONDS)))
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
            retry_config={"max_retries": retries, "retry_timeout": patience},
        )
    except UnknownConfigurationKeyError as error:
        message = str(error).partition("\n")[0]
        raise InvalidInput(message, code="storage_option_invalid", uri=location.uri) from error
