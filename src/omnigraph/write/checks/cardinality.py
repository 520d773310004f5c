"""This module checks how many edges of a type leave a node, for the nodes a change touches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import TypeKind
from omnigraph.catalog.model import Cardinality, EdgeType
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.committed import Committed
from omnigraph.write.image import Image, removed_ids
from omnigraph.write.violations import Place, Rule, Violation


def check_cardinality(
    changes: ChangeSet, image: Image, images: Mapping[str, Image], committed: Committed
) -> None:
    """Count the edges of every source the change touches, also of those it takes edges from."""
    definition = image.shape.definition
    if not isinstance(definition, EdgeType) or definition.cardinality == Cardinality():
        return
    source = committed.shape(TypeKind.NODE, definition.src)
    counts = _counts(image, committed)
    gone = set(removed_ids(images, source.table_key).to_pylist())
    limits, name = definition.cardinality, definition.name
    for id_ in sorted(set(counts) - gone):
        problem = _problem(counts[id_], limits)
        if problem is not None:
            text = f"@card violation on edge {name}: source '{id_}' has {counts[id_]} edges"
            changes.findings.add(
                Violation(
                    rule=Rule.CARDINALITY,
                    message=f"{text} ({problem})",
                    kind=str(TypeKind.EDGE),
                    type=name,
                    id=id_,
                    value=counts[id_],
                    source=_last_place(changes, image, id_),
                )
            )


def _counts(image: Image, committed: Committed) -> dict[str, int]:
    """Return how many edges each touched source has after the change."""
    ours = _count(image.rows["src"])
    touched = pa.chunked_array(
        [*image.rows["src"].chunks, *image.replaced["src"].chunks], pa.string()
    ).unique()
    if image.change.replace:
        theirs: Counter[str] = Counter()
    else:
        rows = committed.by(image.shape, "src", touched, ["id", "src"])
        given_up = pc.is_in(rows["id"], value_set=image.replaced["id"].combine_chunks())
        theirs = _count(rows["src"].filter(pc.invert(given_up)))
    return {id_: ours[id_] + theirs[id_] for id_ in touched.to_pylist()}


def _count(sources: pa.ChunkedArray) -> Counter[str]:
    counted = sources.value_counts()
    values, counts = counted.field("values").to_pylist(), counted.field("counts").to_pylist()
    return Counter(dict(zip(values, counts, strict=True)))


def _problem(count: int, limits: Cardinality) -> str | None:
    if limits.maximum is not None and count > limits.maximum:
        return f"max {limits.maximum}"
    return f"min {limits.minimum}" if count < limits.minimum else None


def _last_place(changes: ChangeSet, image: Image, source: str) -> Place | None:
    """Return where the last edge of a source stood in the input."""
    places = pc.indices_nonzero(pc.equal(image.rows["src"], source))
    return changes.place(image.rows, places[-1].as_py()) if len(places) else None
