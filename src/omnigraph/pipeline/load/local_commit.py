"""Check staged rows in a process without a session of Spark, and publish them as one commit.

`df.write` commits in such a process. It reads the columns that checks need, no others, and spills
what does not fit memory; the checks are those of every other way to write. Rows of a merge are
compared with the rows they replace a few at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Property
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, Counts, Snapshot
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset, new_commit_id
from omnigraph.embed import Embedder, Role
from omnigraph.errors import Contention, ExpectedVersionMismatch, InvalidInput, SchemaMoved
from omnigraph.pipeline.load.deletions import remove_addresses, rows_after_removal
from omnigraph.pipeline.load.embedding import (
    FilledVectors,
    VectorColumnWriter,
    properties_to_fill,
)
from omnigraph.pipeline.load.fragment_scan import InputPositions
from omnigraph.pipeline.load.key_counts import LoadTarget
from omnigraph.pipeline.load.staged_load import StagedLoad
from omnigraph.pipeline.load.staged_versions import StagedVersions
from omnigraph.pipeline.load.staging import StagingJob
from omnigraph.pipeline.load.unchanged import VersionPair
from omnigraph.storage.row_lookup import ROW_ADDRESS
from omnigraph.write.change_set import INPUT_POSITION, ChangeSet, RowBatch, RowSchema
from omnigraph.write.checks.edges import check_cardinality, check_endpoints
from omnigraph.write.checks.unique import check_unique, unique_groups
from omnigraph.write.footprints import keys_of
from omnigraph.write.request import WriteRequest, check_changes_allowed
from omnigraph.write.resolved_change import ResolvedChange, resolve_rows
from omnigraph.write.row_embeddings import embedder_for_property, has_text
from omnigraph.write.spilling import SpillManager
from omnigraph.write.transaction import MAX_REPREPARES, publish_rebased

MAX_KEY_BYTES = 1024 * 1024 * 1024
"""Bytes of keys that one process checks; more are checked by executors, with `pipeline.write`."""

_ADDRESS = "@addr"


def publish_staged_rows(
    manifest: Manifest, request: WriteRequest, job: StagingJob, staged: StagedLoad
) -> Commit:
    """Publish rows that workers staged on the snapshot of a job as one commit.

    Raises:
        ValidationFailed: rows break rules.
        InvalidInput: there are too many keys for one process.
    """
    if not staged.is_whole:
        staged.read.check()
    base, id_ = job.snapshot.whole or job.snapshot, new_commit_id()
    for _ in range(MAX_REPREPARES):
        snapshot = head_snapshot(manifest, request.branch)
        _check_base(job, staged, base, snapshot)
        local = LocalCommit(manifest, replace(job, snapshot=snapshot), staged)
        made = replace(local.prepared(request), id=id_, began=base.head.last_cleanup)
        try:
            return publish_rebased(manifest, made, snapshot)
        except ExpectedVersionMismatch:
            if job.replace:
                raise
    raise Contention(f"other writers keep changing entities of the load on {request.branch}")


def _check_base(job: StagingJob, staged: StagedLoad, base: Snapshot, now: Snapshot) -> None:
    """Raise if rows that were staged on a snapshot cannot be published on a newer one."""
    if base.head.schema_hash != now.head.schema_hash:
        raise SchemaMoved(base.head.schema_hash, now.head.schema_hash)
    for key in staged.types if job.partial else ():
        if base.entry(key).physical != now.entry(key).physical:
            name = key.partition(":")[2]
            raise Contention(
                f"another writer changed {name} after values of its entities were copied for a "
                "partial merge; run the job again"
            )


class LocalCommit(StagedVersions):
    """A commit of staged rows that is checked in this process, based on the snapshot of the job."""

    def prepared(self, request: WriteRequest) -> StagedCommit:
        """Return the commit.

        Raises:
            ValidationFailed: all violations, those that workers found first.
        """
        changes, committed = ChangeSet(files=self.job.files), self._committed
        changes.findings = self.staged.findings()
        with SpillManager() as spill:
            images = {k: self._image(t, changes, spill) for k, t in self._targets.items()}
            check_changes_allowed(changes, request, committed)
            for image in images.values():
                check_unique(changes, image, committed)
            check_endpoints(changes, images, committed)
            for image in images.values():
                check_cardinality(changes, image, images, committed)
            changes.findings.check()
            keys = keys_of(images, committed, committed.types_scanned.values())
            found = [self._settled(key, image) for key, image in images.items()]
        datasets = tuple(dataset for dataset in found if dataset is not None)
        read = committed.types_read - {dataset.table_key for dataset in datasets}
        entries = {key: self._snapshot.entry(key) for key in sorted(read)}
        return StagedCommit(
            id=new_commit_id(),
            operation=request.operation,
            datasets=datasets,
            read_schema=self._snapshot.head.schema_hash,
            reads={key: (entry.key, entry.physical) for key, entry in entries.items()},
            actor=request.actor,
            message=request.message,
            counts={key: counts for key, counts in self.counts.items() if counts != Counts()},
            permit=request.permit,
            footprint=keys.footprint(),
            requirements=keys.requirements(),
        )

    # --- keys ----------------------------------------------------------------------------------

    def _image(self, target: LoadTarget, changes: ChangeSet, spill: SpillManager) -> ResolvedChange:
        """Return what the staged rows make of a type, with the columns that checks read."""
        rows, change = self._keys(target, spill), changes.of(target.shape)
        change.batches = [RowBatch(rows, fresh=target.staged.fresh)]
        change.strict, change.replace = self.job.strict, self.job.replace
        return resolve_rows(change, (rows,), self._committed)

    def _keys(self, target: LoadTarget, spill: SpillManager) -> pa.Table:
        columns = checked_columns(target.shape)
        fields = [target.shape.schema.field(name) for name in columns]
        numbers = [pa.field(name, pa.int64()) for name in (INPUT_POSITION, _ADDRESS)]
        gathered = spill.new_rows(pa.schema([*fields, *numbers]))
        finder, size = InputPositions(target.new), 0
        for fragment in target.new.sizes:
            for table in target.new.read(columns, [fragment]):
                addresses = pc.cast(table[ROW_ADDRESS], pa.int64())
                positions = finder.positions(table[ROW_ADDRESS])
                rows = [
                    table[name].cast(field.type)
                    for name, field in zip(columns, fields, strict=True)
                ]
                gathered.add(pa.table([*rows, positions, addresses], schema=gathered.schema))
                size += table.nbytes
                if size > MAX_KEY_BYTES:
                    raise _too_many_keys(target)
        return gathered.table()

    # --- datasets to publish -------------------------------------------------------------------

    def _settled(self, key: str, image: ResolvedChange) -> StagedDataset | None:
        """Remove rows that others replace, compute missing vectors; None if nothing changes."""
        [batch] = image.batches
        if image.repeats:
            last = pc.is_in(batch[_ADDRESS], value_set=image.rows[_ADDRESS].combine_chunks())
            superseded = batch[_ADDRESS].filter(pc.invert(last)).to_numpy()
            self._take(key, remove_addresses(superseded, self._targets[key].new))
        for property_ in properties_to_fill(self._targets[key], ()):
            self._fill(key, property_)
        target = self._targets[key]
        rows, same, names_models = target.new, 0, self._names_models(target)
        old, new = _matched(image)
        if len(old):
            is_same = VersionPair.of(target.old, target.new).same(old, new)
            same = int(is_same.sum())
            if not target.replace:
                gone = old if names_models else np.where(is_same, new, old)
                rows = rows_after_removal(rows, remove_addresses(gone.astype(np.int64), rows))
        return self._changed(target, rows, len(old), same, len(image.removed))

    def _fill(self, key: str, property_: Property) -> None:
        """Compute the vectors that rows lack, and record them for a further attempt."""
        target, name = self._targets[key], property_.name
        others = self._others(target, name)
        embedder = embedder_for_property(target.shape, property_, others, self.job.embedder)
        column, files, made = VectorColumnWriter(self._whole[key].new, target.old, name), {}, 0
        for fragment in target.new.sizes:
            counts = [0, 0]
            rows = _embedded_rows(target, property_, fragment, embedder)
            files[fragment] = column.write(fragment, rows, counts)
            made += counts[0]
        filled = FilledVectors(property=name, model=embedder.model, made=made, files=files)
        shown = self.show_vectors(key, filled)
        facts = {"made": {name: embedder.model}, "filled": {name: made}, "files": shown}
        self.staged.types[key].fill(facts)


def checked_columns(shape: RowSchema) -> list[str]:
    """Return the columns of a type that checks across rows read."""
    tuples = [name for columns in unique_groups(shape) for name in columns]
    return list(dict.fromkeys([*shape.system, *shape.key, *tuples]))


def _matched(image: ResolvedChange) -> tuple[Any, Any]:
    """Return the addresses of committed rows, and of the staged ones with the same IDs."""
    where = pc.index_in(image.rows["id"], value_set=image.replaced["id"].combine_chunks())
    old = image.replaced[ROW_ADDRESS].take(where.drop_null()).to_numpy().astype(np.uint64)
    new = image.rows[_ADDRESS].filter(where.is_valid()).to_numpy().astype(np.uint64)
    return old, new


def _embedded_rows(
    target: LoadTarget, property_: Property, fragment: int, embedder: Embedder
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a fragment that lack a vector with the vector of their text."""
    assert property_.embed is not None, "only such a property is filled"
    source, dimension = property_.embed.source, property_.type.dimension or 0
    for table in target.new.read(list(dict.fromkeys([source, property_.name])), [fragment]):
        rows = table.filter(pc.and_(table[property_.name].is_null(), has_text(table[source])))
        if not rows.num_rows:
            continue
        vectors = embedder.embed(rows[source].to_pylist(), dimension, Role.DOCUMENT)
        binary = [vector.astype(np.float32).tobytes() for vector in vectors]
        addresses = pc.cast(rows[ROW_ADDRESS], pa.int64()).combine_chunks()
        nothing = pa.nulls(rows.num_rows, pa.int64())
        yield pa.record_batch(
            {"addr": addresses, "old": nothing, "vector": pa.array(binary, pa.binary())}
        )


def _too_many_keys(target: LoadTarget) -> InvalidInput:
    name, limit = target.shape.name, MAX_KEY_BYTES // 2**20
    message = (
        f"the keys of {target.staged.rows:,} rows of {name} exceed {limit} MiB, which `df.write` "
        "checks in one process; use `omnigraph.pipeline.write(df, graph, "
        f'"{name}")`, which checks them on executors'
    )
    return InvalidInput(message, code="too_many_keys", type=name, rows=target.staged.rows)
