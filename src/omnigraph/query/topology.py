"""This module keeps the shape of the graph as arrays, one pair of adjacencies per edge type.

They are derived: keyed by the exact versions they were made from, shared by branches and processes,
and made again whenever they are not there. A file that is gone or damaged costs time, nothing else.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow.compute as pc

from omnigraph.errors import GraphCorrupt
from omnigraph.plan.hops import Direction
from omnigraph.query.adjacency import Adjacency
from omnigraph.query.store import Table
from omnigraph.storage import Location
from omnigraph.storage.columns import Positions

FOLDER = "_topology"
WORTH_KEEPING = 100_000
"""Edges from which on arrays are kept in files."""
MAX_LOADED = 64
_PARTS = ("starts", "nodes", "edges")


@dataclass(frozen=True, slots=True)
class Topology:
    """All edges of one type, from both ends."""

    out: Adjacency
    into: Adjacency

    def along(self, direction: Direction) -> tuple[Adjacency, ...]:
        """Return the adjacencies a direction follows: one, or both."""
        match direction:
            case Direction.OUT:
                return (self.out,)
            case Direction.IN:
                return (self.into,)
            case Direction.BOTH:
                return (self.out, self.into)


class Topologies:
    """The topologies of one graph that are in memory or in files."""

    def __init__(self, location: Location, *, may_write: bool) -> None:
        self._folder = _folder(location)
        self._may_write = may_write or not location.is_local
        self._loaded: dict[str, Topology] = {}
        self._lock = Lock()

    def loaded(self, edge: Table, src: Table, dst: Table) -> bool:
        """Tell whether a topology is there without being made."""
        name = _name(edge, src, dst)
        return name in self._loaded or (self._folder / name).is_dir()

    def get(self, edge: Table, src: Table, dst: Table) -> Topology:
        """Return the topology of an edge type, made when it is not there."""
        name = _name(edge, src, dst)
        with self._lock:
            found = self._loaded.get(name)
        if found is None:
            found = self._load(name, src.rows, dst.rows) or self._build(name, edge, src, dst)
            with self._lock:
                while len(self._loaded) >= MAX_LOADED:
                    del self._loaded[next(iter(self._loaded))]
                self._loaded[name] = found
        return found

    def _build(self, name: str, edge: Table, src: Table, dst: Table) -> Topology:
        here, there = _places(edge, "src", src), _places(edge, "dst", dst)
        out = Adjacency.build(here, there, (src.rows, dst.rows))
        into = Adjacency.build(there, here, (dst.rows, src.rows))
        made = Topology(out, into)
        if self._may_write and edge.rows >= WORTH_KEEPING:
            with suppress(OSError):
                self._save(name, made)
        return made

    # --- files ---------------------------------------------------------------------------------

    def _load(self, name: str, sources: int, targets: int) -> Topology | None:
        folder = self._folder / name
        try:
            out = _adjacency(folder, "out", targets)
            into = _adjacency(folder, "in", sources)
        except (OSError, ValueError):
            return None
        fits = out.count == sources and into.count == targets
        return Topology(out, into) if fits else None

    def _save(self, name: str, made: Topology) -> None:
        """Write the arrays where nobody sees them, then move them in place at once."""
        self._folder.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".tmp-", dir=self._folder))
        try:
            for end, adjacency in (("out", made.out), ("in", made.into)):
                for part in _PARTS:
                    np.save(scratch / f"{end}-{part}.npy", getattr(adjacency, part))
            os.rename(scratch, self._folder / name)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _adjacency(folder: Path, end: str, width: int) -> Adjacency:
    parts = {part: np.load(folder / f"{end}-{part}.npy", mmap_mode="r") for part in _PARTS}
    return Adjacency(**parts, width=width)


def _places(edge: Table, end: str, nodes: Table) -> Positions:
    """Return the position of the node at one end of every edge."""
    places = pc.index_in(edge.column(end), value_set=nodes.column("id"))
    if places.null_count:
        raise GraphCorrupt(f"an edge of {edge.type.name} lacks its {end} in {nodes.type.name}")
    return np.asarray(places, np.int64)


def _name(edge: Table, src: Table, dst: Table) -> str:
    facts = [
        f"{table.entry.type_id:x}-{table.entry.incarnation:x}@{table.entry.physical:x}"
        for table in (edge, src, dst)
    ]
    return hashlib.sha256("|".join(facts).encode()).hexdigest()[:32]


def _folder(location: Location) -> Path:
    """Return where files are: beside the data, or for a bucket in the cache of the user."""
    if location.is_local:
        return Path(location.uri) / FOLDER
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "omnigraph" / hashlib.sha256(location.uri.encode()).hexdigest()[:16]
