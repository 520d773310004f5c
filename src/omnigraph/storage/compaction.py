"""Compact fragments of a dataset, as staged versions.

Results do not change, only their cost: every version lists all fragments, and a scan opens them
all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lance import LanceDataset, LanceOperation
from lance.optimize import Compaction, CompactionTask, RewriteResult

from omnigraph.storage.error_translation import translate_errors
from omnigraph.storage.staged_writes import stage_operation

FRAGMENT_ROWS = 1024 * 1024
"""Target number of rows of a compacted fragment."""
MANY_FRAGMENTS = 64
"""Number of small fragments from which a write compacts them."""
SMALL_ROWS, SMALL_BYTES = 1_024, 1024 * 1024
"""A fragment below both limits is small."""

_RESULT_FIELDS = ("original_fragments", "new_fragments")


def compaction_tasks(base: LanceDataset) -> list[str]:
    """Return independent compaction tasks as JSON; any process may run them."""
    with translate_errors("compacting"):
        plan = Compaction.plan(base, {"target_rows_per_fragment": FRAGMENT_ROWS})
        tasks: list[Any] = plan.tasks
        return [task.json() for task in tasks]


def run_compaction(base: LanceDataset, task: str) -> str:
    """Run a task: write new fragments that no version refers to yet."""
    with translate_errors("compacting"):
        read: Any = CompactionTask
        done: str = read.from_json(task).execute(base).json()
        return done


def stage_compaction(base: LanceDataset, results: Sequence[str]) -> tuple[LanceDataset, int, int]:
    """Stage the results of tasks; return the version and the numbers of old and new fragments."""
    with translate_errors("compacting"):
        read: Any = RewriteResult
        done = [read.from_json(result) for result in results]
        old, new = ([getattr(r, name) for r in done] for name in _RESULT_FIELDS)
        pairs = zip(old, new, strict=True)
        groups = [LanceOperation.RewriteGroup(*pair) for pair in pairs]
        operation = LanceOperation.Rewrite(groups, [])
        staged = stage_operation(base, operation)
        return staged, sum(map(len, old)), sum(map(len, new))


def compact_small_fragments(staged: LanceDataset) -> LanceDataset:
    """Compact the small fragments of a staged version, if there are many of them.

    Fragments covered by an index are not rewritten, because the index would lose them.
    """
    with translate_errors("compacting small fragments"):
        if len(staged.get_fragments()) < MANY_FRAGMENTS:
            return staged
        small = _small_fragments(staged)
        if len(small) < MANY_FRAGMENTS:
            return staged
        plan = Compaction.plan(
            staged, {"target_rows_per_fragment": SMALL_ROWS, "materialize_deletions": False}
        )
        tasks: list[Any] = plan.tasks
        results = [
            task.execute(staged).json()
            for task in tasks
            if {fragment.id for fragment in task.fragments} <= small
        ]
        return stage_compaction(staged, results)[0] if results else staged


def _small_fragments(handle: LanceDataset) -> set[int]:
    indexes: Any = handle.describe_indices()
    covered = {f for index in indexes for segment in index.segments for f in segment.fragment_ids}
    return {
        fragment.fragment_id
        for fragment in handle.get_fragments()
        if fragment.fragment_id not in covered
        and fragment.physical_rows < SMALL_ROWS
        and sum(file.file_size_bytes or 0 for file in fragment.metadata.files) < SMALL_BYTES
    }


def restore_as_latest(handle: LanceDataset) -> int:
    """Make a version the latest for other Lance readers, and return it; data is not copied."""
    with translate_errors("restoring a version"):
        handle.restore()  # type: ignore[no-untyped-call]
        return int(handle.version)
