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

from pyspark.sql import SparkSession

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.commit.staged_commit import StagedDataset
from omnigraph.errors import VersionReclaimed
from omnigraph.pipeline.errors import TooManyRejects
from omnigraph.pipeline.load.deletions import (
    reject_rows,
    remove_rows,
    rows_after_removal,
)
from omnigraph.pipeline.load.embedding import VectorFill, properties_to_fill
from omnigraph.pipeline.load.key_counts import LoadTarget
from omnigraph.pipeline.load.key_filter import build_key_filter
from omnigraph.pipeline.load.rebase import RebaseCheck, filter_topics
from omnigraph.pipeline.load.row_checks import RowCheck
from omnigraph.pipeline.load.staged_load import StagedLoad
from omnigraph.pipeline.load.staged_versions import StagedVersions
from omnigraph.pipeline.load.staging import RULE_REJECTS, StagingJob, clear_rejects
from omnigraph.pipeline.load.unchanged import rows_to_remove
from omnigraph.pipeline.load.validation import (
    FailedCheck,
    StagedValidation,
    report_failures,
    union_failures,
)
from omnigraph.storage.layout import column_layout
from omnigraph.storage.staged_writes import (
    apply_deletions,
    stage_fragments,
)
from omnigraph.storage.version_diff import rebase_deletions
from omnigraph.write.change_set import ChangeSet
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.violations import ViolationCollector


class CommitBuilder(StagedVersions):
    """A commit of staged rows, based on the snapshot of the job.

    `consulted` are types that were only read. `rejected` counts rows by type and rule.
    """

    def __init__(
        self,
        spark: SparkSession,
        manifest: Manifest,
        job: StagingJob,
        staged: StagedLoad,
    ) -> None:
        super().__init__(manifest, job, staged)
        self._spark = spark
        self.rejected = {key: Counter(counts) for key, counts in staged.rejected.items()}
        self.consulted: set[str] = set()
        self._ready: list[StagedDataset] = []
        clear_rejects(job, RULE_REJECTS)

    # --- validation ----------------------------------------------------------------------------

    @contextmanager
    def validated(
        self, max_rejects: float | None, unreadable: int = 0
    ) -> Iterator[StagedValidation]:
        """Reject invalid rows, and yield the validation of the remaining ones.

        `unreadable` rows of the input count as rejected.

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
                    self._check_rejects(max_rejects, unreadable)
                    self.consulted = examination.consulted - set(self._targets)
                    yield examination
                    return
            finally:
                examination.close()

    def _settled(self, examination: StagedValidation) -> bool:
        """Return whether all rows are valid; otherwise reject rows or raise."""
        findings = self.staged.findings()
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

    def _check_rejects(self, limit: float | None, unreadable: int) -> None:
        rejected = sum(counts.total() for counts in self.rejected.values())
        given = sum(staged.given for staged in self.staged.types.values())
        given += self.rejected.get("unknown", Counter()).total()
        check_rejects(self.rejected, rejected, given, limit, self.job.rejects, unreadable)

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
        return self._changed(target, rows, matched, same, examination.count(key, "removed"))

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
            if column_layout(old.schema) != column_layout(new.schema):
                return None
            fragments = [fragment.metadata for fragment in staged.fragments]
            made = stage_fragments(new, fragments, alone=False)
            if self._loses_rows(key):
                files = {fragment.paths for fragment in staged.fragments}
                lost = rebase_deletions(old, self._final[key].open(), made, files)
                if lost is None:
                    return None
                made = apply_deletions(made, lost)
        return self._dataset(target, replace(self._final[key], version=int(made.version)))


def check_rejects(
    rejected: Mapping[str, Counter[str]],
    number: int,
    given: int,
    limit: float | None,
    folder: str | None,
    unreadable: int = 0,
) -> None:
    """Raise TooManyRejects when more rows were rejected than may be, or all of them.

    Rows that were `unreadable` are none of those given, but the limit is for both.
    """
    total, rows = number + unreadable, given + unreadable
    allowed = rows if limit is None else share_of(limit, rows) if 0 < limit < 1 else limit
    if number and (total > allowed or number == given):
        raise TooManyRejects(rejected, total, rows, folder)


def share_of(share: float, rows: int) -> float:
    """Return how many rows a share is: 29 % of 100 are 29, not a little less."""
    return round(share * rows, 6)
