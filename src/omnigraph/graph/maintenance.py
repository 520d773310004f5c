"""Maintenance that runs by itself, the retention of a graph, and its status."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from threading import Event

from omnigraph.commit.snapshot import SnapshotRef
from omnigraph.graph.context import GraphContext
from omnigraph.maintain.maintainer import Maintainer
from omnigraph.maintain.maintenance_steps import MaintainerSettings, MaintenancePass
from omnigraph.maintain.retention import Retention, read_retention, write_retention
from omnigraph.maintain.status import GraphStatus, read_status


class Maintenance:
    """The automatic maintenance of a graph: compaction, indexes, topology files, cleanup."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context

    def run(self, settings: MaintainerSettings | None = None) -> MaintenancePass:
        """Run one pass: everything that is due. Errors and lost races are part of the result.

        Nothing is done while another process maintains the graph.
        """
        maintainer = self._maintainer(settings)
        try:
            return maintainer.run()
        finally:
            maintainer.close()

    def watch(
        self,
        stop: Event,
        settings: MaintainerSettings | None = None,
        report: Callable[[MaintenancePass], None] = lambda _: None,
    ) -> None:
        """Run passes until `stop` is set, e.g. in a thread; wait while another process does.

        `report` is called after each pass.
        """
        self._maintainer(settings).watch(stop, report)

    def _maintainer(self, settings: MaintainerSettings | None) -> Maintainer:
        self._context.check_maintenance("maintenance")
        self._context.require_writable()
        return Maintainer(self._context.manifest, settings, actor=self._context.gate.actor)

    def retention(self) -> Retention | None:
        """Return the declared retention; without one nothing is removed automatically."""
        self._context.check_maintenance("the retention")
        return read_retention(self._context.manifest.objects)

    def set_retention(
        self, *, keep: int | None = None, older_than: timedelta | None = None
    ) -> Retention:
        """Declare which commits automatic cleanup keeps: those that either limit keeps."""
        self._context.check_maintenance("the retention")
        self._context.require_writable()
        retention = Retention(keep=keep, older_than=older_than)
        write_retention(self._context.manifest.objects, retention)
        return retention

    def clear_retention(self) -> None:
        """Declare no retention: nothing is removed automatically any more."""
        self._context.check_maintenance("the retention")
        self._context.require_writable()
        write_retention(self._context.manifest.objects, None)

    def status(self, at: SnapshotRef | None = None) -> GraphStatus:
        """Return sizes, fragments, index coverage, the retention and the maintainer."""
        self._context.check_maintenance("the status")
        return read_status(self._context.manifest, self._context.state(at))
