"""Check whether a load that was validated on one snapshot can be rebased on a newer one.

Both the load and the commits of others are valid on the older snapshot. Together they can only be
invalid, or have another result, where they overlap: in an id, a unique tuple, or a source of edges
with a cardinality. Without an overlap, nothing has to be validated again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import AcceptedSchema, TypeKind
from omnigraph.changes.type_delta import TypeDelta, compare_type
from omnigraph.changes.version_history import VersionHistory
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.dataset_view import DatasetView
from omnigraph.pipeline.load.key_counts import ENDS, LoadTarget, endpoint_shape, unique_tuples
from omnigraph.pipeline.load.key_filter import KeyFilter, KeySource, tuple_texts
from omnigraph.write.change_set import RowSchema


def filter_topics(
    schema: AcceptedSchema, targets: Iterable[LoadTarget]
) -> dict[str, list[KeySource]]:
    """Return the keys of staged rows to collect: ids by type, and unique tuples."""
    found: dict[str, list[KeySource]] = {}
    for target in targets:
        key = target.shape.table_key
        if not target.staged.fresh:
            found.setdefault(key, []).append(KeySource(target.new, ids=("id",)))
        if target.shape.kind is TypeKind.EDGE:
            for end in ENDS:
                node = endpoint_shape(schema, target.shape, end).table_key
                found.setdefault(node, []).append(KeySource(target.new, ids=(end,)))
        for columns in unique_tuples(target):
            found[_tuple_topic(target, columns)] = [KeySource(target.new, tuple_=columns)]
    return found


def _tuple_topic(target: LoadTarget, columns: tuple[str, ...]) -> str:
    return f"{target.shape.table_key} {columns}"


class RebaseCheck:
    """Whether a load conflicts with what other writers changed.

    `replacing` are the types of which rows take the place of committed ones, would if they were not
    rejected, or were made of them.
    """

    def __init__(
        self, targets: Mapping[str, LoadTarget], key_filter: KeyFilter, replacing: Collection[str]
    ) -> None:
        self._targets = targets
        self._filter = key_filter
        self._replacing = replacing

    def conflicts(
        self, manifest: Manifest, old: Snapshot, new: Snapshot, types: Iterable[RowSchema]
    ) -> bool:
        """Return whether a change of these types affects the load."""
        steps = VersionHistory(manifest, (old, new))
        for shape in types:
            before, after = (DatasetView.of(manifest, s, shape.type) for s in (old, new))
            for delta in compare_type(before, after, steps):
                if self._leaves_sources(shape) and (len(delta.before) or len(delta.after)):
                    return True
                if any(
                    self._filter.may_contain(*keys)
                    for keys in self._touched(new.schema, shape, delta)
                ):
                    return True
        return False

    def _leaves_sources(self, shape: RowSchema) -> bool:
        """Return whether counted edges are removed from sources that the load does not name."""
        target = self._targets.get(shape.table_key)
        return target is not None and target.counts_edges and shape.table_key in self._replacing

    def _touched(
        self, schema: AcceptedSchema, shape: RowSchema, delta: TypeDelta
    ) -> Iterator[tuple[str, pa.Array]]:
        key = shape.table_key
        target = self._targets.get(key)
        before, after = delta.before, delta.after
        if key in self._replacing:
            yield key, _concatenate(before["id"], after["id"])
        else:
            # An entity that exists before and after does not change any check.
            yield key, _set_difference(before["id"], after["id"])
            yield key, _set_difference(after["id"], before["id"])
        if target is None:
            return
        for rows in (before, after):
            if rows.num_rows:
                for columns in unique_tuples(target):
                    yield _tuple_topic(target, columns), tuple_texts(rows, shape, columns)
                if target.counts_edges:
                    yield endpoint_shape(schema, shape, "src").table_key, rows["src"]


def _concatenate(*columns: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())


def _set_difference(column: pa.ChunkedArray, others: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.filter(pc.invert(pc.is_in(column, value_set=others)))
