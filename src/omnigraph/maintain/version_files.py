"""Check the files of one dataset version against recorded checksums."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from omnigraph.commit.manifest import Manifest
from omnigraph.errors import OmniError
from omnigraph.maintain.recorded_checksums import RecordedChecksums
from omnigraph.maintain.verify import missing_files_problem, unreadable_problem
from omnigraph.storage.checksums import expand_file_names, version_files
from omnigraph.storage.layout import referenced_files, referenced_folders, version_file
from omnigraph.storage.scan import decode_rows

ProgressCallback = Callable[[str], None]
"""Called with the name of the file or dataset that is read next."""


class VersionFileChecker:
    """Compares the files of versions with their checksums, and decodes files that have none.

    Without `derived` index files are not checked: a version can be read without them.
    """

    def __init__(
        self,
        manifest: Manifest,
        checksums: RecordedChecksums,
        note: ProgressCallback,
        *,
        derived: bool = True,
    ) -> None:
        self._manifest = manifest
        self._checksums = checksums
        self._note = note
        self._derived = derived
        self._decoded: set[str] = set()
        self.damaged: dict[tuple[str, str], set[int]] = defaultdict(set)
        """The versions that need each damaged or missing file, by dataset path and name."""
        self.without_checksum: set[str] = set()

    def problem(self, path: str, physical: int, stored: set[str]) -> str | None:
        """Return the problem of a version, or None; `stored` are the files of its dataset."""
        name = version_file(physical)
        if name not in stored:
            self.damaged[path, name].add(physical)
            return f"is incomplete: {name} is missing"
        damaged = self._damaged(path, [name], physical)
        if damaged is not None:
            return damaged
        try:
            handle = self._manifest.datasets.open(path, physical)
            files, recorded = self._files(path, handle)
            for missing in recorded - stored:
                self.damaged[path, missing].add(physical)
            damaged = self._damaged(path, self._noting(path, files), physical)
            damaged = missing_files_problem(recorded - stored) or damaged
            return damaged or self._decode(path, handle, files)
        except OmniError as error:
            return unreadable_problem(error.message)

    def _damaged(self, path: str, names: Iterable[str], physical: int) -> str | None:
        """Compare files; return the problem of the first damaged one."""
        problems = self._checksums.damaged(path, names)
        for name in problems:
            self.damaged[path, name].add(physical)
        return next(iter(problems.values()), None)

    def _files(self, path: str, handle: Any) -> tuple[set[str], set[str]]:  # noqa: ANN401 - Lance
        """Return the existing files of a version, and its expected files."""
        if not self._derived:
            return self._files_of_rows(path, handle)
        folders = tuple(referenced_folders(handle))
        in_folders = {name for name in self._checksums.of(path) if name.startswith(folders)}
        if not self._manifest.location.is_local:
            files = referenced_files(handle)
            return files, files
        return set(version_files(handle)), referenced_files(handle) | in_folders

    def _files_of_rows(self, path: str, handle: Any) -> tuple[set[str], set[str]]:  # noqa: ANN401 - Lance
        files = referenced_files(handle)
        if not self._manifest.location.is_local:
            return files, files
        folders = tuple(f"{name.removesuffix('.lance')}/" for name in files if "data/" in name)
        blobs = {name for name in self._checksums.of(path) if name.startswith(folders)}
        root = Path(self._manifest.location.child(path))
        return set(expand_file_names(root, files)), files | blobs

    def _noting(self, path: str, files: Iterable[str]) -> Iterator[str]:
        for name in files:
            self._note(f"{path}/{name}")
            yield name

    def _decode(self, path: str, handle: Any, files: set[str]) -> str | None:  # noqa: ANN401 - Lance
        """Read every row of fragments with files that have no checksum, once."""
        checksums = self._checksums.of(path) if self._manifest.location.is_local else {}
        unsummed = {name for name in files if name not in checksums}
        self.without_checksum |= {f"{path}/{name}" for name in unsummed}
        for fragment in handle.get_fragments():
            data: list[Any] = fragment.data_files()
            names = {f"data/{file.path}" for file in data} & unsummed
            if names - self._decoded:
                for _ in decode_rows(handle, int(fragment.fragment_id)):
                    self._note(f"{path}/{min(names)}")
                self._decoded |= names
        return None
