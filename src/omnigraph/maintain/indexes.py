"""Required indexes of a graph and their coverage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog import AcceptedType, Metric, TypeKind, vector_metric
from omnigraph.catalog.model import Index, Key, Property, Unique, type_constraints
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.dataset_view import DatasetView
from omnigraph.notebook.display import ReportDisplay
from omnigraph.storage.index import VECTOR_ROWS, IndexKind
from omnigraph.types import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus(ReportDisplay):
    """A required index and the number of rows of its type that it covers."""

    type_key: str
    column: str
    kind: IndexKind
    rows: int
    covered: int
    segments: int

    @property
    def is_complete(self) -> bool:
        """Whether the index covers every row."""
        return self.covered >= self.rows

    def to_json(self) -> dict[str, Any]:
        """Return the facts as plain JSON values."""
        return {
            "type_key": self.type_key,
            "property": self.column,
            "kind": str(self.kind),
            "rows": self.rows,
            "covered": self.covered,
            "segments": self.segments,
            "complete": self.is_complete,
        }


def required_indexes(type_: AcceptedType, rows: int) -> Iterator[tuple[str, IndexKind]]:
    """Yield the columns of a type that should be indexed, with the kind of index."""
    yield "id", IndexKind.BTREE
    if type_.kind is TypeKind.EDGE:
        yield "src", IndexKind.BTREE
        yield "dst", IndexKind.BTREE
    properties = type_.definition.properties
    for name in sorted(_constraint_columns(type_) & properties.keys()):
        yield from ((name, kind) for kind in _index_kinds(properties[name], rows))


def _constraint_columns(type_: AcceptedType) -> set[str]:
    """Return the columns of constraints; these may include the ID and endpoints."""
    names: set[str] = set()
    for constraint in type_constraints(type_.definition):
        match constraint:
            case Index(columns=columns) | Unique(columns=columns):
                names |= set(columns)
            case Key(columns=columns) if len(columns) > 1:
                names |= set(columns)
            case _:
                continue
    return names


def _index_kinds(property_: Property, rows: int) -> Iterator[IndexKind]:
    type_ = property_.type
    if type_.scalar is Scalar.VECTOR:
        if rows >= VECTOR_ROWS:
            yield IndexKind.VECTOR
        return
    if type_.is_list or not type_.orderable:
        return
    yield IndexKind.BTREE


def index_status(manifest: Manifest, snapshot: Snapshot) -> list[IndexStatus]:
    """Return the status of every required index, by type and property."""
    statuses = []
    for table_key, entry in snapshot.entries().items():
        type_ = snapshot.type_of(table_key)
        view = DatasetView(manifest, type_, entry)
        for column, index in required_indexes(type_, entry.rows):
            metric = Metric.COSINE
            if index is IndexKind.VECTOR:
                metric = vector_metric(type_.definition, column)
            covered, segments = view.index_coverage(column, index, metric)
            statuses.append(
                IndexStatus(
                    type_key=table_key,
                    column=column,
                    kind=index,
                    rows=entry.rows,
                    covered=covered,
                    segments=segments,
                )
            )
    return statuses
