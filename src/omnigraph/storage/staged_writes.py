"""Stage new versions of a dataset without publishing them.

Every function takes the pinned base of a write and returns a detached version based on it, which is
invisible until a manifest refers to it. IDs in one call are unique; the caller removes duplicates.
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

from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.layout import EMBEDDING_MODEL
from omnigraph.storage.small_fragments import cache_key_columns
from omnigraph.storage.version_diff import (
    RowDeletions,
    added_and_deleted,
    deleted_in_added,
    find_rows,
)


class ExternalBlobMode(StrEnum):
    """How to store blobs that are given as a URI."""

    COPIED = "copied"
    REFERRED_TO = "referred to"


def overwrite(
    base: LanceDataset, rows: pa.Table | pa.RecordBatchReader, blobs: ExternalBlobMode | None = None
) -> LanceDataset:
    """Stage these rows in place of all others."""
    with translate_errors("staging an overwrite"):
        transaction = write_fragments(
            rows, base, mode="overwrite", return_transaction=True, **_blob_options(blobs)
        )
        return LanceDataset.commit(base, transaction, detached=True)


def replace_rows(
    base: LanceDataset, addresses: Iterable[int], new: Sequence[FragmentMetadata]
) -> LanceDataset:
    """Stage the removal of rows by address together with new fragments, already written.

    Fragments do not depend on a version, so an attempt after a lost race may use them again.
    """
    with translate_errors("staging rows"):
        removed, updated = delete_addresses(base, addresses)
        if removed or updated:
            return _stage_update(base, removed, updated, list(new))
        return stage_operation(base, LanceOperation.Append(list(new)))


def stage_fragments(
    base: LanceDataset, new: Sequence[FragmentMetadata], *, alone: bool
) -> LanceDataset:
    """Stage fragments that are already written, in addition to all others or alone."""
    with translate_errors("staging rows"):
        operation: LanceOperation.BaseOperation = LanceOperation.Append(list(new))
        if alone:
            operation = LanceOperation.Overwrite(base.lance_schema, list(new))
        return stage_operation(base, operation)


def replace_fragments(
    base: LanceDataset, removed: Sequence[int], updated: Sequence[FragmentMetadata]
) -> LanceDataset:
    """Stage fragments with new deletion vectors, without the fragments that became empty."""
    with translate_errors("staging deletions"):
        return _stage_update(base, list(removed), list(updated), [])


def apply_deletions(base: LanceDataset, deletions: RowDeletions) -> LanceDataset:
    """Stage the deletion of rows that another version has deleted."""
    with translate_errors("staging deletions"):
        emptied, updated = delete_addresses(base, deletions.addresses.tolist())
        return _stage_update(
            base, [*deletions.emptied, *emptied], [*deletions.updated, *updated], []
        )


def without_newest(base: LanceDataset, excluded: int) -> LanceDataset:
    """Stage a version without the last rows of its last fragment."""
    last = base.get_fragments()[-1]
    offsets = range(last.physical_rows - excluded, last.physical_rows)
    return replace_rows(base, [last.fragment_id << 32 | offset for offset in offsets], [])


def move_changes(base: LanceDataset, made: LanceDataset, now: LanceDataset) -> LanceDataset | None:
    """Stage on `now` what `made` changed of `base`: new fragments and deleted rows.

    None if a schema has changed, or if `now` does not have all the deleted rows any more.
    """
    if not base.schema.equals(made.schema, check_metadata=True) or not base.schema.equals(
        now.schema, check_metadata=True
    ):
        return None
    changes = added_and_deleted(base, made)
    addresses = find_rows(changes.deleted, base, now)
    if addresses is None:
        return None
    moved = replace_rows(now, addresses.tolist(), changes.added)
    again = deleted_in_added(base, made, moved)
    return replace_rows(moved, again.tolist(), []) if len(again) else moved


def add_columns(base: LanceDataset, fields: Iterable[pa.Field]) -> LanceDataset:
    """Stage new columns of nulls; no data is written."""
    with translate_errors("staging new columns"):
        schema = pa.schema([*base.schema, *fields], metadata=base.schema.metadata)
        fragments = [fragment.metadata for fragment in base.get_fragments()]
        # Columns are only added at the end, so numbering them again keeps their numbers.
        numbered = LanceSchema.from_pyarrow(schema)
        return stage_operation(base, LanceOperation.Merge(fragments, numbered))


def widen_column(base: LanceDataset, column: str, field: pa.Field) -> LanceDataset:
    """Stage a new column with the values of an old one, cast to its type."""
    return _computed_column(base, column, field, lambda old: old.cast(field.type))


def fill_column(base: LanceDataset, field: pa.Field, value: pa.Scalar) -> LanceDataset:
    """Stage a new column with a constant value."""
    return _computed_column(base, "id", field, lambda ids: pa.repeat(value, len(ids)))


def _computed_column(
    base: LanceDataset, column: str, field: pa.Field, compute: Callable[[pa.Array], pa.Array]
) -> LanceDataset:
    """Stage a new column computed from another; only the new column is written."""

    def computed(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([compute(batch[column])], schema=pa.schema([field]))

    with translate_errors("staging a wider column"):
        merged = [f.merge_columns(computed, columns=[column]) for f in base.get_fragments()]
        if not merged:
            return add_columns(base, [field])
        fragments = [metadata for metadata, _ in merged]
        return stage_operation(base, LanceOperation.Merge(fragments, merged[0][1]))


def record_embedding_models(base: LanceDataset, models: Mapping[str, str | None]) -> LanceDataset:
    """Stage the names of the models that computed the vectors of columns; None if unknown."""
    numbers = {field.name(): field.id() for field in base.lance_schema.fields()}
    key = EMBEDDING_MODEL.decode()
    marks = {
        numbers[column]: LanceOperation.UpdateMap({key: model}) for column, model in models.items()
    }
    with translate_errors("marking columns"):
        return stage_operation(base, LanceOperation.UpdateConfig(field_metadata_updates=marks))


def rewrite_columns(base: LanceDataset, columns: Sequence[str]) -> LanceDataset:
    """Stage the same rows with only these columns; all of them are rewritten."""
    with translate_errors("rewriting a dataset"):
        schema = pa.schema([base.schema.field(name) for name in columns])
        batches = base.scanner(columns=list(columns)).to_batches()
        rows = (pa.record_batch(batch.columns, schema=schema) for batch in batches)
        return overwrite(base, pa.RecordBatchReader.from_batches(schema, rows))


def fragment_to_json(fragment: FragmentMetadata) -> dict[str, Any]:
    """Return the metadata of a fragment as JSON values, for another process."""
    document: dict[str, Any] = fragment.to_json()
    return document


def fragment_from_json(document: Mapping[str, Any]) -> FragmentMetadata:
    """Return a fragment from its metadata as JSON values."""
    return FragmentMetadata.from_json(json.dumps(document))


def delete_addresses(
    base: LanceDataset, addresses: Iterable[int]
) -> tuple[list[int], list[FragmentMetadata]]:
    """Delete rows; return the fragments that become empty and those with new deletion vectors."""
    offsets: dict[int, list[int]] = defaultdict(list)
    for address in addresses:
        offsets[address >> 32].append(address & 0xFFFF_FFFF)
    removed: list[int] = []
    updated: list[FragmentMetadata] = []
    for fragment_id, rows in sorted(offsets.items()):
        fragment = base.get_fragment(fragment_id)
        assert fragment is not None, "an address is in a fragment of its version"
        left = fragment.delete_rows(rows)
        if left is None:
            removed.append(fragment_id)
        else:
            updated.append(left)
    return removed, updated


def write_new_fragments(
    rows: pa.Table, base: LanceDataset, blobs: ExternalBlobMode | None = None
) -> list[FragmentMetadata]:
    """Write rows as fragments that no version refers to yet."""
    if not rows.num_rows:
        return []
    with translate_errors("writing rows"):
        operation: Any = write_fragments(
            rows, base, mode="append", return_transaction=True, **_blob_options(blobs)
        ).operation
    new: list[FragmentMetadata] = list(operation.fragments)
    cache_key_columns(base, rows, new)
    return new


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
    return stage_operation(base, operation)


def stage_operation(base: LanceDataset, operation: LanceOperation.BaseOperation) -> LanceDataset:
    """Stage an operation as a detached version."""
    return LanceDataset.commit(base, operation, read_version=base.version, detached=True)
