"""This module checks that edges have both their nodes: new edges, and those whose nodes go away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import TypeKind
from omnigraph.catalog.model import EdgeType
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.checks.report import Reporter
from omnigraph.write.committed import Committed
from omnigraph.write.image import Image, changed_ids, removed_ids
from omnigraph.write.sets import without
from omnigraph.write.shape import Shape
from omnigraph.write.violations import Rule

ENDPOINTS = ("src", "dst")


def check_endpoints(changes: ChangeSet, images: Mapping[str, Image], committed: Committed) -> None:
    """Report edges of the change that lack a node, and committed ones that lose one."""
    check = _Check(changes, images, committed)
    for image in images.values():
        if image.shape.kind is TypeKind.EDGE:
            for end in ENDPOINTS:
                check.new_edges(image, end)
    for edge in check.edges_that_may_lose():
        for end in ENDPOINTS:
            check.old_edges(edge, end)


@dataclass(frozen=True, slots=True)
class _Check:
    changes: ChangeSet
    images: Mapping[str, Image]
    committed: Committed

    def new_edges(self, image: Image, end: str) -> None:
        node = self._node(image.shape, end)
        column = image.rows[end]
        elsewhere = without(column, changed_ids(self.images, node.table_key))
        if len(elsewhere):
            missing = without(elsewhere, self._staying(node, elsewhere))
            report = Reporter(self.changes, image.shape, image.rows)
            tell_missing(report, pc.is_in(column, value_set=missing), end, node)

    def old_edges(self, edge: Shape, end: str) -> None:
        node = self._node(edge, end)
        gone = removed_ids(self.images, node.table_key)
        if not len(gone) or self._is_replaced(edge):
            return
        left = self.committed.by(edge, end, gone, ["id", "src", "dst"])
        ids = [finder(self.images, edge.table_key) for finder in (changed_ids, removed_ids)]
        touched = pc.is_in(left["id"], value_set=pa.chunked_array(ids).combine_chunks())
        left = left.filter(pc.invert(touched)).sort_by("id")
        everywhere = pa.array([True] * left.num_rows, pa.bool_())
        tell_missing(Reporter(self.changes, edge, left), everywhere, end, node)

    def edges_that_may_lose(self) -> list[Shape]:
        """Return the edge types some of whose nodes go away, by name."""
        nodes = (i for i in self.images.values() if i.shape.kind is TypeKind.NODE)
        losing = [image.shape.name for image in nodes if len(image.removed)]
        catalog = self.committed.snapshot.catalog
        names = {edge.name for name in losing for edge in catalog.incident_edges(name)}
        return [self.committed.shape(TypeKind.EDGE, name) for name in sorted(names)]

    def _staying(self, node: Shape, wanted: pa.Array) -> pa.Array:
        """Return those of the ids that are committed and stay."""
        if self._is_replaced(node):
            return pa.array([], pa.string())
        there = self.committed.present(node, wanted).combine_chunks()
        gone = pc.is_in(there, value_set=removed_ids(self.images, node.table_key))
        return there.filter(pc.invert(gone))

    def _is_replaced(self, shape: Shape) -> bool:
        image = self.images.get(shape.table_key)
        return image is not None and image.change.replace

    def _node(self, edge: Shape, end: str) -> Shape:
        definition = edge.definition
        assert isinstance(definition, EdgeType), "only edges have ends"
        name = definition.src if end == "src" else definition.dst
        return self.committed.shape(TypeKind.NODE, name)


def tell_missing(report: Reporter, bad: pa.Array, end: str, node: Shape) -> None:
    """Say that edges have an end that is no node."""
    describe = f"{end} '{{}}' not found in {node.name}"
    report.every(bad, Rule.ENDPOINT, end, describe.format)
