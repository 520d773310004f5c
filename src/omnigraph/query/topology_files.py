"""Adjacency arrays in memory-mapped files, which processes share and any may delete."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from omnigraph.commit.model import DatasetEntry
from omnigraph.query.adjacency import CsrAdjacency
from omnigraph.query.column_cache import TypeTable
from omnigraph.storage import Location
from omnigraph.storage.checksums import file_checksum
from omnigraph.storage.file_sync import FileSync

TOPOLOGY_FOLDER = "_topology"
KEPT_VERSIONS = 4
"""Versions of one edge type whose arrays are kept."""
_SCRATCH_MAX_AGE_SECONDS = 3600.0
"""Seconds after which a scratch folder is no longer written to."""
_ARRAY_NAMES = ("starts", "nodes", "edges")
_METADATA_FILE = "facts.json"


@dataclass(frozen=True, slots=True)
class StoredTopology:
    """Arrays of all edges of a type, and the versions they were made from."""

    edge: DatasetEntry
    src: DatasetEntry
    dst: DatasetEntry
    out: CsrAdjacency
    into: CsrAdjacency

    @classmethod
    def of(
        cls, ends: tuple[TypeTable, TypeTable, TypeTable], out: CsrAdjacency, into: CsrAdjacency
    ) -> StoredTopology:
        """Return the arrays of some tables; both know by now whether edges are parallel."""
        edge, src, dst = (table.entry for table in ends)
        is_simple = out.simple is out
        return cls(
            edge, src, dst, replace(out, is_simple=is_simple), replace(into, is_simple=is_simple)
        )


class TopologyFiles:
    """The files of one graph: beside the data, or for a bucket in the cache of the user."""

    def __init__(self, location: Location, *, may_write: bool) -> None:
        self._folder = _topology_folder(location)
        self._may_write = may_write or not location.is_local
        # Arrays are mapped without comparing their checksums.
        self._files = FileSync(Location(str(self._folder), durability=location.durability))

    def load(self, ends: tuple[TypeTable, TypeTable, TypeTable]) -> StoredTopology | None:
        """Return the arrays of exactly these versions, if they are there and whole."""
        entries = tuple(table.entry for table in ends)
        return self._read(self._place(entries))

    def others(self, ends: tuple[TypeTable, TypeTable, TypeTable]) -> Iterator[StoredTopology]:
        """Yield arrays of other versions of the same datasets, newest first."""
        keys = [table.entry.key for table in ends]
        for path in self._versions(ends[0].entry):
            topology = self._read(path)
            if (
                topology is not None
                and [topology.edge.key, topology.src.key, topology.dst.key] == keys
            ):
                yield topology

    def save(self, topology: StoredTopology) -> bool:
        """Write arrays to a scratch folder, then move them into place atomically; drop old ones."""
        if not self._may_write:
            return False
        place = self._place((topology.edge, topology.src, topology.dst))
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            scratch = Path(tempfile.mkdtemp(prefix=".tmp-", dir=place.parent))
            try:
                _write_arrays(scratch, topology)
                self._files.sync_tree(scratch)
                os.rename(scratch, place)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            self._prune(topology.edge)
            return True
        return False

    def damaged(self) -> Iterator[str]:
        """Yield the folders in which a file does not match its checksum, or that has none."""
        for facts in sorted(self._folder.glob(f"*/*/{_METADATA_FILE}")):
            folder = facts.parent
            if not folder.name.startswith(".") and not _checksums_match(folder):
                yield f"{TOPOLOGY_FOLDER}/{folder.parent.name}/{folder.name}"

    def _prune(self, edge: DatasetEntry) -> None:
        for path in list(self._versions(edge))[KEPT_VERSIONS:]:
            shutil.rmtree(path, ignore_errors=True)
        for path in self._home(edge).glob(".tmp-*"):
            if time.time() - path.stat().st_mtime > _SCRATCH_MAX_AGE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)

    def _versions(self, edge: DatasetEntry) -> Iterator[Path]:
        """Yield the folders of an edge type, newest first."""
        with suppress(OSError):
            folders = [p for p in self._home(edge).iterdir() if not p.name.startswith(".")]
            yield from sorted(folders, key=lambda path: path.stat().st_mtime, reverse=True)

    def _home(self, edge: DatasetEntry) -> Path:
        return self._folder / f"{edge.type_id:016x}-{edge.incarnation:016x}"

    def _place(self, entries: tuple[DatasetEntry, ...]) -> Path:
        facts = "|".join(
            f"{e.type_id:x}-{e.incarnation:x}@{e.physical:x}"
            + (f"-{e.excluded:x}" * (e.excluded > 0))
            for e in entries
        )
        return self._home(entries[0]) / hashlib.sha256(facts.encode()).hexdigest()[:32]

    @staticmethod
    def _read(folder: Path) -> StoredTopology | None:
        try:
            facts = json.loads((folder / _METADATA_FILE).read_text())
            stated = facts.pop("sum", None)
            if stated is not None and stated != _metadata_checksum(facts):
                return None
            edge, src, dst = (DatasetEntry(**facts[name]) for name in ("edge", "src", "dst"))
            out = _map_adjacency(folder, "out", dst.rows, is_simple=facts["simple"])
            into = _map_adjacency(folder, "in", src.rows, is_simple=facts["simple"])
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError):
            return None
        arrays = (out.nodes, out.edges, into.nodes, into.edges)
        fits = out.count == src.rows and into.count == dst.rows
        fits = fits and all(len(array) == edge.rows for array in arrays)
        return StoredTopology(edge, src, dst, out, into) if fits else None


def _write_arrays(folder: Path, topology: StoredTopology) -> None:
    for end, adjacency in (("out", topology.out), ("in", topology.into)):
        for part in _ARRAY_NAMES:
            np.save(folder / f"{end}-{part}.npy", getattr(adjacency, part))
    entries = {"edge": topology.edge, "src": topology.src, "dst": topology.dst}
    facts: dict[str, Any] = {name: asdict(entry) for name, entry in entries.items()}
    facts["simple"] = topology.out.is_simple
    facts["sums"] = {file.name: file_checksum(file) for file in sorted(folder.glob("*.npy"))}
    (folder / _METADATA_FILE).write_text(json.dumps({**facts, "sum": _metadata_checksum(facts)}))


def _metadata_checksum(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _checksums_match(folder: Path) -> bool:
    """Return whether the arrays and the facts about them are those that were written."""
    try:
        facts = json.loads((folder / _METADATA_FILE).read_text())
        same = facts.pop("sum") == _metadata_checksum(facts)
        return same and all(file_checksum(folder / name) == s for name, s in facts["sums"].items())
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False


def _map_adjacency(folder: Path, end: str, width: int, *, is_simple: bool) -> CsrAdjacency:
    parts = {part: np.load(folder / f"{end}-{part}.npy", mmap_mode="r") for part in _ARRAY_NAMES}
    return CsrAdjacency(**parts, width=width, is_simple=is_simple)


def user_cache_folder(location: Location) -> Path:
    """Return where files derived from a graph in a bucket are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "omnigraph" / hashlib.sha256(location.uri.encode()).hexdigest()[:16]


def _topology_folder(location: Location) -> Path:
    local = Path(location.uri) / TOPOLOGY_FOLDER
    return local if location.is_local else user_cache_folder(location)
