"""Staged rows of a load in versions of their datasets, which no reader sees before the commit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from omnigraph.catalog import TypeKind
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Counts
from omnigraph.commit.staged_commit import StagedDataset, with_checksums
from omnigraph.embed.config import VectorsFrom
from omnigraph.pipeline.load.deletions import RemovedRows, rows_after_removal
from omnigraph.pipeline.load.embedding import FilledVectors
from omnigraph.pipeline.load.fragment_scan import DatasetFragments
from omnigraph.pipeline.load.key_counts import LoadTarget
from omnigraph.pipeline.load.staged_load import StagedLoad, StagedType
from omnigraph.pipeline.load.staging import StagingJob
from omnigraph.storage.columns import with_column
from omnigraph.storage.layout import dataset_path
from omnigraph.storage.staged_writes import replace_fragments, stage_fragments
from omnigraph.write.change_set import RowBatch, RowSchema, TypeChange, find_row_schema
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.embedding_models import (
    check_declared_model,
    check_embedded_model,
    models_of_other_vectors,
    record_models,
    supplies_vectors,
)


class StagedVersions:
    """The types of a load, each in a version with its staged rows, based on one snapshot.

    `accepted` are the rows that are left of each type, `counts` their changes.
    """

    def __init__(self, manifest: Manifest, job: StagingJob, staged: StagedLoad) -> None:
        self._manifest = manifest
        self._snapshot = job.snapshot
        self.job = job
        self.staged = staged
        self.accepted: dict[str, int] = {}
        self.counts: dict[str, Counts] = {}
        self._committed = CommittedState(manifest, job.snapshot)
        self._left: dict[str, int] = {}
        self._same: dict[str, int] = {}
        self._targets = self._shown()
        self._whole = dict(self._targets)
        self._final: dict[str, DatasetFragments] = {}

    def _shown(self) -> dict[str, LoadTarget]:
        """Return the types of the load as versions that show their rows, nodes before edges."""
        found = {}
        for key, staged in sorted(self.staged.types.items(), key=_nodes_before_edges):
            self._left[key] = staged.rows
            if staged.rows or self.job.replace:
                found[key] = self._show(self._shape(key), staged)
        return found

    def _shape(self, key: str) -> RowSchema:
        kind, _, name = key.partition(":")
        return find_row_schema(self._snapshot.schema, TypeKind(kind), name)

    def _show(self, shape: RowSchema, staged: StagedType) -> LoadTarget:
        old = self.committed_rows(shape)
        entry = self._committed.entry(shape)
        with self._manifest.reading(shape.table_key, entry, to_change=True) as base:
            fragments = [fragment.metadata for fragment in staged.fragments]
            made = stage_fragments(base, fragments, alone=self.job.replace)
        places = {fragment.paths: fragment for fragment in staged.fragments}
        new = {}
        for fragment in made.get_fragments():
            paths = tuple(file.path for file in fragment.metadata.files)
            if paths in places:
                new[fragment.fragment_id] = places[paths]
        rows = replace(
            old,
            version=int(made.version),
            sizes={number: fragment.rows for number, fragment in new.items()},
            position_files={
                number: (fragment.at, fragment.start) for number, fragment in new.items()
            },
        )
        return LoadTarget(shape, staged, rows, old, self.job.strict, self.job.replace)

    def committed_rows(self, shape: RowSchema) -> DatasetFragments:
        """Return the committed rows of a type."""
        entry = self._committed.entry(shape)
        path = dataset_path(str(shape.kind), *entry.key)
        sizes, version = dict[int, int](), entry.physical
        if entry.rows:
            with self._manifest.reading(shape.table_key, entry, to_change=True) as handle:
                sizes = {f.fragment_id: int(f.physical_rows) for f in handle.get_fragments()}
                version = int(handle.version)
        return DatasetFragments(self._manifest.location, path, version, shape, sizes)

    def _take(self, key: str, taken: RemovedRows) -> None:
        target = self._targets[key]
        self._targets[key] = replace(target, new=rows_after_removal(target.new, taken))
        self._left[key] -= taken.rows

    def show_vectors(self, key: str, made: FilledVectors) -> list[tuple[str, int, Any]]:
        """Let the rows of a type have the vectors that were written.

        Returns the files and what they belong to: the place of a fragment, whatever its number.
        """
        target = self._targets[key]
        if made.files:
            handle = target.new.open()
            fragments = {number: handle.get_fragment(number).metadata for number in made.files}
            filled = [with_column(fragments[n], file) for n, file in made.files.items()]
            shown = replace_fragments(handle, [], filled)
            rows = replace(target.new, version=int(shown.version))
            self._targets[key] = replace(target, new=rows)
        return [(*target.new.position_files[number], file) for number, file in made.files.items()]

    # --- datasets to publish -------------------------------------------------------------------

    def _changed(
        self, target: LoadTarget, rows: DatasetFragments, matched: int, same: int, gone: int
    ) -> StagedDataset | None:
        """Return what to publish of a type; None when nothing of it changes.

        `matched` rows have the id of a committed one, `same` of them its values; `gone` committed
        ones are removed.
        """
        key = target.shape.table_key
        left = self._left[key]
        self.accepted[key], self._same[key] = left, same
        self.counts[key] = Counts(inserted=left - matched, updated=matched - same, deleted=gone)
        changes = self.counts[key] != Counts() or (same and self._names_models(target))
        return self._dataset(target, rows) if changes else None

    def _names_models(self, target: LoadTarget) -> bool:
        """Return whether a load names a model of vectors that is not the one recorded."""
        if self.job.vectors_from is None:
            return False
        change = _as_change(target, self.job.vectors_from)
        return any(
            supplies_vectors(change, name) and change.supplied_model(name) not in (None, model)
            for name, model in self._committed.view(target.shape).embedding_models().items()
        )

    def _dataset(self, target: LoadTarget, rows: DatasetFragments) -> StagedDataset:
        key = target.shape.table_key
        entry = self._committed.entry(target.shape)
        self._final[key] = rows
        left, counts = self.accepted[key], self.counts[key]
        count = left if target.replace else entry.rows + counts.inserted
        made = self._marked(target, rows)
        staged = StagedDataset(key, *entry.key, entry.physical, made, count)
        return with_checksums(self._manifest.datasets, staged)

    def _others(self, target: LoadTarget, name: str) -> set[str | None]:
        """Return the models of the vectors beside which a property is filled."""
        change = _as_change(target, self.job.vectors_from)
        return models_of_other_vectors(change, name, self._committed.view(target.shape))

    def _marked(self, target: LoadTarget, rows: DatasetFragments) -> int:
        """Return the version that also records which models made its vectors."""
        base, change = self._committed.view(target.shape), _as_change(target, self.job.vectors_from)
        if not base.embedding_models():
            return rows.version
        check_declared_model(change)
        for name in target.staged.made:
            # Another writer that won may have brought vectors of another model.
            check_embedded_model(change, name, self._others(target, name))
        keeps = self.job.partial
        return int(record_models(change, rows.view(), base, base.rows, lambda _: keeps).version)


def _as_change(target: LoadTarget, vectors_from: VectorsFrom) -> TypeChange:
    """Return a change that says of vectors what is true of all staged rows."""
    shape, staged = target.shape, target.staged
    one = {
        field.name: pa.nulls(1, field.type) if field.name not in staged.gives else _some(field.type)
        for field in shape.schema
    }
    batch = RowBatch(pa.table(one, schema=shape.schema))
    change = TypeChange(shape, [batch], replace=target.replace, vectors_from=vectors_from)
    change.made = dict(staged.made)
    return change


def _some(kind: Any) -> pa.Array:  # noqa: ANN401 - an Arrow type of vectors
    return pa.array([[0.0] * kind.list_size], kind)


def _nodes_before_edges(item: tuple[str, StagedType]) -> tuple[bool, str]:
    key = item[0]
    return (not key.startswith("node:"), key)
