"""Checksums of dataset files as commits recorded them, and their comparison with the files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from omnigraph.commit.history import dataset_paths
from omnigraph.commit.lineage import LineageState
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.manifest_rows import read_checksums, read_identity
from omnigraph.errors import NotFound
from omnigraph.storage.checksums import file_checksum

SMALL_BYTES = 1024 * 1024
"""Files up to this size are compared before Lance reads them, also by a plain verify."""


def lineage_states(manifest: Manifest) -> list[LineageState]:
    """Return the states of all lineages that a branch or tag needs, main first."""
    states = [manifest.main.state()]
    for lineage_id in sorted(manifest.named_lineages()):
        with suppress(NotFound):  # it was just deleted, or is reported by what needs it
            states.append(manifest.lineage(lineage_id).state())
    return states


class RecordedChecksums:
    """The recorded checksums of one graph, by the path of a dataset and the name of a file."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._compared: dict[str, str | None] = {}

    @cached_property
    def by_path(self) -> Mapping[str, Mapping[str, str]]:
        """All checksums that the history of the graph holds."""
        states = lineage_states(self._manifest)
        paths = dataset_paths(states)
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for state in states:
            for row in (held.row for held in state.rows("object_type = 'table_version'")):
                path = paths.get(read_identity(row))
                if path is not None:
                    found[path] |= read_checksums(row)
        return found

    def of(self, path: str) -> Mapping[str, str]:
        """Return the checksums of the files of one dataset."""
        return self.by_path.get(path, {})

    def compare(self, path: str, names: Iterable[str], *, small: bool = False) -> str | None:
        """Return what is wrong with the first damaged file; `small` leaves large ones out.

        Files without a checksum and files that are missing are not looked at.
        """
        for name in sorted(names):
            problem = self._compare(path, name, small=small)
            if problem is not None:
                return problem
        return None

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
        """How many files were compared."""
        return len(self._compared)
