"""The interface of an open graph that Spark jobs use."""

from __future__ import annotations

from typing import Protocol

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.commit.snapshot import SnapshotRef
from omnigraph.query.engine import Engine
from omnigraph.write.request import WriteRequest


class GraphHandle(Protocol):
    """A graph that is open, bound to a branch."""

    @property
    def _manifest(self) -> Manifest:
        """The graph itself."""

    @property
    def _engine(self) -> Engine:
        """What answers its queries."""

    @property
    def branch_name(self) -> str:
        """The branch it is bound to."""
        ...

    def _for_spark(self) -> Manifest:
        """Return the graph for a job that sees all types."""

    def _request(self, operation: str, branch: str | None, message: str | None) -> WriteRequest:
        """Return what a write says about itself."""

    def _load_request(
        self, branch: str | None, from_: str | None, message: str | None
    ) -> WriteRequest:
        """Allow a load of one type on Spark, before its rows are computed."""
        ...

    def snapshot(self, at: SnapshotRef | None = None) -> Snapshot:
        """Return the state a branch, tag, commit id or time names."""
