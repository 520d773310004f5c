"""This module sums changes up, and writes the difference of two states for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from omnigraph.catalog import TypeKind
from omnigraph.changes.model import Change, Op
from omnigraph.commit.model import MAIN, Snapshot


@dataclass(slots=True)
class Tally:
    """How many entities of each type were inserted, updated and deleted."""

    types: dict[tuple[TypeKind, str], Counter[Op]] = field(default_factory=dict)

    def counting(self, changes: Iterable[Change]) -> Iterator[Change]:
        """Yield changes and count them."""
        for change in changes:
            self.types.setdefault((change.kind, change.type), Counter())[change.op] += 1
            yield change

    def total(self, op: Op) -> int:
        """Return how many changes of one sort there were."""
        return sum(counts[op] for counts in self.types.values())

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "inserts": self.total(Op.INSERT),
            "updates": self.total(Op.UPDATE),
            "deletes": self.total(Op.DELETE),
            "types_affected": sorted({name for _, name in self.types}),
        }


def compared(old: Snapshot, new: Snapshot) -> dict[str, Any]:
    """Return the wire form of what was compared."""
    return {
        "from_graph_commit_id": old.commit_id,
        "to_graph_commit_id": new.commit_id,
        "from_graph_manifest_version": old.manifest_version,
        "to_graph_manifest_version": new.manifest_version,
        "graph_branch": None if new.branch == MAIN else new.branch,
    }


def difference(change: Change, old: Snapshot, new: Snapshot) -> dict[str, Any]:
    """Return the wire form of a change between two states."""
    key = f"{change.kind}:{change.type}"
    version = (new if key in new.entries() else old).entry(key).version
    image = change.after or change.before
    assert image is not None, "a change has at least one image"
    images = {"before": change.before, "after": change.after}
    shown = {name: found.to_json() for name, found in images.items() if found is not None}
    ends = {} if image.endpoints is None else {"endpoints": _ends(image.endpoints)}
    return {
        "kind": str(change.kind),
        "type_name": change.type,
        "id": change.id,
        "op": str(change.op),
        "published_dataset_version": version,
        **ends,
        **shown,
    }


def _ends(ends: tuple[str, str]) -> dict[str, str]:
    return dict(zip(("src", "dst"), ends, strict=True))
