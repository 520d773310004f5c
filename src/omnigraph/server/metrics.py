"""Prometheus metrics; several processes add up in a shared folder."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from omnigraph.server.maintenance_metrics import MaintenanceMetrics

METRICS_DIR_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder that the processes of a server share."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class ServerMetrics:
    """What is counted: never a graph, an actor or anything else a caller named."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, *, shared: bool = False, maintenance: str | None = None) -> None:
        self._registry = CollectorRegistry()
        self._shared = shared
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
        if not self._shared:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]  # registers itself
        if self._maintenance is not None:
            together.register(self._maintenance)
        return generate_latest(together)
