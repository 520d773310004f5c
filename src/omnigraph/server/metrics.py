"""Prometheus metrics; several processes add up in a shared folder."""

from __future__ import annotations

import os
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from omnigraph.commit.commit_events import CommitEvent, ignore_commits, observe_commits
from omnigraph.query.column_cache import cached_column_bytes, column_cache_lookups
from omnigraph.query.limits import PROCESS_MEMORY
from omnigraph.query.topology import cached_topology_bytes
from omnigraph.server.maintenance_metrics import MaintenanceMetrics

METRICS_DIR_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder that the processes of a server share."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_MEMORY_SECONDS = 1.0
"""How long the memory that was measured last is shown."""
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class ServerMetrics:
    """What is counted: never an actor or anything else a caller named.

    Graphs are named if the metrics have an address of their own, since callers cannot read it.
    """

    media_type = CONTENT_TYPE_LATEST

    def __init__(
        self,
        *,
        shared: bool = False,
        maintenance: str | None = None,
        names_graphs: bool = False,
        folder: str | None = None,
    ) -> None:
        self._registry = CollectorRegistry()
        self._shared = shared
        self._names_graphs = names_graphs
        self._folder = folder
        self._measured_at = 0.0
        self._maintenance = None if maintenance is None else MaintenanceMetrics(Path(maintenance))
        if self._maintenance is not None:
            self._registry.register(self._maintenance)
        labels = ("method", "route", "status")
        self._requests = Counter(
            "omnigraph_requests", "Requests that were answered", labels, registry=self._registry
        )
        self._seconds = Histogram(
            "omnigraph_request_seconds",
            "Seconds until an answer was sent",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._underway = Gauge(
            "omnigraph_requests_underway",
            "Requests under way",
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        self._reads = Gauge(
            "omnigraph_reads_running",
            "Reads that have a thread",
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        self._cancelled = Counter(
            "omnigraph_reads_cancelled",
            "Reads that were stopped since their client went away or their time was up",
            registry=self._registry,
        )

        self._operations = Histogram(
            "omnigraph_operation_seconds",
            "Seconds of an operation, by graph where metrics have an address of their own",
            ("graph", "operation", "outcome"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._waits = Histogram(
            "omnigraph_commit_wait_seconds",
            "Seconds that changes waited for others: in this process (queue) or machine (turn)",
            ("reason",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._commits = Counter("omnigraph_commits", "Commits", registry=self._registry)
        self._groups = Counter(
            "omnigraph_commit_groups", "Swaps that published commits", registry=self._registry
        )
        self._retries = Counter(
            "omnigraph_commit_retries",
            "Swaps that were repeated since another writer was faster",
            registry=self._registry,
        )
        self._memory = Gauge(
            "omnigraph_memory_bytes",
            "Memory: resident, of rows of running queries, of cached columns and topologies",
            ("kind",),
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        self._lookups = Counter(
            "omnigraph_column_cache_lookups",
            "Columns that a query looked up in memory",
            ("outcome",),
            registry=self._registry,
        )
        self._looked_up = column_cache_lookups()
        observe_commits(self._commit_event)

    def close(self) -> None:
        """Count commits no more."""
        ignore_commits(self._commit_event)

    def _commit_event(self, event: CommitEvent, value: float) -> None:
        match event:
            case CommitEvent.QUEUE_WAIT:
                self._waits.labels("queue").observe(value)
            case CommitEvent.TURN_WAIT:
                self._waits.labels("turn").observe(value)
            case CommitEvent.PUBLISHED:
                self._commits.inc(value)
                self._groups.inc()
            case CommitEvent.LOST_SWAP:
                self._retries.inc()

    def operated(self, graph: str | None, operation: str, status: int, seconds: float) -> None:
        """Count a call of an operation; `graph` is one that is served."""
        name = (graph or "") if self._names_graphs else ""
        outcome = "ok" if status < 400 else ("refused" if status < 500 else "failed")
        self._operations.labels(name, operation, outcome).observe(seconds)
        self._measure_memory()

    def _measure_memory(self, max_age: float = _MEMORY_SECONDS) -> None:
        now = time.monotonic()
        if now - self._measured_at < max_age:
            return
        self._measured_at = now
        self._memory.labels("resident").set(_resident_bytes())
        self._memory.labels("query_rows").set(PROCESS_MEMORY.used)
        self._memory.labels("column_cache").set(cached_column_bytes())
        self._memory.labels("topology_cache").set(cached_topology_bytes())
        lookups = column_cache_lookups()
        for outcome, number in lookups.items():
            self._lookups.labels(outcome).inc(number - self._looked_up[outcome])
        self._looked_up = lookups

    def read_begun(self) -> None:
        """Count a read that has a thread."""
        self._reads.inc()

    def read_ended(self, *, cancelled: bool) -> None:
        """Count it no more, and whether it was stopped since nothing waited for it."""
        self._reads.dec()
        if cancelled:
            self._cancelled.inc()

    def underway(self) -> AbstractContextManager[object]:
        """Count a request as long as it lasts."""
        return self._underway.track_inprogress()

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        known = method if method in _METHODS else "other"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(known, route).observe(seconds)

    def exposition(self) -> bytes:
        """Return all counts as Prometheus reads them."""
        self._measure_memory(max_age=0)
        if not self._shared:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together, path=self._folder)  # type: ignore[no-untyped-call]  # registers itself
        if self._maintenance is not None:
            together.register(self._maintenance)
        return generate_latest(together)


def _resident_bytes() -> int:
    """Return the memory of this process; 0 where the system does not show it."""
    if not sys.platform.startswith("linux"):
        return 0
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
