"""This module writes new versions of a dataset without publishing them.

Every function takes the pinned base of a write and returns a detached version on top of it: applied
exactly to that base, invisible to everybody until a manifest names it. Ids in one call are unique;
coalescing is the caller's job.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata, write_fragments
from lance.schema import LanceSchema

from omnigraph.errors import AlreadyExists
from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.layout import EMBEDDING_MODEL
from omnigraph.storage.row_lookup import sql_text
from omnigraph.storage.version_diff import RowDeletions


class ExternalBlobMode(StrEnum):
    """What becomes of blobs of which only a URI is given."""

    COPIED = "copied"
    REFERRED_TO = "referred to"


PROBE_CHUNK = 8_192
"""Ids looked up by one filter."""


def append(base: LanceDataset, rows: pa.Table | pa.RecordBatchReader) -> LanceDataset:
    """Stage rows whose ids are known to be new."""
    with translate_errors("staging an append"):
        transaction = write_fragments(rows, base, mode="append", return_transaction=True)
        return LanceDataset.commit(base, transaction, detached=True)


def insert(base: LanceDataset, rows: pa.Table) -> LanceDataset:
    """Stage rows whose ids must be new; raise AlreadyExists naming one that is not."""
    found = existing_ids(base, rows["id"].to_pylist())
    if found:
        taken = min(found)
        raise AlreadyExists(f"id '{taken}' exists already", code="key_conflict", entity_id=taken)
    return append(base, rows)


def upsert(base: LanceDataset, rows: pa.Table) -> LanceDataset:
    """Stage whole rows: those with a known id replace it, the others are new."""
    with translate_errors("staging an upsert"):
        removed, updated = _delete_ids(base, rows["id"].to_pylist())
        new = write_new_fragments(rows, base)
        return _stage_update(base, removed, updated, new)


def delete(base: LanceDataset, ids: Sequence[str]) -> LanceDataset:
    """Stage the removal of rows by id; ids that are not there are fine."""
    with translate_errors("staging a delete"):
        removed, updated = _delete_ids(base, ids)
        return _stage_update(base, removed, updated, [])


def overwrite(
    base: LanceDataset, rows: pa.Table | pa.RecordBatchReader, blobs: ExternalBlobMode | None = None
) -> LanceDataset:
    """Stage exactly these rows in place of all others."""
    with translate_errors("staging an overwrite"):
        transaction = write_fragments(
            rows, base, mode="overwrite", return_transaction=True, **_blob_options(blobs)
        )
        return LanceDataset.commit(base, transaction, detached=True)


def replace_rows(
    base: LanceDataset, addresses: Iterable[int], new: Sequence[FragmentMetadata]
) -> LanceDataset:
    """Stage the removal of rows by address together with new rows, written already.

    Fragments refer to no version, so those of an attempt that lost its race may be used again.
    """
    with translate_errors("staging rows"):
        removed, updated = delete_addresses(base, addresses)
        if removed or updated:
            return _stage_update(base, removed, updated, list(new))
        operation = LanceOperation.Append(list(new))
        return LanceDataset.commit(base, operation, read_version=base.version, detached=True)


def stage_fragments(
    base: LanceDataset, new: Sequence[FragmentMetadata], *, alone: bool
) -> LanceDataset:
    """Stage a version that shows rows written already, beside all others or alone."""
    with translate_errors("staging rows"):
        operation: LanceOperation.BaseOperation = LanceOperation.Append(list(new))
        if alone:
            operation = LanceOperation.Overwrite(base.lance_schema, list(new))
        return LanceDataset.commit(base, operation, read_version=base.version, detached=True)


def replace_fragments(
    base: LanceDataset, removed: Sequence[int], updated: Sequence[FragmentMetadata]
) -> LanceDataset:
    """Stage fragments that somebody took rows from, and leave out those that became empty."""
    with translate_errors("staging deletions"):
        return _stage_update(base, list(removed), list(updated), [])


def apply_deletions(base: LanceDataset, lost: RowDeletions) -> LanceDataset:
    """Stage the loss of rows that another version has lost."""
    with translate_errors("staging deletions"):
        emptied, left = delete_addresses(base, lost.addresses.tolist())
        return _stage_update(base, [*lost.emptied, *emptied], [*lost.left, *left], [])


def add_columns(base: LanceDataset, fields: Iterable[pa.Field]) -> LanceDataset:
    """Stage new columns of nulls; no data is written."""
    with translate_errors("staging new columns"):
        schema = pa.schema([*base.schema, *fields], metadata=base.schema.metadata)
        fragments = [fragment.metadata for fragment in base.get_fragments()]
        # Columns are only ever added at the end, so numbering them anew gives each its old number.
        return _stage_merge(base, fragments, LanceSchema.from_pyarrow(schema))


def widen_column(
    base: LanceDataset, column: str, field: pa.Field, convert: Callable[[pa.Array], pa.Array]
) -> LanceDataset:
    """Stage a new column made from an old one; only the new column is written."""

    def widened(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([convert(batch[column])], schema=pa.schema([field]))

    with translate_errors("staging a wider column"):
        pieces = [f.merge_columns(widened, columns=[column]) for f in base.get_fragments()]
        if not pieces:
            return add_columns(base, [field])
        return _stage_merge(base, [metadata for metadata, _ in pieces], pieces[0][1])


def record_embedding_models(base: LanceDataset, models: Mapping[str, str | None]) -> LanceDataset:
    """Stage which model made the vectors of columns; None says that nobody knows."""
    numbers = {field.name(): field.id() for field in base.lance_schema.fields()}
    key = EMBEDDING_MODEL.decode()
    marks = {
        numbers[column]: LanceOperation.UpdateMap({key: model}) for column, model in models.items()
    }
    with translate_errors("marking columns"):
        operation = LanceOperation.UpdateConfig(field_metadata_updates=marks)
        return LanceDataset.commit(base, operation, read_version=base.version, detached=True)


def fill_column(base: LanceDataset, field: pa.Field, value: pa.Scalar) -> LanceDataset:
    """Stage a new column with the same value everywhere; only that column is written."""
    return widen_column(base, "id", field, lambda ids: pa.repeat(value, len(ids)))


def rewrite_columns(base: LanceDataset, columns: Sequence[str]) -> LanceDataset:
    """Stage the same rows with only these columns; every one of them is written anew."""
    with translate_errors("rewriting a dataset"):
        schema = pa.schema([base.schema.field(name) for name in columns])
        batches = base.scanner(columns=list(columns)).to_batches()
        rows = (pa.record_batch(batch.columns, schema=schema) for batch in batches)
        return overwrite(base, pa.RecordBatchReader.from_batches(schema, rows))


def existing_ids(base: LanceDataset, ids: Sequence[str]) -> set[str]:
    """Return those of the given ids that the dataset holds."""
    with translate_errors("looking up ids"):
        return set().union(*(hits["id"].to_pylist() for hits in _find_existing(base, ids)), set())


def _find_existing(base: LanceDataset, ids: Sequence[str]) -> Iterable[pa.Table]:
    """Yield the ids and row addresses of rows that exist, chunk by chunk."""
    for start in range(0, len(ids), PROBE_CHUNK):
        quoted = ", ".join(sql_text(id_) for id_ in ids[start : start + PROBE_CHUNK])
        yield base.to_table(columns=["id"], filter=f"id IN ({quoted})", with_row_address=True)


def _delete_ids(base: LanceDataset, ids: Sequence[str]) -> tuple[list[int], list[FragmentMetadata]]:
    hits = [hit["_rowaddr"].to_pylist() for hit in _find_existing(base, ids)]
    return delete_addresses(base, [address for chunk in hits for address in chunk])


def fragment_to_json(fragment: FragmentMetadata) -> dict[str, Any]:
    """Return a written fragment as plain JSON values, for another process."""
    document: dict[str, Any] = fragment.to_json()
    return document


def fragment_from_json(document: Mapping[str, Any]) -> FragmentMetadata:
    """Return the fragment that plain JSON values tell."""
    return FragmentMetadata.from_json(json.dumps(document))


def delete_addresses(
    base: LanceDataset, addresses: Iterable[int]
) -> tuple[list[int], list[FragmentMetadata]]:
    """Return fragments that become empty and fragments with new deletion vectors."""
    offsets: dict[int, list[int]] = defaultdict(list)
    for address in addresses:
        offsets[address >> 32].append(address & 0xFFFF_FFFF)
    removed: list[int] = []
    updated: list[FragmentMetadata] = []
    for fragment_id, rows in sorted(offsets.items()):
        fragment = base.get_fragment(fragment_id)
        assert fragment is not None, "an address names a fragment of its version"
        left = fragment.delete_rows(rows)
        if left is None:
            removed.append(fragment_id)
        else:
            updated.append(left)
    return removed, updated


def write_new_fragments(
    rows: pa.Table, base: LanceDataset, blobs: ExternalBlobMode | None = None
) -> list[FragmentMetadata]:
    """Write rows as fragments no version refers to yet."""
    if not rows.num_rows:
        return []
    with translate_errors("writing rows"):
        operation: Any = write_fragments(
            rows, base, mode="append", return_transaction=True, **_blob_options(blobs)
        ).operation
    return list(operation.fragments)


def _blob_options(blobs: ExternalBlobMode | None) -> dict[str, Any]:
    if blobs is None:
        return {}
    if blobs is ExternalBlobMode.COPIED:
        return {"external_blob_mode": "ingest"}
    return {"allow_external_blob_outside_bases": True}


def _stage_update(
    base: LanceDataset,
    removed: list[int],
    updated: list[FragmentMetadata],
    new: list[FragmentMetadata],
) -> LanceDataset:
    operation = LanceOperation.Update(
        removed_fragment_ids=removed,
        updated_fragments=updated,
        new_fragments=new,
        update_mode="rewrite_rows",
    )
    return LanceDataset.commit(base, operation, read_version=base.version, detached=True)


def _stage_merge(
    base: LanceDataset, fragments: list[FragmentMetadata], schema: LanceSchema
) -> LanceDataset:
    operation = LanceOperation.Merge(fragments, schema)
    return LanceDataset.commit(base, operation, read_version=base.version, detached=True)
