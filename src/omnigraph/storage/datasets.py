"""This module opens Lance datasets at exact versions and keeps their handles.

One `Session` per graph shares Lance's caches. A handle is keyed by what it physically is, path and
version, so it never goes stale and is never shared with a writer that would move it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance.fragment import write_fragments

from omnigraph.errors import (
    AlreadyExists,
    Contention,
    GraphCorrupt,
    NotFound,
    StorageUnavailable,
)
from omnigraph.storage.checksums import (
    expand_file_names,
    file_checksums,
    rename_with_checksums,
    version_file_names,
)
from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.layout import version_file
from omnigraph.storage.location import Location
from omnigraph.storage.lru_cache import LruCache
from omnigraph.storage.object_store import ObjectStore

MAX_HANDLES = 512
MAX_VERSIONS = 8
"""Handles kept of one dataset: each knows all its fragments, and old versions are rarely read."""
METADATA_BYTES = 64 * 1024 * 1024
"""What Lance may remember of files: a writer would fill the gigabyte it takes with old ones."""
MAX_FILE_LISTS = 64
"""Versions whose files are remembered: a writer needs those of the one before."""
MAX_CHECKSUMS = 16_384
"""Checksums of files that are remembered."""
RETRY_SECONDS = "30"
"""Lance repeats no request after this long; by itself it would wait three minutes, six times."""


class Datasets:
    """The Lance datasets of one graph.

    `observe` is told the name of every step of a protocol that storage could die at; tests put
    their own there.
    """

    def __init__(self, location: Location) -> None:
        self.location = location
        self.objects = ObjectStore(location)
        self.observe: Callable[[str], None] = _ignore_event
        self.session = lance.Session(metadata_cache_size_bytes=METADATA_BYTES)  # type: ignore[attr-defined]
        self._handles: LruCache[tuple[str, int], lance.LanceDataset] = LruCache(
            MAX_HANDLES, group=_path_of, group_capacity=MAX_VERSIONS
        )
        self._file_names: LruCache[tuple[str, int], frozenset[str]] = LruCache(MAX_FILE_LISTS)
        self._checksums: LruCache[str, str] = LruCache(MAX_CHECKSUMS)

    @property
    def options(self) -> dict[str, str] | None:
        """The storage options Lance wants."""
        if self.location.is_local:
            return None
        return {"client_retry_timeout": RETRY_SECONDS, **self.location.options}

    def append(self, path: str, rows: pa.Table) -> None:
        """Append rows to a dataset that is a plain log, creating it when it is not there."""
        try:
            base = self.open(path)
        except NotFound:
            with suppress(AlreadyExists):
                self.create(path, rows.slice(0, 0))
            base = self.open(path)
        with translate_errors(f"appending to {path}"):
            lance.write_dataset(rows, base, mode="append")

    def create(self, path: str, rows: pa.Table) -> int:
        """Create a dataset and return its version; raise AlreadyExists when another was first.

        This is one create-if-absent. Lance's own `mode="create"` is not: it checks first, and then
        overwrites what a racing creator made in between.
        """
        uri = self.location.child(path)
        try:
            with translate_errors(f"creating {path}"):
                staged = write_fragments(
                    rows, uri, mode="create", return_transaction=True, storage_options=self.options
                )
                operation: Any = staged.operation
                operation.fragments = rename_with_checksums(uri, operation.fragments)
                made = lance.LanceDataset.commit(
                    uri,
                    staged,
                    max_retries=0,
                    storage_options=self.options,
                    enable_stable_row_ids=False,
                )
        except (Contention, NotFound, StorageUnavailable) as error:
            if self._exists(path):
                raise AlreadyExists(f"{path} exists already") from error
            raise
        assert made.version == 1, "a commit without retries lands on its version or nowhere"
        return int(made.version)

    def _exists(self, path: str) -> bool:
        try:
            self.open(path)
        except (NotFound, StorageUnavailable):
            return False
        return True

    def at(self, path: str, version: int) -> lance.LanceDataset:
        """Return the shared read-only handle of one version of a dataset."""
        handle = self._handles.get((path, version))
        if handle is None:
            handle = self.open(path, version)
            self.keep(path, handle)
        return handle

    def keep(self, path: str, handle: lance.LanceDataset) -> None:
        """Remember a handle nobody will move."""
        self._handles.put((path, int(handle.version)), handle)

    def open(self, path: str, version: int | None = None) -> lance.LanceDataset:
        """Return a new handle, which its owner may move; without a version, of the latest."""
        with translate_errors(f"opening {path}"):
            return lance.dataset(
                self.location.child(path),
                version=version,
                session=self.session,
                storage_options=self.options,
            )

    def new_checksums(self, path: str, base: int | None, made: int) -> dict[str, str]:
        """Return the checksums of the files of a version that its base has not, by name.

        None are known in a bucket (`storage/checksums.py`). What was computed before is
        remembered, so
        that staging the same files again on another base costs nothing.
        """
        if not self.location.is_local:
            return {}
        root, known = Path(self.location.child(path)), frozenset[str]()
        if base is not None:
            known = self._names_at(path, base)
        new = expand_file_names(root, self._names_at(path, made) - known)
        kept = {name: self._checksums.get(f"{path}/{name}") for name in new}
        found = {name: checksum for name, checksum in kept.items() if checksum is not None}
        found |= file_checksums(root, new - found.keys())
        for name, checksum in found.items():
            self._checksums.put(f"{path}/{name}", checksum)
        return found

    def _names_at(self, path: str, version: int) -> frozenset[str]:
        names = self._file_names.get((path, version))
        if names is None:
            names = version_file_names(self.at(path, version))
            self._file_names.put((path, version), names)
        return names

    def has(self, path: str, version: int) -> bool:
        """Tell whether a version is there, asking storage: what is cached may be gone."""
        return self.objects.exists(f"{path}/{version_file(version)}")

    @contextmanager
    def check_intact(self, path: str, version: int) -> Iterator[None]:
        """Run a read of a version; raise GraphCorrupt when only a file of it is missing."""
        try:
            yield
        except NotFound as error:
            if error.code != "storage_not_found" or not self.has(path, version):
                raise
            raise GraphCorrupt(f"a file of {path} is missing", **error.details) from error


def _path_of(key: tuple[str, int]) -> str:
    return key[0]


def _ignore_event(step: str) -> None:
    """Ignore a step."""
