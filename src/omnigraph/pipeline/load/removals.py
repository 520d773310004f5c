"""Remove entities that a load deletes: named ones, or those that a full snapshot lacks.

Their ids are written beside the run when its rows are staged. They are removed, with the edges of
removed nodes, from the state on which the staged rows are validated, so that every check sees what
the commit will show; the commit publishes both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from omnigraph.catalog import EdgeType, TypeKind
from omnigraph.catalog.defaults import default_value
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Counts, Snapshot
from omnigraph.commit.snapshot import snapshot_of_staged
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset, with_checksums
from omnigraph.errors import InvalidInput
from omnigraph.pipeline.connector.scratch import ScratchFiles
from omnigraph.pipeline.load.deletions import remove_rows, rows_after_removal
from omnigraph.pipeline.load.fragment_scan import DatasetFragments, ScanProjection, scan_frame
from omnigraph.pipeline.load.model import FAULTY, TypeFrame, TypeLoadResult
from omnigraph.pipeline.load.staging import StagingJob, findings_to_json
from omnigraph.storage.layout import REMOVED, dataset_path
from omnigraph.write.change_set import ChangeSet, RowSchema, find_row_schema
from omnigraph.write.checks.edges import report_edge_counts
from omnigraph.write.violations import MAX_LISTED, ViolationCollector, ViolationRule

ID_SCHEMA = pa.schema([("id", pa.string())])
"""The columns of files with the ids of deleted entities."""
_ID = "id string"
_WRITTEN = "path string, rows long, unknown long"


@dataclass(frozen=True, slots=True)
class StagedRemoval:
    """Files with ids of a type: of entities to delete, or, with `missing`, of all there are."""

    table_key: str
    missing: bool = False
    rows: int = 0
    paths: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        facts = {"table_key": self.table_key, "missing": self.missing, "rows": self.rows}
        return {**facts, "paths": list(self.paths)}


def stage_removals(job: StagingJob, inputs: Sequence[TypeFrame]) -> list[dict[str, Any]]:
    """Write the ids of what a load deletes, or of all that it has; return where they are."""
    scratch = _scratch(job)
    found = []
    for given in inputs:
        frame = given.deleted if given.deleted is not None else given.present
        if frame is None:
            continue
        kind, _, name = given.table_key.partition(":")
        shape = find_row_schema(job.snapshot.schema, TypeKind(kind), name)
        # Where a row without its key is rejected, it may be meant for any entity.
        properties = [shape.properties[one] for one in shape.key if one in shape.properties]
        has_default = any(default_value(property_) is not None for property_ in properties)
        is_rejected = bool(shape.key) and not has_default and job.rejects is not None
        writer = _id_writer(scratch, every=is_rejected and given.deleted is None)
        written = frame.mapInArrow(writer, _WRITTEN).collect()
        unknown = given.unreadable + sum(row["unknown"] for row in written)
        if unknown:
            message = (
                f"{unknown} rows for {name} have no readable key, so "
                "it is unknown which entities are missing; correct them (`delete_missing`)"
            )
            raise InvalidInput(message, code="missing_unknown", type=given.table_key)
        paths = [row["path"] for row in written if row["path"] is not None]
        rows = sum(row["rows"] for row in written)
        missing = given.deleted is None
        found.append(StagedRemoval(given.table_key, missing, rows, paths).to_json())
    return found


def removal_result(job: StagingJob, found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the rows that name deleted entities as a result of staging: they are given, too."""
    kinds = {one["table_key"]: one["rows"] for one in found if not one["missing"]}
    nothing = findings_to_json(ViolationCollector())
    return {
        "is_whole": True,
        "read": nothing,
        "checked": nothing,
        "rejected": {},
        "types": [
            {
                "table_key": key,
                "path": dataset_path(key.partition(":")[0], *job.snapshot.entry(key).key),
                "given": rows,
                "rows": 0,
                "fresh": False,
                "gives": [],
                "lacks": {},
                "wordless": {},
                "fragments": [],
                "at": None,
            }
            for key, rows in kinds.items()
        ],
    }


def _scratch(job: StagingJob) -> ScratchFiles:
    return ScratchFiles(job.location, f"{job.folder}/{REMOVED}")


