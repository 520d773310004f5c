"""Stage rows on a worker: convert them, check their values, write fragments.

This is the code of every other way to write, applied to one part of the input. Findings and written
files are returned as plain JSON; nothing is visible before a commit refers to it.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from sys import maxsize
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from ulid import ULID

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.dataset_view import StagedView
from omnigraph.embed import Embedder
from omnigraph.embed.config import VectorsFrom
from omnigraph.errors import Category, InvalidInput, NotFound, OmniError, StorageUnavailable
from omnigraph.storage.layout import POSITIONS, STAGED, dataset_path
from omnigraph.storage.location import Location, locate
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.staged_writes import fragment_to_json
from omnigraph.write.change_set import INPUT_POSITION, ChangeSet, RowSchema, TypeChange
from omnigraph.write.checks.reporter import ViolationReporter
from omnigraph.write.checks.values import check_values
from omnigraph.write.coercion import CoercionRules
from omnigraph.write.committed_state import CommittedState
from omnigraph.write.embedding_models import embedded_sources, vector_properties
from omnigraph.write.external_blobs import ExternalBlobs
from omnigraph.write.load import WriteMode
from omnigraph.write.progress import ProgressMeter
from omnigraph.write.rejected_rows import records_by_position, to_json_line
from omnigraph.write.resolved_change import complete_rows
from omnigraph.write.row_builder import RowBuilder
from omnigraph.write.row_embeddings import has_text
from omnigraph.write.spilling import SpillManager
from omnigraph.write.staging import new_fragments
from omnigraph.write.violations import MAX_LISTED, Violation, ViolationCollector

SPILL_BYTES = 256 * 1024 * 1024
"""Rows one worker keeps in memory."""
STAGED_FILES = b"omnigraph.files"
"""Metadata key of position files: the data files of the rows."""


@dataclass(frozen=True)
class StagingJob:
    """The parameters of a load that every worker gets.

    `folder` is where the run keeps its files, below the graph; `rejects` where rejected rows go,
    None when they make the load fail. `embed` names optional properties by type whose vectors are
    made, as required ones always are. `vectors_from` is the model that made the vectors given, if
    that is known.
    """

    location: Location
    snapshot: Snapshot
    mode: WriteMode
    partial: bool
    folder: str
    rejects: str | None = None
    files: tuple[tuple[str, str], ...] = ()
    external: tuple[str, ...] = ()
    embedder: Embedder = field(default_factory=Embedder)
    embed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    vectors_from: VectorsFrom = None
    signature: str | None = None
    """Equal for runs that split the same input in the same way; results of parts are kept with it,
    so that a run that was interrupted does not stage them again. None keeps nothing."""
    is_resumed: bool = False

    @cached_property
    def manifest(self) -> Manifest:
        """The graph, opened where it is first needed."""
        return Manifest(self.location)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "manifest"}

    @property
    def run_id(self) -> str:
        """The run this belongs to."""
        return self.folder.rpartition("/")[2]

    @property
    def strict(self) -> bool:
        """Return whether entities must be new."""
        return self.mode is WriteMode.APPEND

    @property
    def replace(self) -> bool:
        """Return whether the rows are all that a type has."""
        return self.mode is WriteMode.OVERWRITE


def stage_rows(
    job: StagingJob,
    read: Callable[[RowBuilder, ProgressMeter], None],
    files: Sequence[tuple[str, str]] = (),
    part: str = "",
) -> dict[str, Any]:
    """Stage the rows that `read` gives, the part of the input named `part`.

    `files` are the inputs before its own. A part may be staged more than once, by attempts that
    fail or are not needed; what each writes is its own or the same.
    """
    try:
        with SpillManager(SPILL_BYTES) as spill:
            rules = CoercionRules(external=ExternalBlobs.below(job.external))
            intake = RowBuilder(
                job.snapshot.schema, spill, partial=job.partial, rules=rules, files=files
            )
            intake.changes.findings = _findings(job)
            read(intake, ProgressMeter())
            return _RowStager(job, intake, spill).write(len(files), part)
    except OmniError as error:
        return {"error": error.to_json()}


def stage_part(
    job: StagingJob,
    part: str,
    first: tuple[int, int] | None,
    stage: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    """Return what `stage` made of a part, or what it made before the run was interrupted.

    `first` is the position of its first row, which has to be the same.
    """
    if job.signature is None:
        return stage()
    path = f"{job.folder}/{STAGED}/{part}.json"
    facts = {"signature": job.signature, "first": None if first is None else list(first)}
    before = read_part(job.manifest.objects, path) if job.is_resumed else None
    if before is not None and {name: before.get(name) for name in facts} == facts:
        result: dict[str, Any] = before["result"]
        return result
    result = stage()
    if "error" not in result:
        job.manifest.objects.put(path, json.dumps({**facts, "result": result}).encode())
    return result


def read_part(objects: ObjectStore, path: str) -> dict[str, Any] | None:
    """Return the kept result of a part; None if there is none, or only a part of one."""
    data = objects.get(path)
    try:
        found: dict[str, Any] | None = None if data is None else json.loads(data)
    except ValueError:
        return None
    return found


def _findings(job: StagingJob) -> ViolationCollector:
    return ViolationCollector(MAX_LISTED if job.rejects is None else maxsize)


def raise_error(document: Mapping[str, Any]) -> None:
    """Raise the error of a worker."""
    category, code = Category(document["category"]), document["code"]
    kinds: dict[Category, type[InvalidInput | NotFound | StorageUnavailable]] = {
        Category.INVALID: InvalidInput,
        Category.NOT_FOUND: NotFound,
        Category.UNAVAILABLE: StorageUnavailable,
    }
    message, details = document["message"], document["details"]
    if category in kinds:
        raise kinds[category](message, code=code, **details)
    raise OmniError(message, code=code, category=category, details=details)


class _RowStager:
    """Rows of one part on their way to storage."""

    def __init__(self, job: StagingJob, intake: RowBuilder, spill: SpillManager) -> None:
        self._job = job
        self._intake = intake
        self._spill = spill
        self._committed = CommittedState(job.manifest, job.snapshot)

    def write(self, before: int, part: str) -> dict[str, Any]:
        """Write all rows, and return the result as JSON."""
        job, intake = self._job, self._intake
        changes = intake.finish(strict=job.strict, replace=job.replace)
        read, changes.findings = changes.findings, _findings(job)
        types = [self._rows(changes, change) for change in changes.in_order()]
        checked = changes.findings
        bad: dict[int, Violation] = {}
        if job.rejects is not None:
            violations = [*read.listed, *checked.listed]
            bad = first_by_position(violations)
            records: dict[int, Any] = {}
            for shape, _, rows in types if bad else ():
                there = rows.filter(
                    pc.is_in(rows[INPUT_POSITION], value_set=pa.array(sorted(bad), pa.int64()))
                )
                records |= records_by_position(shape, there, there[INPUT_POSITION].to_pylist())
            write_rejects(
                job, VALUE_REJECTS, part, [v for v in violations if v.at is not None], records
            )
            read, checked = _without_place(read), _without_place(checked)
        return {
            "files": intake.files[before:],
            "is_whole": intake.is_whole,
            "read": findings_to_json(read),
            "checked": findings_to_json(checked),
            "rejected": rejected_by_type(bad.values()),
            "types": [self._written(shape, change, rows, bad) for shape, change, rows in types],
        }

    def _rows(
        self, changes: ChangeSet, change: TypeChange
    ) -> tuple[RowSchema, TypeChange, pa.Table]:
        [batch] = change.batches
        rows = complete_rows(batch, change.shape, self._committed)
        check_values(ViolationReporter(changes, change.shape, rows))
        return change.shape, change, rows

    def _written(
        self,
        shape: RowSchema,
        change: TypeChange,
        rows: pa.Table,
        bad: Mapping[int, Violation],
    ) -> dict[str, Any]:
        [batch] = change.batches
        if bad:
            there = pc.is_in(rows[INPUT_POSITION], value_set=pa.array(sorted(bad), pa.int64()))
            rows = rows.filter(pc.invert(there))
        gives = [
            p.name
            for p in vector_properties(shape)
            if batch.rows[p.name].null_count < len(batch.rows)
        ]
        lacks, wordless = _count_missing_vectors(shape, rows)
        path = dataset_path(str(shape.kind), *self._committed.entry(shape).key)
        fragments: list[Any] = []
        at = None
        if rows.num_rows:
            with self._job.manifest.reading(shape.table_key, self._committed.entry(shape)) as base:
                stored = StagedView(shape.type, base).to_stored(rows.drop_columns(INPUT_POSITION))
                fragments = new_fragments(change, rows, stored, base)
            files = [f"{path}/data/{file.path}" for made in fragments for file in made.files]
            at = self._positions(rows[INPUT_POSITION], files)
        kind = self._intake.counts(shape.kind)
        return {
            "table_key": shape.table_key,
            "path": path,
            "given": kind[shape.name],
            "rows": rows.num_rows,
            "fresh": batch.fresh,
            "gives": gives,
            "lacks": lacks,
            "wordless": wordless,
            "fragments": [fragment_to_json(fragment) for fragment in fragments],
            "at": at,
        }

    def _positions(self, at: pa.ChunkedArray, files: Sequence[str]) -> str:
        """Store the input position of each row, needed only for violations."""
        sink = io.BytesIO()
        pq.write_table(
            pa.table({INPUT_POSITION: at}).replace_schema_metadata(
                {STAGED_FILES: json.dumps(files)}
            ),
            sink,
            use_dictionary=False,
            column_encoding={INPUT_POSITION: "DELTA_BINARY_PACKED"},
        )
        path = f"{self._job.folder}/{POSITIONS}/{ULID()}.parquet"
        self._job.manifest.objects.put(path, sink.getvalue())
        return path


def _count_missing_vectors(
    shape: RowSchema, rows: pa.Table
) -> tuple[dict[str, int], dict[str, int]]:
    """Count rows without a vector that have a text to make it from, and those that have none."""
    lacks, wordless = {}, {}
    for property_, source in embedded_sources(shape):
        empty = rows[property_.name].is_null()
        words = pc.and_(empty, has_text(rows[source]))
        lacks[property_.name] = pc.sum(words).as_py() or 0
        wordless[property_.name] = (pc.sum(empty).as_py() or 0) - lacks[property_.name]
    return lacks, wordless


# --- violations --------------------------------------------------------------------------------


def findings_to_json(findings: ViolationCollector) -> dict[str, Any]:
    """Return findings as plain JSON values."""
    return {
        "listed": [violation.to_json() for violation in findings.listed],
        "totals": {str(rule): count for rule, count in findings.totals.items()},
    }


def first_by_position(violations: Sequence[Violation]) -> dict[int, Violation]:
    """Return the first violation of each row that has a position."""
    first: dict[int, Violation] = {}
    for violation in violations:
        if violation.at is not None:
            first.setdefault(violation.at, violation)
    return first


def rejected_by_type(violations: Any) -> dict[str, dict[str, int]]:  # noqa: ANN401 - violations
    """Count rejected rows by type and rule; rows without a type are `unknown`."""
    counts: dict[str, Counter[str]] = {}
    for violation in violations:
        key = "unknown" if violation.type is None else f"{violation.kind}:{violation.type}"
        counts.setdefault(key, Counter())[str(violation.rule)] += 1
    return {key: dict(found) for key, found in counts.items()}


VALUE_REJECTS, RULE_REJECTS = "values", "rules"
"""Rejects of the staging stage, and rejects of the validation stage."""


def write_rejects(
    job: StagingJob,
    when: str,
    part: str,
    violations: Sequence[Violation],
    records: Mapping[int, Any],
) -> None:
    """Write the rejected rows of a part with their violations, one line each.

    `records` are rows by position; a record of the input itself takes precedence.
    """
    if violations and job.rejects is not None:
        lines = b"".join(to_json_line(reject_record(v, records)) for v in violations)
        _rejects(job, job.rejects).put(f"{job.run_id}-{when}-{part}.ndjson", lines)


def reject_record(violation: Violation, records: Mapping[int, Any]) -> dict[str, Any]:
    """Return the record of a rejected row: the violation, and the row to be repaired."""
    row = violation.record
    if row is None and violation.at is not None:
        row = records.get(violation.at)
    return violation.to_json() if row is None else {**violation.to_json(), "row": row}


def clear_rejects(job: StagingJob, when: str, but: Collection[str] = ()) -> None:
    """Remove rejects of this run that are about to be written again, `but` those of some parts."""
    if job.rejects is not None:
        objects = _rejects(job, job.rejects)
        start = f"{job.run_id}-{when}-"
        kept = {f"{start}{part}.ndjson" for part in but}
        found = [info.path for info in objects.list("")]
        objects.delete([path for path in found if path.startswith(start) and path not in kept])


def _rejects(job: StagingJob, folder: str) -> ObjectStore:
    return ObjectStore(locate(folder, job.location.options))


def _without_place(findings: ViolationCollector) -> ViolationCollector:
    """Return the violations that cannot be resolved by rejecting rows."""
    left = ViolationCollector(findings.limit)
    for violation in findings.listed:
        if violation.at is None:
            left.add(violation)
    return left
