"""Compare dataset files with the checksums that commits recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from omnigraph.catalog import IncarnationId, TypeId
from omnigraph.commit.history import dataset_paths
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import read_checksums, read_identity
from omnigraph.errors import GraphCorrupt, NotFound
from omnigraph.storage.checksums import file_checksum

ChecksumsByPath: TypeAlias = Mapping[str, Mapping[str, str]]
"""Checksums by the path of a dataset and the name of a file below it."""
SMALL_BYTES = 1024 * 1024
"""Files up to this size are compared before Lance reads them, even by a plain verify."""


def lineage_states(manifest: Manifest) -> list[LineageState]:
    """Return the readable states of all lineages that a branch or tag needs, main first.

    Those that open proposals need are among them unless the proposals cannot be read.
    """
    states, named = [manifest.main.state()], manifest.ref_lineages()
    with suppress(GraphCorrupt):
        named |= manifest.named_lineages()
    for lineage_id in sorted(named):
        # It was just deleted, or is damaged, which is reported by what needs it.
        with suppress(NotFound, GraphCorrupt):
            states.append(manifest.lineage(lineage_id).state())
    return states


def checksums_by_path(
    rows: Iterable[Mapping[str, Any]], paths: Mapping[tuple[TypeId, IncarnationId], str]
) -> dict[str, dict[str, str]]:
    """Return the checksums in rows of dataset versions, by the path of the dataset and by file."""
    checksums: dict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        path = paths.get(read_identity(row))
        if path is not None:
            checksums[path] |= read_checksums(row)
    return checksums


class RecordedChecksums:
    """The recorded checksums of one graph, by the path of a dataset and the name of a file."""

    def __init__(self, manifest: Manifest, by_path: ChecksumsByPath | None = None) -> None:
        self._manifest = manifest
        self._given = by_path
        self._compared: dict[str, str | None] = {}

    @cached_property
    def by_path(self) -> ChecksumsByPath:
        """The given checksums, by default all that the history of the graph holds."""
        if self._given is not None:
            return self._given
        paths: dict[tuple[TypeId, IncarnationId], str] = {}
        rows: list[dict[str, Any]] = []
        for state in lineage_states(self._manifest):
            with suppress(GraphCorrupt):  # what needs the lineage reports it
                paths |= dataset_paths([state])
                rows += [row.row for row in state.rows("object_type = 'table_version'")]
        return checksums_by_path(rows, paths)

    def of(self, path: str) -> Mapping[str, str]:
        """Return the checksums of the files of one dataset."""
        return self.by_path.get(path, {})

    def compare(self, path: str, names: Iterable[str], *, small: bool = False) -> str | None:
        """Return the problem of the first damaged file; `small` skips large files.

        Files without a checksum and missing files are skipped.
        """
        for name in sorted(names):
            problem = self._compare(path, name, small=small)
            if problem is not None:
                return problem
        return None

    def damaged(self, path: str, names: Iterable[str]) -> dict[str, str]:
        """Return the problems of all damaged files, by name."""
        problems = {name: self._compare(path, name, small=False) for name in sorted(names)}
        return {name: problem for name, problem in problems.items() if problem is not None}

    def _compare(self, path: str, name: str, *, small: bool) -> str | None:
        key, stated = f"{path}/{name}", self.of(path).get(name)
        if stated is None or not self._manifest.location.is_local:
            return None
        if key not in self._compared:
            file = Path(self._manifest.location.child(key))
            try:
                size = file.stat().st_size
                if small and size > SMALL_BYTES:
                    return None
                same = size == int(stated.partition("-")[0], 16) and file_checksum(file) == stated
            except FileNotFoundError:
                return None
            except OSError as error:
                self._compared[key] = f"is damaged: {name} cannot be read ({error.strerror})"
            else:
                text = f"is damaged: {name} does not match its checksum"
                self._compared[key] = None if same else text
        return self._compared[key]

    @property
    def compared(self) -> int:
        """The number of compared files."""
        return len(self._compared)
