"""Open Lance datasets at exact versions and cache their handles.

One `Session` per graph shares Lance's caches. A handle is keyed by path and version, so it never
becomes stale and is never shared with a writer that would move it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance.fragment import write_fragments

from omnigraph.errors import (
    NEXT_STEP,
    AlreadyExists,
    Contention,
    GraphCorrupt,
    NotFound,
    OmniError,
    StorageUnavailable,
)
from omnigraph.storage.checksums import (
    expand_file_names,
    file_checksums,
    rename_with_checksums,
    version_file_names,
)
from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.layout import (
    INDEX_FOLDER,
    fragment_file_names,
    is_stable_name,
    referenced_files,
    version_file,
    version_hint,
)
from omnigraph.storage.location import Location
from omnigraph.storage.lru_cache import LruCache
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.partial_version import open_without_indexes, open_without_newest
from omnigraph.storage.torn_version import (
    TornVersion,
    find_torn_version,
    forget_lost_version,
    is_whole,
    set_aside_torn_version,
)
from omnigraph.storage.version_checksums import (
    find_damaged,
    inherited_checksums,
    read_version_checksums,
    write_version_checksums,
)

MAX_HANDLE_FRAGMENTS = 65_536
"""Fragments of all cached handles: a handle holds about 200 bytes for each."""
MAX_VERSIONS = 128
"""Cached handles of one dataset: writers of different branches each need that of their base."""
METADATA_BYTES = 32 * 1024 * 1024
"""Limit of Lance's metadata cache, which takes twice as much as it counts.

