"""The maintenance process of a server: `python -m omnigraph.server.maintenance_worker`.

It reads the settings of the server from standard input, and stops when that ends. Graphs of a
cluster are those of its applied revision.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

import msgspec

from omnigraph.commit.graph_creation import open_graph
from omnigraph.commit.manifest import Manifest
from omnigraph.errors import OmniError
from omnigraph.maintain.maintainer import Maintainer
from omnigraph.maintain.maintainer_process import become_maintainer_process
from omnigraph.maintain.maintenance_steps import MaintainerSettings
from omnigraph.maintain.retention import Retention
from omnigraph.server.logs import configure_logging
from omnigraph.server.maintenance_metrics import MaintenanceSummary
from omnigraph.server.settings import MaintenanceOptions, ServerSettings
from omnigraph.service.cluster.serving import open_store, read_applied_revision
from omnigraph.service.cluster.store import ClusterStore
from omnigraph.storage import locate

_log = logging.getLogger("omnigraph.server")


class _ServedMaintainer:
    """The maintainer of one served graph; it is opened when it is first due."""

    def __init__(self, uri: str, retention: Retention | None, options: MaintenanceOptions) -> None:
        self.target = (uri, retention)
        self._settings = MaintainerSettings(interval=options.interval, cpu_share=options.cpu_share)
        self.maintainer: Maintainer | None = None
        self.waiting = False
        self.due_at = 0.0

    def run(self, stop: threading.Event) -> None:
        """Run one pass if it is due."""
        if time.monotonic() < self.due_at:
            return
        self.due_at = time.monotonic() + self._settings.interval
        uri, retention = self.target
        if self.maintainer is None:
            try:
                manifest = Manifest(locate(uri))
                open_graph(manifest)
            except OmniError as error:
                _log.warning("%s is not maintained: %s", uri, error.message)
                return
            self.maintainer = Maintainer(manifest, self._settings, retention=retention)
        self.waiting = self.maintainer.run(stop).skipped
        self.due_at = time.monotonic() + self.maintainer.pause

    def close(self) -> None:
        """Release the graph."""
        if self.maintainer is not None:
            self.maintainer.close()


class ServedGraphs:
    """The graphs that a server serves, with their retention in the cluster file."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._store: ClusterStore | None = None
        self._revision: int | None = None
        self._targets: dict[str, tuple[str, Retention | None]] = {
            name: (uri, None) for name, uri in settings.graphs.items()
        }

    def read(self) -> dict[str, tuple[str, Retention | None]]:
        """Return addresses and retentions by graph ID; after an error those read before."""
        cluster = self._settings.cluster
        if cluster is not None:
            try:
                self._read_cluster(cluster)
            except OmniError as error:
                _log.warning("cannot read the ledger of the cluster: %s", error.message)
        return dict(self._targets)

    def _read_cluster(self, cluster: str) -> None:
        if self._store is None:
            self._store = open_store(cluster, None)
        if self._store.read().state.revision != self._revision:
            serving = read_applied_revision(cluster)
            graphs = [graph for graph in serving.graphs if graph.quarantine is None]
            self._targets = {graph.id: (graph.uri, graph.retention) for graph in graphs}
            self._revision = serving.revision


def maintain_graphs(settings: ServerSettings, stop: threading.Event) -> None:
    """Maintain the graphs of a server until `stop` is set, one after the other."""
    options = settings.maintenance or MaintenanceOptions()
    served, maintainers = ServedGraphs(settings), dict[str, _ServedMaintainer]()
    while not stop.is_set():
        targets = served.read()
        for name in [n for n, m in maintainers.items() if targets.get(n) != m.target]:
            maintainers.pop(name).close()
        for name, (uri, retention) in targets.items():
            maintainer = maintainers.setdefault(name, _ServedMaintainer(uri, retention, options))
            maintainer.run(stop)
        if options.metrics is not None:
            _summary(maintainers).write(Path(options.metrics))
        stop.wait(min(options.interval, max(0.1, _next_due(maintainers) - time.monotonic())))
    for maintainer in maintainers.values():
        maintainer.close()


def _next_due(maintainers: dict[str, _ServedMaintainer]) -> float:
    return min((maintainer.due_at for maintainer in maintainers.values()), default=float("inf"))


def _summary(maintainers: dict[str, _ServedMaintainer]) -> MaintenanceSummary:
    summary = MaintenanceSummary()
    for served in maintainers.values():
        if served.maintainer is not None:
            fragments = sum(served.maintainer.fragments.values())
            summary.add(served.maintainer.state, waiting=served.waiting, fragments=fragments)
    return summary


def main() -> None:
    """Maintain graphs until a signal stops the process, or its server is gone."""
    stop = become_maintainer_process()
    configure_logging(os.environ)
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=ServerSettings)
    threading.Thread(target=_stop_when_orphaned, daemon=True).start()
    maintain_graphs(settings, stop)


def _stop_when_orphaned() -> None:
    # Not `sys.stdin`: a daemon thread that holds its lock aborts the interpreter when it exits.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
