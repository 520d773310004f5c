"""Write the edges of a type again, with the IDs that a new key makes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from omnigraph.catalog import AcceptedType
from omnigraph.dataset_view import StagedView, blob_properties
from omnigraph.storage.row_lookup import ROW_ADDRESS
from omnigraph.storage.staged_writes import ExternalBlobMode, overwrite
from omnigraph.write.change_set import RowSchema
from omnigraph.write.ids import ids_from_keys

EDGE_BATCH = 16_384
"""Edges that are read together."""
BLOB_EDGE_BATCH = 64
"""Edges that are read together when they have blobs."""


def rewrite_edges(type_: AcceptedType, old: Any, empty: Any) -> Any:  # noqa: ANN401 - Lance handles
    """Return a staged version of an empty dataset that has the edges of another with new IDs.

    `old` has a column for every property of the type. Blobs that are given by their URI stay so.
    """
    source, target = StagedView(type_, old), StagedView(type_, empty)
    batches = _stored_batches(source, target)
    first = next(batches, None)
    if first is None:
        return empty
    reader = pa.RecordBatchReader.from_batches(first.schema, _chain(first, batches))
    blobs = ExternalBlobMode.REFERRED_TO if blob_properties(type_) else None
    staged = overwrite(empty, reader, blobs)
    return StagedView(type_, staged).record_embedding_models(source.embedding_models())


def _chain(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
    yield from first.to_batches()
    for rows in rest:
        yield from rows.to_batches()


def _stored_batches(source: StagedView, target: StagedView) -> Iterator[pa.Table]:
    shape = RowSchema(source.type, source.type.key_order)
    addresses = source.all_addresses()[ROW_ADDRESS].to_numpy()
    step = BLOB_EDGE_BATCH if blob_properties(source.type) else EDGE_BATCH
    for start in range(0, len(addresses), step):
        rows = source.entities_at(addresses[start : start + step])
        if shape.key:
            ids = ids_from_keys([rows[name] for name in shape.key], shape.key_types)
            rows = rows.set_column(rows.column_names.index("id"), "id", pa.chunked_array([ids]))
        yield target.to_stored(rows)