Every process that follows the commits of a graph fills it with old files, up to 1 GB by default.
"""
MAX_FILE_LISTS = 256
"""Versions whose file lists are cached: a writer needs that of its base."""
MAX_CHECKSUMS = 16_384
"""Number of cached checksums of files that this process has written or compared."""
RETRY_SECONDS = "30"
"""Lance retries no request after this time; its default is 3 minutes, six times."""


class Datasets:
    """The Lance datasets of one graph.

    `observe` is called with the name of every protocol step at which a process could die; tests
    replace it. `on_torn_version` is called after the newest version of a dataset was set aside
    because a power failure left it incomplete; while it is None, the version before is opened.
    """

    def __init__(self, location: Location) -> None:
        self.location = location
        self.objects = ObjectStore(location)
        self.observe: Callable[[str], None] = lambda step: None
        self.on_torn_version: Callable[[TornVersion], None] | None = None
        self.session = _new_session()
        self._handles: LruCache[tuple[str, int, int], lance.LanceDataset] = LruCache(
            MAX_HANDLE_FRAGMENTS,
            size=lambda handle: len(handle.fragment_ids()) + 1,
            group=itemgetter(0),
            group_capacity=MAX_VERSIONS,
        )
        self._file_names: LruCache[tuple[str, int], frozenset[str]] = LruCache(MAX_FILE_LISTS)
        self._checksums: LruCache[str, str] = LruCache(MAX_CHECKSUMS)
        self._version_checksums: LruCache[tuple[str, int], dict[str, str]] = LruCache(
            MAX_FILE_LISTS
        )

    @property
    def is_relaxed(self) -> bool:
        """Whether files are left to the operating system, which writes them to disk later."""
        return self.location.is_local and not self.objects.files.enabled

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
            staged = write_fragments(rows, base, mode="append", return_transaction=True)
            operation: Any = staged.operation
            self.sync_files(path, fragment_file_names(operation.fragments))
            appended = lance.LanceDataset.commit(base, staged)
        self.sync_files(path, referenced_files(appended))

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
                self.sync_files(path, fragment_file_names(operation.fragments))
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
        self.sync_version(path, 1)
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
            damaged_index = self._check_files(path, version)
            handle, session = self.open(path, version), self.session
            if damaged_index:
                with translate_errors(f"opening {path}"):
                    handle = open_without_indexes(handle, self.options)
                    session = handle.session()
            if excluded:
                with translate_errors(f"opening {path}"):
                    handle = open_without_newest(handle, excluded, session, self.options)
            self._handles.put((path, version, excluded), handle)
        return handle

    def keep(self, path: str, handle: lance.LanceDataset) -> None:
        """Cache a handle that no caller moves to another version."""
        self._handles.put((path, int(handle.version), 0), handle)

    def open(self, path: str, version: int | None = None) -> lance.LanceDataset:
        """Return a new handle that the caller may move; by default of the latest version."""
        if version is None and self.location.is_local:
            return self._open_latest(path)
        return self._open(path, version)

    def _open(self, path: str, version: int | None) -> lance.LanceDataset:
        with translate_errors(f"opening {path}"):
            return lance.dataset(
                self.location.child(path),
                version=version,
                session=self.session,
                storage_options=self.options,
            )

    def _open_latest(self, path: str) -> lance.LanceDataset:
        """Open the newest version that is not torn."""
        root, failed = Path(self.location.uri), None
        try:
            handle = self._open(path, None)
            if is_whole(root / path / version_file(int(handle.version))):
                return self._check_latest(path, handle)
        except OmniError as error:
            failed = error
        with translate_errors(f"opening {path}"):
            found = find_torn_version(root, path)
        if found is None:  # it is damaged otherwise, or was removed meanwhile
            if failed is not None:
                raise failed
            return self._open(path, None)
        _, before = found
        if self.on_torn_version is not None:
            self.set_aside_torn_version(path)
            return self._open_latest(path)
        if before is None:
            message = f"opening {path}: its first version is incomplete"
            raise NotFound(message, code="storage_not_found")
        return self._open(path, before)

    def _check_latest(self, path: str, handle: lance.LanceDataset) -> lance.LanceDataset:
        """Raise GraphCorrupt if the file of a newer version holds an older one."""
        hinted = self.hinted_version(path)
        if hinted > handle.version and self.has(path, hinted):
            handle = self._open(path, None)  # it may just have been published
            if hinted > handle.version:
                message = f"the file of version {hinted} of {path} holds another version"
                raise GraphCorrupt(f"{message}; {NEXT_STEP}")
        return handle

    def torn_version(self, path: str) -> int | None:
        """Return the newest version of a dataset if a power failure left it incomplete."""
        if not self.location.is_local:
            return None
        with translate_errors(f"listing {path}"):
            found = find_torn_version(Path(self.location.uri), path)
        return None if found is None else found[0].version

    def set_aside_torn_version(self, path: str) -> None:
        """Move the newest version of a dataset away if it is torn, and report it."""
        with translate_errors(f"setting aside a version of {path}"):
            torn = set_aside_torn_version(Path(self.location.uri), path, self.objects.files)
        self.session = _new_session()  # the caches of Lance know the version by its number
        if torn is not None and self.on_torn_version is not None:
            self.on_torn_version(torn)

    def report_lost_version(self, path: str) -> None:
        """Report the newest version of a dataset if its name was lost before it was synced."""
        if self.location.is_local and self.on_torn_version is not None:
            lost = forget_lost_version(Path(self.location.uri), path)
            if lost is not None:
                self.on_torn_version(lost)

    # --- syncing -------------------------------------------------------------------------------

    def sync_files(self, path: str, names: Iterable[str]) -> None:
        """Sync files of a dataset to disk; those that were synced are skipped."""
        self.objects.files.sync(f"{path}/{name}" for name in names)

    def sync_all_files(self, path: str) -> None:
        """Sync all files of a dataset, those of older versions included."""
        folder = Path(self.location.child(path))
        if self.objects.files.enabled and folder.is_dir():
            files = (file for file in folder.rglob("*") if file.is_file())
            names = (str(file.relative_to(folder)) for file in files)
            self.sync_files(path, sorted(name for name in names if is_stable_name(name)))

    def sync_version(self, path: str, version: int) -> None:
        """Sync the file of a version whose data files are already synced."""
        self.sync_files(path, [version_file(version)])

    def sync_new_files(self, path: str, base: int | None, version: int) -> None:
        """Sync the files that a version adds to its base."""
        if self.objects.files.enabled:
            inherited = frozenset[str]() if base is None else self._names_at(path, base)
            new = self._names_at(path, version) - inherited
            self.sync_files(path, expand_file_names(Path(self.location.child(path)), new))

    def finish_files(self, path: str, names: Sequence[str]) -> None:
        """Sync new files and compute their checksums before any version refers to them."""
        self.sync_files(path, names)
        if self.location.is_local:
            computed = file_checksums(Path(self.location.child(path)), names)
            for name, value in computed.items():
                self._checksums.put(f"{path}/{name}", value)

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
        self._write_checksums(path, base, version, checksums)
        return checksums

    def _write_checksums(
        self, path: str, base: int | None, version: int, new: Mapping[str, str]
    ) -> None:
        """Write the checksums of all files of a version, for its readers."""
        root, checksums = Path(self.location.child(path)), dict(new)
        if base is not None:
            known = self._version_checksums.get((path, base))
            known = read_version_checksums(root, base) if known is None else known
            checksums |= inherited_checksums(known, self._names_at(path, version))
        self._version_checksums.put((path, version), checksums)
        write_version_checksums(root, version, checksums)

    def _check_files(self, path: str, version: int) -> bool:
        """Compare the files of a version, each once per process; raise GraphCorrupt on a mismatch.

        Return whether index files are damaged: the version can be read without them.
        """
        if not self.location.is_local:
            return False
        root, damaged_index = Path(self.location.child(path)), False
        stated = read_version_checksums(root, version)
        known = {name for name in stated if self._checksums.get(f"{path}/{name}") is not None}
        damaged = dict(find_damaged(root, stated, known))
        for name, exists in damaged.items():
            if name.startswith(INDEX_FOLDER):
                damaged_index = True
            elif exists:
                message = f"{path}/{name} is damaged: it does not match its checksum"
                raise GraphCorrupt(f"{message}; {NEXT_STEP}", file=f"{path}/{name}")
        for name in stated.keys() - known - damaged.keys():
            self._checksums.put(f"{path}/{name}", stated[name])
        return damaged_index

    def _names_at(self, path: str, version: int) -> frozenset[str]:
        names = self._file_names.get((path, version))
        if names is None:
            names = version_file_names(self.at(path, version))
            self._file_names.put((path, version), names)
        return names

    def has(self, path: str, version: int) -> bool:
        """Return whether a version exists in storage; caches are not used."""
        return self.objects.exists(f"{path}/{version_file(version)}")

    def hinted_version(self, path: str) -> int:
        """Return the latest version by Lance's note; 0 in a bucket, or if there is none."""
        if not self.location.is_local:
            return 0
        try:
            return int(
                json.loads(Path(self.location.child(version_hint(path))).read_bytes())["version"]
            )
        except (OSError, ValueError, KeyError, TypeError):
            return 0

    @contextmanager
    def check_intact(self, path: str, version: int) -> Iterator[None]:
        """Run a read of a version; raise GraphCorrupt if only a file of it is missing."""
        try:
            yield
        except NotFound as error:
            if error.code != "storage_not_found" or not self.has(path, version):
                raise
            raise GraphCorrupt(f"a file of {path} is missing", **error.details) from error


def _new_session() -> Any:  # noqa: ANN401 - Lance does not declare its type
    return lance.Session(metadata_cache_size_bytes=METADATA_BYTES)  # type: ignore[attr-defined]
