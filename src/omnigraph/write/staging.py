"""Stage a validated change: write the rows of each type, and describe them in a staged commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import Metric, TypeKind
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import CommitId, Counts
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset, with_checksums
from omnigraph.dataset_view import StagedView, blob_properties
from omnigraph.embed import Embedder
from omnigraph.errors import NotFound, StorageUnavailable
from omnigraph.storage import staged_writes as storage_stage
from omnigraph.storage.compaction import compact_small_fragments
from omnigraph.storage.index import IndexKind, add_index, build_segment
from omnigraph.storage.layout import dataset_path
from omnigraph.storage.row_lookup import ROW_ADDRESS
from omnigraph.write.change_set import INPUT_POSITION, RowSchema, TypeChange
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.embedding_models import (
    check_declared_model,
    check_embedded_model,
    may_keep_vectors,
    models_of_other_vectors,
    record_models,
)
from omnigraph.write.request import WriteRequest
from omnigraph.write.resolved_change import ResolvedChange
from omnigraph.write.row_embeddings import fill_required_vectors
from omnigraph.write.spilling import SpillManager

PARALLEL_MIN_ROWS = 10_000
PARALLEL_MIN_TYPES = 4
MAX_WRITER_THREADS = 4
"""How many types are written at the same time when there are many rows."""
INDEXED_LOAD_ROWS = 100_000
"""Above this number of rows of a type, a commit also indexes IDs and endpoints."""


def stage_changes(
    manifest: Manifest,
    request: WriteRequest,
    images: Mapping[str, ResolvedChange],
    committed: CommittedState,
    commit_id: CommitId,
) -> StagedCommit:
    """Stage every image based on the committed state it was validated against."""
    datasets = _stage_all(manifest, request, list(images.values()), committed)
    snapshot = committed.snapshot
    reads = {
        key: (snapshot.entry(key).key, snapshot.entry(key).physical)
        for key in sorted(committed.types_read - set(images))
    }
    return StagedCommit(
        id=commit_id,
        operation=request.operation,
        datasets=datasets,
        read_schema=snapshot.head.schema_hash,
        reads=reads,
        actor=request.actor,
        message=request.message,
        counts=count_changes(images),
        if_commit=request.if_commit,
        permit=request.permit,
    )


def count_changes(images: Mapping[str, ResolvedChange]) -> dict[str, Counts]:
    """Return what happens to entities, for the types of which some change."""
    counted = {key: image.counts() for key, image in images.items()}
    return {key: counts for key, counts in counted.items() if counts != Counts()}


def _stage_all(
    manifest: Manifest,
    request: WriteRequest,
    images: Sequence[ResolvedChange],
    committed: CommittedState,
) -> tuple[StagedDataset, ...]:
    """Stage types side by side when there are many, or many rows."""

    def stage_one(image: ResolvedChange) -> StagedDataset:
        return _stage_type(manifest, request, image, committed)

    def observed(staged: Iterable[StagedDataset]) -> Iterator[StagedDataset]:
        for dataset in staged:
            manifest.datasets.observe(f"staged {dataset.table_key.partition(':')[0]}")
            yield dataset

    rows = sum(image.rows.num_rows for image in images)
    if len(images) < PARALLEL_MIN_TYPES and (len(images) == 1 or rows < PARALLEL_MIN_ROWS):
        return tuple(observed(map(stage_one, images)))
    with ThreadPoolExecutor(MAX_WRITER_THREADS) as threads:
        return tuple(observed(threads.map(stage_one, images)))


def _stage_type(
    manifest: Manifest, request: WriteRequest, image: ResolvedChange, committed: CommittedState
) -> StagedDataset:
    shape, entry = image.shape, committed.entry(image.shape)
    adopted = image.change.adopted
    if adopted is not None:
        versions = (entry.physical, adopted.physical)
        return StagedDataset(shape.table_key, *entry.key, *versions, adopted.rows)
    with manifest.reading(shape.table_key, entry, to_change=True) as base, SpillManager() as spill:
        if image.change.vectors_from is not None:
            check_declared_model(image.change)
        writing = _ResolvedChangeWriter(image, base, request.embedder, spill)
        if image.change.replace:
            blobs = _external_blob_handling(image.change)
            staged = storage_stage.overwrite(base, writing.rows(), blobs)
            count = image.rows.num_rows
        else:
            addresses = image.replaced[ROW_ADDRESS].to_pylist()
            staged = storage_stage.replace_rows(base, addresses, writing.fragments())
            count = entry.rows - len(addresses) + image.rows.num_rows
        staged = writing.with_models(staged, entry.rows)
        if image.rows.num_rows > INDEXED_LOAD_ROWS:
            staged = _with_indexes(shape, staged)
    manifest.datasets.keep(entry.path(shape.table_key), staged)
    versions = (entry.physical, int(staged.version))
    new = StagedDataset(shape.table_key, *entry.key, *versions, count)
    return with_checksums(manifest.datasets, new)


def _with_indexes(shape: RowSchema, staged: Any) -> Any:  # noqa: ANN401 - Lance handles
    """Return a staged version in which IDs and endpoints are indexed.

    The first lookup after a large load then costs what the following ones do. An index that is due
    to be rebuilt, because it has too many segments, is left to maintenance.
    """
    for column in ("id", "src", "dst") if shape.kind is TypeKind.EDGE else ("id",):
        task = StagedView(shape.type, staged).index_task(column, IndexKind.BTREE, Metric.COSINE)
        if task is not None and not task.rebuild:
            staged = add_index(staged, task, build_segment(staged, task))
    return staged


def compact_staged(manifest: Manifest, staged: StagedCommit) -> StagedCommit:
    """Return a staged commit whose types have few small fragments."""

    def compact(dataset: StagedDataset) -> StagedDataset:
        if dataset.physical in (None, dataset.expected) or dataset.expected is None:
            return dataset
        path = dataset_path(dataset.table_key.partition(":")[0], *dataset.key)
        handle = manifest.datasets.at(path, dataset.physical)
        compacted = compact_small_fragments(handle)
        if compacted is handle:
            return dataset
        manifest.datasets.keep(path, compacted)
        new = replace(dataset, physical=int(compacted.version), checksums={})
        return with_checksums(manifest.datasets, new)

    return replace(staged, datasets=tuple(compact(dataset) for dataset in staged.datasets))


class _ResolvedChangeWriter:
    """The rows of one image on their way to storage."""

    def __init__(
        self,
        image: ResolvedChange,
        base: Any,  # noqa: ANN401 - a Lance handle
        embedder: Embedder,
        spill: SpillManager,
    ) -> None:
        self._image = image
        self._base = StagedView(image.shape.type, base)
        self._embedder = embedder
        self._spill = spill

    def rows(self) -> pa.Table:
        """Return the rows as the dataset stores them."""
        rows = fill_required_vectors(self._image, self._others, self._embedder, self._spill)
        return self._base.to_stored(rows.drop_columns(INPUT_POSITION))

    def _others(self, name: str) -> set[str | None]:
        return models_of_other_vectors(self._image.change, name, self._base)

    def fragments(self) -> Sequence[Any]:
        """Write the rows, unless an attempt that lost its race wrote the same ones before."""
        image, change = self._image, self._image.change
        ids = image.rows["id"]
        layout = self._base.column_layout()
        is_same = change.written_ids is not None and change.written_ids.equals(ids)
        is_same &= change.written_layout == layout
        if change.written is None or not is_same or any(b.given for b in change.batches):
            change.written_ids, change.written_layout = ids, layout
            rows = self.rows()
            for _, ids in change.shared:
                rows = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=ids)))
            shared = [fragment for fragment, _ in change.shared]
            change.written = [*shared, *new_fragments(change, image.rows, rows, self._base.handle)]
        else:
            for name in change.made:
                # Another writer that won may have brought vectors of another model.
                check_embedded_model(change, name, self._others(name))
        return change.written

    def with_models(self, staged: Any, rows: int) -> Any:  # noqa: ANN401 - Lance handles
        """Return a staged version that records which models made its vectors."""
        change, view = self._image.change, StagedView(self._image.shape.type, staged)
        return record_models(change, view, self._base, rows, partial(may_keep_vectors, change))


def new_fragments(
    change: TypeChange,
    rows: pa.Table,
    stored: pa.Table,
    base: Any,  # noqa: ANN401 - a Lance handle
) -> list[Any]:
    """Write rows of a change as fragments no version refers to; `stored` is how they are stored."""
    try:
        return storage_stage.write_new_fragments(stored, base, _external_blob_handling(change))
    except (NotFound, StorageUnavailable) as error:
        if _has_external_blobs(change.shape, rows):
            message = f"an external blob of {change.shape.name} cannot be read"
            raise StorageUnavailable(message, code="external_blob_source") from error
        raise


def _has_external_blobs(shape: RowSchema, rows: pa.Table) -> bool:
    """Return whether some blob is given by its URI."""
    uris = (pc.struct_field(rows[name], "uri") for name in blob_properties(shape.type))
    return any(column.null_count < len(column) for column in uris)


def _external_blob_handling(change: TypeChange) -> storage_stage.ExternalBlobMode | None:
    """Return how to store blobs that are given as a URI: an overwrite only refers to them."""
    if not blob_properties(change.shape.type):
        return None
    mode = storage_stage.ExternalBlobMode
    return mode.REFERRED_TO if change.replace else mode.COPIED
