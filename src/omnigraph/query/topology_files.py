"""Adjacency arrays in memory-mapped files, which processes share and any may delete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from omnigraph.commit.model import DatasetEntry
from omnigraph.query.adjacency import CsrAdjacency
from omnigraph.query.array_files import UNREADABLE, ArrayFiles
from omnigraph.query.column_cache import TypeTable
from omnigraph.storage import Location

TOPOLOGY_FOLDER = "_topology"
KEPT_VERSIONS = 4
"""Versions of one edge type whose arrays are kept."""
_ARRAY_NAMES = ("starts", "nodes", "edges")


@dataclass(frozen=True, slots=True)
class StoredTopology:
    """Arrays of all edges of a type, and the versions they were made from."""

    edge: DatasetEntry
    src: DatasetEntry
    dst: DatasetEntry
    out: CsrAdjacency
    into: CsrAdjacency

    @property
    def nbytes(self) -> int:
        """How much memory the arrays take; mapped files take none of ours."""
        return self.out.nbytes + self.into.nbytes

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
    """The files of one graph."""

    def __init__(self, location: Location, *, may_write: bool) -> None:
        self._files = ArrayFiles(location, TOPOLOGY_FOLDER, KEPT_VERSIONS, may_write=may_write)

    def load(self, ends: tuple[TypeTable, TypeTable, TypeTable]) -> StoredTopology | None:
        """Return the arrays of exactly these versions, if they are there and whole."""
        entries = tuple(table.entry for table in ends)
        return self._read(self._place(entries))

    def others(self, ends: tuple[TypeTable, TypeTable, TypeTable]) -> Iterator[StoredTopology]:
        """Yield arrays of other versions of the same datasets, newest first."""
        keys = [table.entry.key for table in ends]
        for path in self._files.newest_first(self._files.home(ends[0].entry)):
            topology = self._read(path)
            if (
                topology is not None
                and [topology.edge.key, topology.src.key, topology.dst.key] == keys
            ):
                yield topology

    def save(self, topology: StoredTopology) -> bool:
        """Write arrays to files; return whether that was done."""
        entries = {"edge": topology.edge, "src": topology.src, "dst": topology.dst}
        arrays = {
            f"{end}-{part}": getattr(adjacency, part)
            for end, adjacency in (("out", topology.out), ("in", topology.into))
            for part in _ARRAY_NAMES
        }
        facts = {name: asdict(entry) for name, entry in entries.items()}
        place = self._place(tuple(entries.values()))
        return self._files.save(place, arrays, {**facts, "simple": topology.out.is_simple})

    def damaged(self) -> Iterator[str]:
        """Yield the folders in which a file does not match its checksum, or that has none."""
        return self._files.damaged()

    def _place(self, entries: tuple[DatasetEntry, ...]) -> Path:
        key = "|".join(
            f"{e.type_id:x}-{e.incarnation:x}@{e.physical:x}"
            + (f"-{e.excluded:x}" * (e.excluded > 0))
            for e in entries
        )
        return self._files.place(self._files.home(entries[0]), key)

    def _read(self, folder: Path) -> StoredTopology | None:
        with suppress(*UNREADABLE):
            facts = self._files.facts(folder)
            edge, src, dst = (DatasetEntry(**facts[name]) for name in ("edge", "src", "dst"))
            out = self._adjacency(folder, "out", dst.rows, is_simple=facts["simple"])
            into = self._adjacency(folder, "in", src.rows, is_simple=facts["simple"])
            arrays = (out.nodes, out.edges, into.nodes, into.edges)
            fits = out.count == src.rows and into.count == dst.rows
            if fits and all(len(array) == edge.rows for array in arrays):
                return StoredTopology(edge, src, dst, out, into)
        return None

    def _adjacency(self, folder: Path, end: str, width: int, *, is_simple: bool) -> CsrAdjacency:
        parts = {part: self._files.mapped(folder, f"{end}-{part}") for part in _ARRAY_NAMES}
        return CsrAdjacency(**parts, width=width, is_simple=is_simple)
