"""Maintenance that runs by itself: compaction, indexes, topology files and cleanup, when due.

A pass consists of small steps. Each may be interrupted at any moment, keeps the CPU share of the
maintainer, and yields to writers: a lost race is tried again later. A graph that did not change
costs a read of its heads.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from threading import Event

from omnigraph.commit.footprint import TypeKey
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, CommitId, DatasetEntry, Snapshot
from omnigraph.commit.snapshot import head_snapshot, snapshot_of_commit
from omnigraph.commit.staged_commit import commit_id_time
from omnigraph.maintain.cleanup import cleanup
from omnigraph.maintain.derived_files import (
    indexed_texts,
    large_edge_types,
    refresh_text_index,
    refresh_topology,
)
from omnigraph.maintain.due import TypeCounts, count_type
from omnigraph.maintain.maintainer_lock import MaintainerLock, MaintainerState
from omnigraph.maintain.maintenance_steps import MaintainerSettings, MaintenancePass, StepRunner
from omnigraph.maintain.optimize import OptimizeOptions, optimize
from omnigraph.maintain.retention import Retention, read_retention
from omnigraph.write.request import MAINTENANCE_OPERATION, WriteRequest

BRANCHES_PER_PASS = 32
"""Branches besides main that one pass reads; passes take turns through all of them."""
MAX_BACKOFF = 16
"""After failures, passes are up to this number of intervals apart."""
_TURN_SECONDS = 5.0
"""How long a publish waits for its turn among writers."""
_log = logging.getLogger("omnigraph.maintain")


class Maintainer:
    """Maintains one graph while it holds the maintainer lock of the graph.

    `retention` takes precedence over the one that is stored with the graph.
    """

    def __init__(
        self,
        manifest: Manifest,
        settings: MaintainerSettings | None = None,
        *,
        retention: Retention | None = None,
        actor: str | None = None,
    ) -> None:
        self.settings = settings or MaintainerSettings()
        self.state = MaintainerState()
        self._manifest = manifest
        self._retention = retention
        self._actor = actor
        self._lock = MaintainerLock(manifest.location)
        self._clean: dict[str | None, CommitId] = {}
        self._forks: dict[str | None, Mapping[TypeKey, DatasetEntry]] = {}
        self._next_branch = 0
        self._cleanup_checked: float | None = None
        self._failed_passes = 0
        self.fragments: dict[str, int] = {}
        """Fragments of the types of main when they were counted last."""

    def watch(
        self, stop: Event, report: Callable[[MaintenancePass], None] = lambda _: None
    ) -> None:
        """Run passes until `stop` is set."""
        try:
            while not stop.is_set():
                report(self.run(stop))
                stop.wait(self.pause)
        finally:
            self.close()

    @property
    def pause(self) -> float:
        """Seconds until the next pass."""
        return self.settings.interval * min(int(2**self._failed_passes), MAX_BACKOFF)

    def close(self) -> None:
        """Let another process maintain the graph."""
        self._lock.release()

    def run(self, stop: Event | None = None) -> MaintenancePass:
        """Run one pass: everything that is due; errors are part of the result."""
        result = MaintenancePass()
        if not self._lock.acquire():
            result.skipped = True
            return result
        if not self.state.passes:
            self._lock.publish(self.state)
        steps = StepRunner(self.settings.cpu_share, stop or Event(), result)
        for snapshot in steps.run("probe", self._changed_heads) or ():
            self._maintain_branch(steps, snapshot)
        self._clean_up(steps)
        self._record(result)
        return result

    def _record(self, result: MaintenancePass) -> None:
        """Publish the state of this maintainer; after a pass without effect only its time."""
        state = self.state
        changed = bool(result.actions or result.failures or state.last_error or not state.passes)
        state.add(result)
        for message in result.errors:
            _log.warning("maintenance of %s: %s", self._manifest.location.uri, message)
        self._failed_passes = self._failed_passes + 1 if result.failures else 0
        if changed:
            self._lock.publish(state)
        else:
            self._lock.touch()
        self._manifest.datasets.observe("maintain: recorded")

    # --- branches ---------------------------------------------------------------------------------

    def _changed_heads(self) -> list[Snapshot]:
        """Return the heads of branches that changed since they needed no maintenance; main first.

        Of many branches, some are read in each pass.
        """
        branches = self._manifest.branches()
        self._forget_all_but({None, *(branch.lineage_id for branch in branches.values())})
        others = sorted(branches)
        first = self._next_branch % max(1, len(others))
        chosen = [*others[first:], *others[:first]][:BRANCHES_PER_PASS]
        self._next_branch = first + len(chosen)
        heads = [head_snapshot(self._manifest, branch) for branch in (MAIN, *chosen)]
        self._manifest.datasets.observe("maintain: probed")
        return [head for head in heads if self._clean.get(head.lineage_id) != head.commit_id]

    def _forget_all_but(self, lineages: set[str | None]) -> None:
        """Forget branches that were deleted: a maintainer may run for months."""
        self._clean = {k: v for k, v in self._clean.items() if k in lineages}
        self._forks = {k: v for k, v in self._forks.items() if k in lineages}

    def _maintain_branch(self, steps: StepRunner, head: Snapshot) -> None:
        before = (len(steps.result.actions), steps.result.failures)
        for table_key in steps.run("probe", partial(self._own_types, head)) or ():
            self._maintain_type(steps, head.branch, table_key)
        if head.branch == MAIN:
            self._store_derived_files(steps)
        after = (len(steps.result.actions), steps.result.failures)
        if before == after and not steps.result.stopped:
            self._clean[head.lineage_id] = head.commit_id

    def _own_types(self, head: Snapshot) -> Iterable[str]:
        """Return the types of a branch that it changed since it was created.

        Otherwise it would get a copy of what it shares with other branches.
        """
        shared = self._fork_entries(head) if head.branch != MAIN else {}
        return [key for key, e in head.entries().items() if shared.get(e.key) != e and e.rows]

    def _fork_entries(self, head: Snapshot) -> Mapping[TypeKey, DatasetEntry]:
        """Return the datasets at the commit from which a branch was created."""
        lineage_id = head.lineage_id
        if lineage_id not in self._forks:
            fork = self._manifest.branch(head.branch).fork_commit
            snapshot = None if fork is None else snapshot_of_commit(self._manifest, fork)
            self._forks[lineage_id] = {} if snapshot is None else snapshot.head.datasets
        return self._forks[lineage_id]

    def _maintain_type(self, steps: StepRunner, branch: str, table_key: str) -> None:
        """Compact a type, then extend its indexes: compaction may change what they cover."""
        for task in ("compaction", "index"):
            counts = steps.run("probe", partial(self._count, branch, table_key))
            if counts is None:
                return
            if branch == MAIN:
                self.fragments[table_key] = counts.fragments
            if counts.compaction_due if task == "compaction" else counts.index_due:
                action = steps.run(task, partial(self._optimize, branch, table_key, task))
                if action is not None:
                    steps.result.record(task, action)

    def _count(self, branch: str, table_key: str) -> TypeCounts | None:
        head = head_snapshot(self._manifest, branch)
        entry = head.entries().get(table_key)
        if entry is None:
            return None
        return count_type(self._manifest, head.type_of(table_key), entry)

    def _optimize(self, branch: str, table_key: str, task: str) -> str | None:
        request = WriteRequest(
            branch=branch,
            operation=MAINTENANCE_OPERATION,
            actor=self._actor,
            timeout=_TURN_SECONDS,
        )
        compact = task == "compaction"
        options = OptimizeOptions(
            compact=compact, index=not compact, derived=False, types=[table_key]
        )
        report = optimize(self._manifest, request, options)
        if report.commit is None:
            return None
        [done] = report.datasets
        where = "" if branch == MAIN else f" on {branch}"
        if compact:
            numbers = f"{done.fragments_removed} -> {done.fragments_added}"
            return f"compacted {table_key}{where}: fragments {numbers}"
        return f"indexed {table_key}{where}: {', '.join(done.indexes_built)}"

    # --- derived files and cleanup ----------------------------------------------------------------

    def _store_derived_files(self, steps: StepRunner) -> None:
        head = steps.run("topology", partial(head_snapshot, self._manifest, MAIN))
        if head is None:
            return
        for name in large_edge_types(head):
            refresh = partial(refresh_topology, self._manifest, head, name)
            if steps.run("topology", refresh):
                steps.result.record("topology", f"stored the topology of {name}")
                self._manifest.datasets.observe("maintain: topology stored")
        for name, property_name in indexed_texts(head):
            store = partial(refresh_text_index, self._manifest, head, name, property_name)
            if steps.run("text index", store):
                steps.result.record("text index", f"stored the words of {name}.{property_name}")

    def _clean_up(self, steps: StepRunner) -> None:
        retention = self._retention or steps.run(
            "cleanup", partial(read_retention, self._manifest.objects)
        )
        if retention is None or not steps.run("cleanup", self._cleanup_due):
            return
        removed = steps.run("cleanup", partial(self._remove, retention))
        if removed:
            steps.result.bytes_removed += removed
            steps.result.record("cleanup", f"removed {removed:,} bytes")

    def _cleanup_due(self) -> bool:
        interval, now = self.settings.cleanup_interval, time.monotonic()
        last = self._manifest.main.state().head.last_cleanup
        if last and datetime.now(UTC) - commit_id_time(last) < interval:
            return False
        checked = self._cleanup_checked
        return checked is None or now - checked >= interval.total_seconds()

    def _remove(self, retention: Retention) -> int:
        """Remove what the retention does not keep, if there is anything; return its bytes."""
        self._cleanup_checked = time.monotonic()
        run = partial(
            cleanup,
            self._manifest,
            keep=retention.keep,
            older_than=retention.older_than,
            age_floor=self.settings.age_floor,
        )
        preview = run(dry_run=True)
        if not preview.bytes_removed and not preview.lineages_removed:
            return 0
        return run(dry_run=False).bytes_removed
