"""Metrics of automatic maintenance: written by its process, read by those that answer requests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from omnigraph.maintain.maintainer_lock import MaintainerState

_PREFIX = "omnigraph_maintenance"
_TOTALS = (
    ("passes", "Passes of maintenance over a graph"),
    ("seconds", "Seconds that steps of maintenance took"),
    ("lost_races", "Steps that writers were faster than"),
    ("failures", "Steps that failed"),
    ("bytes_removed", "Bytes that cleanup removed"),
)


@dataclass(slots=True)
class MaintenanceSummary:
    """What the maintenance of all graphs of a server did; times are seconds since the epoch.

    `last_success` is that of the graph for which it is the longest ago. `waiting` are graphs that
    another process maintains.
    """

    graphs: int = 0
    waiting: int = 0
    failing: int = 0
    passes: int = 0
    seconds: float = 0.0
    lost_races: int = 0
    failures: int = 0
    bytes_removed: int = 0
    fragments: int = 0
    done: dict[str, int] = field(default_factory=dict)
    last_success: float | None = None
    last_error: float | None = None

    def add(self, state: MaintainerState, *, waiting: bool, fragments: int = 0) -> None:
        """Add the maintainer of one graph."""
        self.fragments += fragments
        self.graphs += 1
        self.waiting += waiting
        self.failing += state.last_error is not None
        for name, _ in _TOTALS:
            setattr(self, name, getattr(self, name) + getattr(state, name))
        for task, count in state.done.items():
            self.done[task] = self.done.get(task, 0) + count
        if state.last_success_at is not None:
            self.last_success = min(_seconds(state.last_success_at), self.last_success or 1e12)
        if state.last_error_at is not None:
            self.last_error = max(_seconds(state.last_error_at), self.last_error or 0.0)

    def write(self, path: Path) -> None:
        """Replace the file that other processes read."""
        scratch = path.with_name(f".{path.name}")
        with suppress(OSError):
            scratch.write_text(json.dumps(asdict(self)))
            os.replace(scratch, path)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


class MaintenanceMetrics(Collector):
    """Reads the summary whenever metrics are requested."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def collect(self) -> Iterable[Metric]:
        """Return the metrics; zeros before the process of maintenance has recorded anything."""
        try:
            summary = MaintenanceSummary(**json.loads(self._path.read_text()))
        except (OSError, ValueError, TypeError):
            summary = MaintenanceSummary()
        return list(_families(summary))


def _families(summary: MaintenanceSummary) -> Iterator[Metric]:
    graphs = GaugeMetricFamily(f"{_PREFIX}_graphs", "Graphs by state", labels=["state"])
    for state in ("waiting", "failing"):
        graphs.add_metric([state], getattr(summary, state))
    graphs.add_metric(["served"], summary.graphs)
    yield graphs
    steps = CounterMetricFamily(f"{_PREFIX}_steps", "Steps that changed something", labels=["task"])
    for task in ("compaction", "index", "topology", "cleanup"):
        steps.add_metric([task], summary.done.get(task, 0))
    yield steps
    about = "Fragments of all types of main, when they were counted last"
    yield GaugeMetricFamily("omnigraph_fragments", about, value=summary.fragments)
    for name, about in _TOTALS:
        yield CounterMetricFamily(f"{_PREFIX}_{name}", about, value=getattr(summary, name))
    for name, about in (
        ("last_success", "Time of the last pass without error, the oldest of all graphs"),
        ("last_error", "Time of the last error, while it lasts"),
    ):
        time = getattr(summary, name) or 0.0
        yield GaugeMetricFamily(f"{_PREFIX}_{name}_timestamp_seconds", about, value=time)
