"""Build a commit from staged rows, based on one snapshot of a branch.

If another writer wins the race, the same fragments are rebased on the newer snapshot. Only if the
changes overlap, the rows are validated again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from omnigraph.catalog import TypeKind
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Counts, Snapshot
from omnigraph.commit.staged_commit import StagedDataset, with_checksums
from omnigraph.embed.config import VectorsFrom
from omnigraph.errors import VersionReclaimed
from omnigraph.pipeline.errors import TooManyRejects
from omnigraph.pipeline.load.deletions import (
    RemovedRows,
    reject_rows,
    remove_rows,
    rows_after_removal,
)
from omnigraph.pipeline.load.embedding import FilledVectors, VectorFill, properties_to_fill
from omnigraph.pipeline.load.fragment_scan import DatasetFragments
from omnigraph.pipeline.load.key_counts import LoadTarget
from omnigraph.pipeline.load.key_filter import build_key_filter
from omnigraph.pipeline.load.rebase import RebaseCheck, filter_topics
from omnigraph.pipeline.load.row_checks import RowCheck
from omnigraph.pipeline.load.staged_load import StagedLoad, StagedType
from omnigraph.pipeline.load.staging import RULE_REJECTS, StagingJob, clear_rejects
from omnigraph.pipeline.load.unchanged import rows_to_remove
from omnigraph.pipeline.load.validation import (
    FailedCheck,
    StagedValidation,
    report_failures,
    union_failures,
)
from omnigraph.storage.columns import with_column
from omnigraph.storage.layout import dataset_path
from omnigraph.storage.staged_writes import (
    apply_deletions,
    replace_fragments,
    stage_fragments,
)
from omnigraph.storage.version_diff import rebase_deletions
from omnigraph.write.change_set import ChangeSet, RowBatch, RowSchema, TypeChange, find_row_schema
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.embedding_models import (
    check_declared_model,
    check_embedded_model,
    models_of_other_vectors,
    record_models,
    supplies_vectors,
)
from omnigraph.write.violations import ViolationCollector


class CommitBuilder:
    """A commit of staged rows, based on the snapshot of the job.

    `consulted` are types that were only read. `rejected` counts rows by type and rule, `accepted`
    the remaining rows, `counts` their changes.
    """

    def __init__(
        self,
        spark: SparkSession,
        manifest: Manifest,
        job: StagingJob,
        staged: StagedLoad,
    ) -> None:
        self._spark = spark
        self._manifest = manifest
        self._snapshot = job.snapshot
        self.job = job
        self.staged = staged
        self.rejected = {key: Counter(counts) for key, counts in staged.rejected.items()}
        self.accepted: dict[str, int] = {}
        self.counts: dict[str, Counts] = {}
        self.consulted: set[str] = set()
        self._committed = CommittedState(manifest, job.snapshot)
        self._left: dict[str, int] = {}
        self._same: dict[str, int] = {}
        self._targets = self._shown()
        self._whole = dict(self._targets)
        self._final: dict[str, DatasetFragments] = {}
        self._ready: list[StagedDataset] = []
        clear_rejects(job, RULE_REJECTS)

    # --- versions ------------------------------------------------------------------------------

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

    # --- validation ----------------------------------------------------------------------------

    @contextmanager
    def validated(self, max_rejects: float | None) -> Iterator[StagedValidation]:
        """Reject invalid rows, and yield the validation of the remaining ones.

        Raises:
            ValidationFailed: violations that rejecting rows does not resolve.
        """
        while True:
            examination = StagedValidation(
                self._spark, self._snapshot.schema, self._targets, self.committed_rows
            )
            try:
                superseded = examination.superseded()
                if superseded:
                    for key, frame in superseded.items():
                        self._take(key, remove_rows(frame, self._targets[key].new))
                    continue
                if self._settled(examination):
                    self._check_rejects(max_rejects)
                    self.consulted = examination.consulted - set(self._targets)
                    yield examination
                    return
            finally:
                examination.close()

    def _settled(self, examination: StagedValidation) -> bool:
        """Return whether all rows are valid; otherwise reject rows or raise."""
        findings = ViolationCollector()
        for before in (self.staged.read, self.staged.checked):
            for violation in before.listed:
                findings.add(violation)
            for rule, count in before.totals.items():
                kept = sum(violation.rule is rule for violation in before.listed)
                findings.count(rule, count - kept) if count > kept else None
        if self.job.rejects is None or findings:
            self._report(examination, findings)
            findings.check()
            return True
        if examination.is_clean:
            return True
        changes = ChangeSet(files=self.job.files, findings=findings)
        examination.report_dangling(changes)
        findings.check()
        found = [*examination.faults(), *examination.miscounted_rows()]
        return not self._reject(found, examination)

    def _report(self, examination: StagedValidation, findings: ViolationCollector) -> None:
        if examination.is_clean:
            return
        for faulty in examination.faults():
            rows = self._targets[faulty.check.shape.table_key].new
            report_failures(faulty, rows, self.job.files, findings)
        changes = ChangeSet(files=self.job.files, findings=findings)
        examination.report_dangling(changes)
        examination.report_miscounted(changes)

    def _reject(self, found: Sequence[FailedCheck], examination: StagedValidation) -> int:
        """Reject faulty rows; return their number."""
        by_type: dict[str, list[FailedCheck]] = {}
        for faulty in found:
            by_type.setdefault(faulty.check.shape.table_key, []).append(faulty)
        total = 0
        for key, faults in by_type.items():
            checks: list[RowCheck] = [faulty.check for faulty in faults]
            rows = self._targets[key].new
            taken = reject_rows(union_failures(faults), rows, checks, self.job)
            self._take(key, taken)
            total += taken.rows
            for counts in taken.rejected:
                for name, rules in counts.items():
                    self.rejected.setdefault(name, Counter()).update(rules)
        if found and not total:
            # No row can be rejected: report the violations.
            findings = ViolationCollector()
            self._report(examination, findings)
            findings.check()
        return total

    def _take(self, key: str, taken: RemovedRows) -> None:
        target = self._targets[key]
        self._targets[key] = replace(target, new=rows_after_removal(target.new, taken))
        self._left[key] -= taken.rows

    def _check_rejects(self, limit: float | None) -> None:
        rejected = sum(counts.total() for counts in self.rejected.values())
        given = sum(staged.given for staged in self.staged.types.values())
        given += self.rejected.get("unknown", Counter()).total()
        check_rejects(self.rejected, rejected, given, limit, self.job.rejects)

    # --- vectors -------------------------------------------------------------------------------

    def fillings(self) -> dict[str, list[VectorFill]]:
        """Return the properties whose vectors are to be made, by type."""
        found: dict[str, list[VectorFill]] = {}
        for key, target in self._targets.items():
            properties = properties_to_fill(target, self.job.embed.get(key, ()))
            for property_ in properties:
                before = self._committed.view(target.shape).embedding_model(property_.name)
                others = self._others(target, property_.name)
                filling = VectorFill(
                    self._spark, self.job, target, self._whole[key].new, property_, before, others
                )
                found.setdefault(key, []).append(filling)
        return found

    def _others(self, target: LoadTarget, name: str) -> set[str | None]:
        """Return the models of the vectors beside which a property is filled."""
        change = _as_change(target, self.job.vectors_from)
        return models_of_other_vectors(change, name, self._committed.view(target.shape))

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

    def prepare(self, examination: StagedValidation) -> None:
        """Stage what to publish on the state."""
        made = {key: self._made(target, examination) for key, target in self._targets.items()}
        self._ready = [dataset for dataset in made.values() if dataset is not None]
        # Other types may rely on what was found unchanged: it must not move meanwhile.
        self.consulted |= {key for key, dataset in made.items() if dataset is None}

    def _made(self, target: LoadTarget, examination: StagedValidation) -> StagedDataset | None:
        """Return what to publish of a type; None when nothing of it changes."""
        key = target.shape.table_key
        matched = examination.count(key, "existing")
        rows, same, names_models = target.new, 0, self._names_models(target)
        if matched:
            existing = examination.matched(target)
            pairs = rows_to_remove(existing, target.old, rows)
            if target.replace or names_models:
                same = pairs.where("same").count()
            if names_models and not target.replace:
                # The model is recorded with the rows that have its vectors, also unchanged ones.
                rows = rows_after_removal(rows, remove_rows(existing.select("addr"), rows))
            elif not target.replace:
                taken = remove_rows(pairs.select("addr"), rows)
                same = sum(taken.gone.get(number, 0) for number in rows.sizes)
                rows = rows_after_removal(rows, taken)
        left = self._left[key]
        gone = examination.count(key, "removed")
        self.accepted[key], self._same[key] = left, same
        self.counts[key] = Counts(inserted=left - matched, updated=matched - same, deleted=gone)
        changes = self.counts[key] != Counts() or (same and names_models)
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

    # --- rebasing on other commits -------------------------------------------------------------

    def rebased_on(self, snapshot: Snapshot) -> Sequence[StagedDataset] | None:
        """Return the datasets to publish on a snapshot; None when rows must be validated again.

        That is when other writers changed keys of the load, or rewrote fragments it changes.
        """
        try:
            return self._moved_to(snapshot)
        except VersionReclaimed:
            return None

    def _moved_to(self, snapshot: Snapshot) -> Sequence[StagedDataset] | None:
        before = self._snapshot
        keys = sorted({*self._targets, *self.consulted})
        moved = [key for key in keys if before.entry(key).physical != snapshot.entry(key).physical]
        if not moved:
            return self._ready
        if self.job.replace:
            return None
        if self._rebase_check.conflicts(self._manifest, before, snapshot, map(self._shape, moved)):
            return None
        self._snapshot, self._committed = snapshot, CommittedState(self._manifest, snapshot)
        ready = [
            self._moved(dataset, before) if dataset.table_key in moved else dataset
            for dataset in self._ready
        ]
        self._ready = [dataset for dataset in ready if dataset is not None]
        return self._ready if len(self._ready) == len(ready) else None

    @cached_property
    def _rebase_check(self) -> RebaseCheck:
        """The check for conflicts with other writers; workers collect keys on first use."""
        topics = filter_topics(self._snapshot.schema, self._whole.values())
        replacing = {
            key
            for key, target in self._targets.items()
            if self.job.partial or (target.may_match and self._loses_rows(key))
        }
        key_filter = build_key_filter(self._spark, topics)
        return RebaseCheck(self._targets, key_filter, replacing)

    def _loses_rows(self, key: str) -> bool:
        """Return whether committed rows, or rows of the load itself, are removed from a type."""
        if self.counts[key].updated or self._same[key]:
            return True
        return self._left[key] < self.staged.types[key].rows

    def _moved(self, dataset: StagedDataset, before: Snapshot) -> StagedDataset | None:
        """Return a type on top of what others made of it since a state; None if they rewrote it."""
        key = dataset.table_key
        target = self._targets[key]
        staged = target.staged
        with (
            self._manifest.reading(key, before.entry(key)) as old,
            self._manifest.reading(key, self._committed.entry(target.shape)) as new,
        ):
            fragments = [fragment.metadata for fragment in staged.fragments]
            made = stage_fragments(new, fragments, alone=False)
            if self._loses_rows(key):
                files = {fragment.paths for fragment in staged.fragments}
                lost = rebase_deletions(old, self._final[key].open(), made, files)
                if lost is None:
                    return None
                made = apply_deletions(made, lost)
        return self._dataset(target, replace(self._final[key], version=int(made.version)))

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


def check_rejects(
    rejected: Mapping[str, Counter[str]],
    number: int,
    given: int,
    limit: float | None,
    folder: str | None,
) -> None:
    """Raise TooManyRejects when more rows were rejected than may be, or all of them."""
    allowed = given if limit is None else limit * given if 0 < limit < 1 else limit
    if number > allowed or 0 < number == given:
        raise TooManyRejects(rejected, number, given, folder)
