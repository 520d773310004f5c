"""Open Lance datasets at exact versions and cache their handles.

One `Session` per graph shares Lance's caches. A handle is keyed by path and version, so it never
becomes stale and is never shared with a writer that would move it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter
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
from omnigraph.storage.partial_version import open_without_newest

MAX_HANDLES = 512
MAX_VERSIONS = 8
"""Cached handles of one dataset: each holds all fragments, and old versions are rarely read."""
METADATA_BYTES = 64 * 1024 * 1024
"""Limit of Lance's metadata cache; writers would fill its default of 1 GB with old files."""
MAX_FILE_LISTS = 64
"""Versions whose file lists are cached: a writer needs that of its base."""
MAX_CHECKSUMS = 16_384
"""Number of cached file checksums."""
RETRY_SECONDS = "30"
"""Lance retries no request after this time; its default is 3 minutes, six times."""


class Datasets:
    """The Lance datasets of one graph.

    `observe` is called with the name of every protocol step at which a process could die; tests
    replace it.
    """

    def __init__(self, location: Location) -> None:
        self.location = location
        self.objects = ObjectStore(location)
        self.observe: Callable[[str], None] = lambda step: None
        self.session = lance.Session(metadata_cache_size_bytes=METADATA_BYTES)  # type: ignore[attr-defined]
        self._handles: LruCache[tuple[str, int, int], lance.LanceDataset] = LruCache(
            MAX_HANDLES, group=itemgetter(0), group_capacity=MAX_VERSIONS
        )
        self._file_names: LruCache[tuple[str, int], frozenset[str]] = LruCache(MAX_FILE_LISTS)
        self._checksums: LruCache[str, str] = LruCache(MAX_CHECKSUMS)

    @property
    def options(self) -> dict[str, str] | None:
        """The storage options for Lance."""
        if self.location.is_local:
            return None
        return {"client_retry_timeout": RETRY_SECONDS, **self.location.options}

    def append(self, path: str, rows: pa.Table) -> None:
        """Append rows to a dataset that is a plain log; create it if it does not exist."""
        try:
            base = self.open(path)
        except NotFound:
            with suppress(AlreadyExists):
                self.create(path, rows.slice(0, 0))
            base = self.open(path)
        with translate_errors(f"appending to {path}"):
            lance.write_dataset(rows, base, mode="append")

    def create(self, path: str, rows: pa.Table) -> int:
        """Create a dataset and return its version; raise AlreadyExists if it exists.

        This is one create-if-absent. Lance's own `mode="create"` is not: it checks first and then
        overwrites a dataset that another process created in between.
        """
        uri = self.location.child(path)
        try:
            with translate_errors(f"creating {path}"):
                staged = write_fragments(
                    rows, uri, mode="create", return_transaction=True, storage_options=self.options
                )
                operation: Any = staged.operation
                operation.fragments = rename_with_checksums(uri, operation.fragments)
                dataset = lance.LanceDataset.commit(
                    uri,
                    staged,
                    max_retries=0,
                    storage_options=self.options,
                    enable_stable_row_ids=False,
                )
        except (Contention, NotFound, StorageUnavailable) as error:
            if self._exists(path):
                raise AlreadyExists(f"{path} already exists") from error
            raise
        assert dataset.version == 1, "a commit without retries creates its version or fails"
        return int(dataset.version)

    def _exists(self, path: str) -> bool:
        try:
            self.open(path)
        except (NotFound, StorageUnavailable):
            return False
        return True

    def at(self, path: str, version: int, excluded: int = 0) -> lance.LanceDataset:
        """Return the shared read-only handle of one version of a dataset.

        Without `excluded` newest rows it is a state within a group of commits; see
        `storage/partial_version.py`.
        """
        handle = self._handles.get((path, version, excluded))
        if handle is None:
            handle = self.open(path, version)
            if excluded:
                with translate_errors(f"opening {path}"):
                    handle = open_without_newest(handle, excluded, self.session, self.options)
            self._handles.put((path, version, excluded), handle)
        return handle

    def keep(self, path: str, handle: lance.LanceDataset) -> None:
        """Cache a handle that no caller moves to another version."""
        self._handles.put((path, int(handle.version), 0), handle)

    def open(self, path: str, version: int | None = None) -> lance.LanceDataset:
        """Return a new handle that the caller may move; by default of the latest version."""
        with translate_errors(f"opening {path}"):
            return lance.dataset(
                self.location.child(path),
                version=version,
                session=self.session,
                storage_options=self.options,
            )

    def new_checksums(self, path: str, base: int | None, version: int) -> dict[str, str]:
        """Return the checksums of the files that a version adds to its base, by name.

        Empty in a bucket (see `storage/checksums.py`). Checksums are cached, so that staging the
        same files again on another base costs nothing.
        """
        if not self.location.is_local:
            return {}
        root, inherited = Path(self.location.child(path)), frozenset[str]()
        if base is not None:
            inherited = self._names_at(path, base)
        new = expand_file_names(root, self._names_at(path, version) - inherited)
        cached = {name: self._checksums.get(f"{path}/{name}") for name in new}
        checksums = {name: value for name, value in cached.items() if value is not None}
        checksums |= file_checksums(root, new - checksums.keys())
        for name, value in checksums.items():
            self._checksums.put(f"{path}/{name}", value)
        return checksums

    def _names_at(self, path: str, version: int) -> frozenset[str]:
        names = self._file_names.get((path, version))
        if names is None:
            names = version_file_names(self.at(path, version))
            self._file_names.put((path, version), names)
        return names

    def has(self, path: str, version: int) -> bool:
        """Return whether a version exists in storage; caches are not used."""
        return self.objects.exists(f"{path}/{version_file(version)}")

    @contextmanager
    def check_intact(self, path: str, version: int) -> Iterator[None]:
        """Run a read of a version; raise GraphCorrupt if only a file of it is missing."""
        try:
            yield
        except NotFound as error:
            if error.code != "storage_not_found" or not self.has(path, version):
                raise
            raise GraphCorrupt(f"a file of {path} is missing", **error.details) from error
