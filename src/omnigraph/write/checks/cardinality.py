"""This module checks how many edges of a type leave a node, for the nodes a change touches."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import TypeKind
from omnigraph.catalog.model import Cardinality, EdgeType
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.committed import Committed
from omnigraph.write.image import Image, removed_ids
from omnigraph.write.sets import without
from omnigraph.write.violations import Place, Rule, Violation


def check_cardinality(
    changes: ChangeSet, image: Image, images: Mapping[str, Image], committed: Committed
) -> None:
    """Count the edges of every source the change touches, also of those it takes edges from."""
    definition = image.shape.definition
    if not isinstance(definition, EdgeType) or definition.cardinality == Cardinality():
        return
    source = committed.shape(TypeKind.NODE, definition.src)
    wrong = _outside(_counts(image, committed), definition.cardinality)
    gone = pc.is_in(wrong["src"], value_set=removed_ids(images, source.table_key))
    wrong = wrong.filter(pc.invert(gone)).sort_by("src")
    tell_counts(changes, definition, wrong, lambda id_: _last_place(changes, image, id_))


def check_sources(changes: ChangeSet, edge: EdgeType, sources: pa.ChunkedArray) -> None:
    """Count the edges of every source; `sources` are those of all edges of a type."""
    counted = sources.value_counts()
    counts = pa.table({"src": counted.field("values"), "count": counted.field("counts")})
    wrong = _outside(counts, edge.cardinality).sort_by("src")
    tell_counts(changes, edge, wrong, lambda _: None)


def tell_counts(
    changes: ChangeSet, edge: EdgeType, wrong: pa.Table, place: Callable[[str], Place | None]
) -> None:
    """Say of every source with its count that it has too few or too many edges."""
    limits = edge.cardinality
    listed = changes.findings.make_room(Rule.CARDINALITY, wrong.num_rows)
    for row in wrong.slice(0, listed).to_pylist():
        id_, count = row["src"], row["count"]
        text = f"@card violation on edge {edge.name}: source '{id_}' has {count} edges"
        changes.findings.add(
            Violation(
                rule=Rule.CARDINALITY,
                message=f"{text} ({_problem(count, limits)})",
                kind=str(TypeKind.EDGE),
                type=edge.name,
                id=id_,
                value=count,
                source=place(id_),
            )
        )


def _counts(image: Image, committed: Committed) -> pa.Table:
    """Return how many edges each touched source has after the change."""
    ours, before = image.rows["src"], image.replaced["src"]
    touched = pa.chunked_array([*ours.chunks, *before.chunks], pa.string()).unique()
    theirs = pa.chunked_array([], pa.string())
    if not image.change.replace:
        rows = committed.by(image.shape, "src", touched, ["id", "src"])
        given_up = pc.is_in(rows["id"], value_set=image.replaced["id"].combine_chunks())
        theirs = rows["src"].filter(pc.invert(given_up))
    counted = pa.chunked_array([*ours.chunks, *theirs.chunks], pa.string()).value_counts()
    none = without(touched, counted.field("values"))
    zeros = pa.array(np.zeros(len(none), np.int64))
    return pa.table(
        {
            "src": pa.chunked_array([counted.field("values"), none]),
            "count": pa.chunked_array([counted.field("counts"), zeros]),
        }
    )


def _outside(counts: pa.Table, limits: Cardinality) -> pa.Table:
    """Return the sources with too few or too many edges."""
    bad = pc.less(counts["count"], limits.minimum)
    if limits.maximum is not None:
        bad = pc.or_(bad, pc.greater(counts["count"], limits.maximum))
    return counts.filter(bad)


def _problem(count: int, limits: Cardinality) -> str:
    too_few = count < limits.minimum
    return f"min {limits.minimum}" if too_few else f"max {limits.maximum}"


def _last_place(changes: ChangeSet, image: Image, source: str) -> Place | None:
    """Return where the last edge of a source stood in the input."""
    places = pc.indices_nonzero(pc.equal(image.rows["src"], source))
    return changes.place(image.rows, places[-1].as_py()) if len(places) else None
