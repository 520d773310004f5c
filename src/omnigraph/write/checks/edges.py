"""Check that edges have both endpoints, and the number of edges per node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import TypeKind
from omnigraph.catalog.model import Cardinality, EdgeType
from omnigraph.write.change_set import ChangeSet, RowSchema
from omnigraph.write.checks.reporter import ViolationReporter
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.ids import ids_except
from omnigraph.write.resolved_change import ResolvedChange, changed_ids, removed_ids
from omnigraph.write.violations import InputLocation, Violation, ViolationRule

ENDPOINTS = ("src", "dst")


def check_endpoints(
    changes: ChangeSet, images: Mapping[str, ResolvedChange], committed: CommittedState
) -> None:
    """Report edges of the change that lack a node, and committed ones that lose one."""
    check = _EndpointCheck(changes, images, committed)
    for image in images.values():
        if image.shape.kind is TypeKind.EDGE:
            for end in ENDPOINTS:
                check.new_edges(image, end)
    for edge in check.edges_that_may_lose():
        for end in ENDPOINTS:
            check.old_edges(edge, end)


@dataclass(frozen=True, slots=True)
class _EndpointCheck:
    changes: ChangeSet
    images: Mapping[str, ResolvedChange]
    committed: CommittedState

    def new_edges(self, image: ResolvedChange, end: str) -> None:
        node = self._node(image.shape, end)
        column = image.rows[end]
        elsewhere = ids_except(column, changed_ids(self.images, node.table_key))
        if len(elsewhere):
            missing = ids_except(elsewhere, self._staying(node, elsewhere))
            report = ViolationReporter(self.changes, image.shape, image.rows)
            report_missing_endpoints(report, pc.is_in(column, value_set=missing), end, node)

    def old_edges(self, edge: RowSchema, end: str) -> None:
        node = self._node(edge, end)
        gone = removed_ids(self.images, node.table_key)
        if not len(gone) or self._is_replaced(edge):
            return
        left = self.committed.by_key(edge).lookup(end, gone, ["id", "src", "dst"])
        ids = [finder(self.images, edge.table_key) for finder in (changed_ids, removed_ids)]
        touched = pc.is_in(left["id"], value_set=pa.chunked_array(ids).combine_chunks())
        left = left.filter(pc.invert(touched)).sort_by("id")
        everywhere = pa.array([True] * left.num_rows, pa.bool_())
        report_missing_endpoints(ViolationReporter(self.changes, edge, left), everywhere, end, node)

    def edges_that_may_lose(self) -> list[RowSchema]:
        """Return the edge types some of whose nodes go away, by name."""
        nodes = (i for i in self.images.values() if i.shape.kind is TypeKind.NODE)
        losing = [image.shape.name for image in nodes if len(image.removed)]
        catalog = self.committed.snapshot.catalog
        names = {edge.name for name in losing for edge in catalog.incident_edges(name)}
        return [self.committed.row_schema(TypeKind.EDGE, name) for name in sorted(names)]

    def _staying(self, node: RowSchema, ids: pa.Array) -> pa.Array:
        """Return those of the ids that are committed and stay."""
        if self._is_replaced(node):
            return pa.array([], pa.string())
        there = self.committed.by_key(node).addresses_of(ids)["id"].combine_chunks()
        gone = pc.is_in(there, value_set=removed_ids(self.images, node.table_key))
        return there.filter(pc.invert(gone))

    def _is_replaced(self, shape: RowSchema) -> bool:
        image = self.images.get(shape.table_key)
        return image is not None and image.change.replace

    def _node(self, edge: RowSchema, end: str) -> RowSchema:
        definition = edge.definition
        assert isinstance(definition, EdgeType), "only edges have ends"
        name = definition.src if end == "src" else definition.dst
        return self.committed.row_schema(TypeKind.NODE, name)


def report_missing_endpoints(
    report: ViolationReporter, bad: pa.Array, end: str, node: RowSchema
) -> None:
    """Report edges whose endpoint does not exist."""
    describe = f"{end} '{{}}' not found in {node.name}"
    report.report_mask(bad, ViolationRule.ENDPOINT, end, describe.format)


# ----------------------------------------------------------------------
# Cardinality: the number of edges of a type that leave a node, for nodes that a change touches.


def check_cardinality(
    changes: ChangeSet,
    image: ResolvedChange,
    images: Mapping[str, ResolvedChange],
    committed: CommittedState,
) -> None:
    """Count the edges of every source the change touches, also of those it takes edges from."""
    definition = image.shape.definition
    if not isinstance(definition, EdgeType) or definition.cardinality == Cardinality():
        return
    source = committed.row_schema(TypeKind.NODE, definition.src)
    wrong = _sources_out_of_range(_edge_counts(image, committed), definition.cardinality)
    gone = pc.is_in(wrong["src"], value_set=removed_ids(images, source.table_key))
    wrong = wrong.filter(pc.invert(gone)).sort_by("src")
    report_edge_counts(
        changes, definition, wrong, lambda id_: _last_edge_location(changes, image, id_)
    )


def check_sources(changes: ChangeSet, edge: EdgeType, sources: pa.ChunkedArray) -> None:
    """Count the edges of every source; `sources` are those of all edges of a type."""
    counted = sources.value_counts()
    counts = pa.table({"src": counted.field("values"), "count": counted.field("counts")})
    wrong = _sources_out_of_range(counts, edge.cardinality).sort_by("src")
    report_edge_counts(changes, edge, wrong, lambda _: None)


def report_edge_counts(
    changes: ChangeSet,
    edge: EdgeType,
    wrong: pa.Table,
    place: Callable[[str], InputLocation | None],
) -> None:
    """Say of every source with its count that it has too few or too many edges."""
    limits = edge.cardinality
    listed = changes.findings.reserve(ViolationRule.CARDINALITY, wrong.num_rows)
    for row in wrong.slice(0, listed).to_pylist():
        id_, count = row["src"], row["count"]
        text = f"@card violation on edge {edge.name}: source '{id_}' has {count} edges"
        changes.findings.add(
            Violation(
                rule=ViolationRule.CARDINALITY,
                message=f"{text} ({_cardinality_message(count, limits)})",
                kind=str(TypeKind.EDGE),
                type=edge.name,
                id=id_,
                value=count,
                source=place(id_),
            )
        )


def _edge_counts(image: ResolvedChange, committed: CommittedState) -> pa.Table:
    """Return how many edges each touched source has after the change."""
    ours, before = image.rows["src"], image.replaced["src"]
    touched = pa.chunked_array([*ours.chunks, *before.chunks], pa.string()).unique()
    theirs = pa.chunked_array([], pa.string())
    if not image.change.replace:
        rows = committed.by_key(image.shape).lookup("src", touched, ["id", "src"])
        given_up = pc.is_in(rows["id"], value_set=image.replaced["id"].combine_chunks())
        theirs = rows["src"].filter(pc.invert(given_up))
    counted = pa.chunked_array([*ours.chunks, *theirs.chunks], pa.string()).value_counts()
    none = ids_except(touched, counted.field("values"))
    zeros = pa.array(np.zeros(len(none), np.int64))
    return pa.table(
        {
            "src": pa.chunked_array([counted.field("values"), none]),
            "count": pa.chunked_array([counted.field("counts"), zeros]),
        }
    )


def _sources_out_of_range(counts: pa.Table, limits: Cardinality) -> pa.Table:
    """Return the sources with too few or too many edges."""
    bad = pc.less(counts["count"], limits.minimum)
    if limits.maximum is not None:
        bad = pc.or_(bad, pc.greater(counts["count"], limits.maximum))
    return counts.filter(bad)


def _cardinality_message(count: int, limits: Cardinality) -> str:
    too_few = count < limits.minimum
    return f"min {limits.minimum}" if too_few else f"max {limits.maximum}"


def _last_edge_location(
    changes: ChangeSet, image: ResolvedChange, source: str
) -> InputLocation | None:
    """Return where the last edge of a source stood in the input."""
    places = pc.indices_nonzero(pc.equal(image.rows["src"], source))
    return changes.place(image.rows, places[-1].as_py()) if len(places) else None