def _id_writer(scratch: ScratchFiles, *, every: bool) -> Callable[[Iterable[pa.RecordBatch]], Any]:
    """Return what writes ids and counts faulty rows without one, or `every` row without one."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts: Counter[str] = Counter()

        def ids() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                known = batch["id"].is_valid()
                if every:
                    counts["unknown"] += batch["id"].null_count
                elif FAULTY in batch.schema.names:
                    bad = pc.and_(batch[FAULTY], pc.invert(known))
                    counts["unknown"] += pc.sum(bad).as_py() or 0
                kept = batch.select(["id"]).filter(known)
                counts["rows"] += kept.num_rows
                yield kept.cast(ID_SCHEMA)

        path = scratch.put(ids())
        yield pa.record_batch(
            {
                "path": pa.array([path], pa.string()),
                "rows": pa.array([counts["rows"]], pa.int64()),
                "unknown": pa.array([counts["unknown"]], pa.int64()),
            }
        )

    return run


@dataclass(frozen=True, slots=True)
class RemovedEntities:
    """A snapshot without the entities that a load deletes, and what makes it so.

    `datasets` are staged versions by type, `counts` the removed entities, `given` the rows of the
    input that name one.
    """

    before: Snapshot
    snapshot: Snapshot
    datasets: Mapping[str, StagedDataset] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    given: Mapping[str, int] = field(default_factory=dict)
    reads: frozenset[str] = frozenset()
    """Types that must not change meanwhile: those in which entities to remove were looked for, also
    where there were none, and edge types that lose nodes of their ends."""
    sources: Mapping[str, DataFrame] = field(default_factory=dict)
    """The nodes that edges were removed from, of types that need a least number of edges."""

    def is_current(self, snapshot: Snapshot) -> bool:
        """Return whether the same entities are to be removed from a newer snapshot."""
        if self.datasets:
            return self.before.commit_id == snapshot.commit_id
        return all(
            self.before.entry(key).physical == snapshot.entry(key).physical for key in self.reads
        )

    def published(
        self, manifest: Manifest, datasets: Sequence[StagedDataset]
    ) -> tuple[StagedDataset, ...]:
        """Return what to publish: staged versions based on the snapshot before the removal."""
        whole = {**self.datasets, **{dataset.table_key: dataset for dataset in datasets}}
        found = []
        for key, dataset in sorted(whole.items()):
            if key in self.datasets:
                based = replace(dataset, expected=self.before.entry(key).physical)
                found.append(with_checksums(manifest.datasets, based))
            else:
                found.append(dataset)
        return tuple(found)

    def counted(self, counts: Mapping[str, Counts]) -> dict[str, Counts]:
        """Return the counts of a load with those of the removal."""
        made = dict(counts)
        for key, number in self.counts.items():
            other = made.get(key, Counts())
            made[key] = replace(other, deleted=other.deleted + number)
        return made

    def results(self, results: Mapping[str, TypeLoadResult]) -> dict[str, TypeLoadResult]:
        """Return the results of types with those of the removal."""
        made = dict(results)
        for key in {**self.counts, **self.given}:
            one, rows = made.get(key, TypeLoadResult()), self.given.get(key, 0)
            counts = self.counted({key: one.counts})[key]
            made[key] = replace(one, accepted=one.accepted + rows, counts=counts)
        return dict(sorted(made.items()))


def remove_entities(
    spark: SparkSession,
    manifest: Manifest,
    snapshot: Snapshot,
    job: StagingJob,
    found: Sequence[Mapping[str, Any]],
) -> RemovedEntities:
    """Remove what was found from a snapshot, in versions that no one else can see."""
    removal = _Removal(spark, manifest, snapshot)
    scratch = _scratch(job)
    for one in found:
        if one["rows"] or one["missing"]:
            ids = scratch.frame(spark, one["paths"], _ID)
            removal.mark(one["table_key"], ids, missing=one["missing"])
    given = {one["table_key"]: one["rows"] for one in found if not one["missing"]}
    return replace(removal.run(), given={key: rows for key, rows in given.items() if rows})


class _Removal:
    """Finds the rows of removed entities, and of edges that lose a node."""

    def __init__(self, spark: SparkSession, manifest: Manifest, snapshot: Snapshot) -> None:
        self._spark, self._manifest, self._snapshot = spark, manifest, snapshot
        self._marked: dict[str, list[DataFrame]] = {}
        self._gone: dict[str, DataFrame] = {}
        self._searched: set[str] = set()

    def mark(self, key: str, ids: DataFrame, *, missing: bool) -> None:
        """Mark the entities with some ids, or all others."""
        shape = self._shape(key)
        rows = self._committed(shape)
        self._searched.add(key)
        if not rows.sizes:
            return
        ends = ("src", "dst") if shape.kind is TypeKind.EDGE else ()
        every = scan_frame(self._spark, rows, ScanProjection(("id", *ends), address=True))
        marked = every.join(ids, "id", "left_anti" if missing else "left_semi")
        self._marked.setdefault(key, []).append(marked)
        if shape.kind is TypeKind.NODE:
            self._gone[key] = marked.select("id")
            for edge in self._snapshot.catalog.incident_edges(shape.name):
                self._mark_edges(edge, shape.name, marked.select("id"))

    def _mark_edges(self, edge: EdgeType, node: str, gone: DataFrame) -> None:
        key = f"edge:{edge.name}"
        rows = self._committed(self._shape(key))
        if not rows.sizes:
            return
        every = scan_frame(self._spark, rows, ScanProjection(("id", "src", "dst"), address=True))
        for end, name in (("src", edge.src), ("dst", edge.dst)):
            if name == node:
                lost = every.join(gone.withColumnRenamed("id", end), end, "left_semi")
                self._marked.setdefault(key, []).append(lost.select("id", "src", "dst", "addr"))

    def run(self) -> RemovedEntities:
        """Remove what is marked."""
        datasets, counts, sources = {}, {}, {}
        for key, frames in self._marked.items():
            shape, marked = self._shape(key), reduce(DataFrame.unionAll, frames)
            rows = self._committed(shape)
            removed = remove_rows(marked.select("addr").distinct(), rows)
            if not removed.rows:
                continue
            entry = self._snapshot.entry(key)
            version = rows_after_removal(rows, removed).version
            left = entry.rows - removed.rows
            datasets[key] = StagedDataset(key, *entry.key, entry.physical, version, left)
            counts[key] = removed.rows
            edge = shape.definition
            if isinstance(edge, EdgeType) and edge.cardinality.minimum:
                sources[key] = self._staying(edge, marked)
        staged = StagedCommit(
            id=self._snapshot.commit_id, operation="remove", datasets=tuple(datasets.values())
        )
        after = snapshot_of_staged(self._snapshot, staged) if datasets else self._snapshot
        edges = {
            f"edge:{edge.name}"
            for key in datasets
            if key.startswith("node:")
            for edge in self._snapshot.catalog.incident_edges(key.removeprefix("node:"))
        }
        reads = frozenset(self._searched | edges)
        return RemovedEntities(
            self._snapshot, after, datasets, counts, reads=reads, sources=sources
        )

    def _staying(self, edge: EdgeType, marked: DataFrame) -> DataFrame:
        """Return the nodes that edges were removed from, without those that are removed."""
        sources, gone = marked.select("src").distinct(), self._gone.get(f"node:{edge.src}")
        if gone is None:
            return sources
        return sources.join(gone.withColumnRenamed("id", "src"), "src", "left_anti")

    def _shape(self, key: str) -> RowSchema:
        kind, _, name = key.partition(":")
        return find_row_schema(self._snapshot.schema, TypeKind(kind), name)

    def _committed(self, shape: RowSchema) -> DatasetFragments:
        return committed_fragments(self._manifest, self._snapshot, shape)


def committed_fragments(
    manifest: Manifest, snapshot: Snapshot, shape: RowSchema
) -> DatasetFragments:
    """Return all rows of a type in a snapshot."""
    entry = snapshot.entry(shape.table_key)
    path = dataset_path(str(shape.kind), *entry.key)
    sizes, version = dict[int, int](), entry.physical
    if entry.rows:
        with manifest.reading(shape.table_key, entry, to_change=True) as handle:
            sizes = {one.fragment_id: int(one.physical_rows) for one in handle.get_fragments()}
            version = int(handle.version)
    return DatasetFragments(manifest.location, path, version, shape, sizes)


def check_left_edges(
    spark: SparkSession, manifest: Manifest, after: Snapshot, removed: RemovedEntities
) -> None:
    """Raise ValidationFailed if a node has too few edges left in the state to be published."""
    changes = ChangeSet(findings=ViolationCollector())
    for key, sources in removed.sources.items():
        shape = find_row_schema(after.schema, TypeKind.EDGE, key.partition(":")[2])
        edge = shape.definition
        assert isinstance(edge, EdgeType), "only edges have sources"
        left = scan_frame(
            spark, committed_fragments(manifest, after, shape), ScanProjection(("src",))
        )
        numbers = left.groupBy("src").agg(f.count(f.lit(1)).alias("count"))
        few = (
            sources.join(numbers, "src", "left")
            .select("src", f.coalesce("count", f.lit(0)).alias("count"))
            .where(f.col("count") < edge.cardinality.minimum)
        )
        rows = few.orderBy("src").limit(MAX_LISTED).collect()
        if rows:
            total = few.count() if len(rows) == MAX_LISTED else len(rows)
            wrong = pa.table({name: [row[name] for row in rows] for name in ("src", "count")})
            report_edge_counts(changes, edge, wrong, lambda _: None)
            changes.findings.count(ViolationRule.CARDINALITY, total - len(rows))
    changes.findings.check()
