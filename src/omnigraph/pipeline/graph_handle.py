"""The interface of an open graph that Spark jobs use."""

from __future__ import annotations

from typing import Any, Protocol

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Snapshot
from omnigraph.commit.snapshot import SnapshotRef
from omnigraph.embed.config import VectorsFrom
from omnigraph.policy.authorization import AccessRights
from omnigraph.query.engine import Engine
from omnigraph.write.load import LoadResult
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

    def _check_load(self, branch: str | None, from_: str | None) -> AccessRights:
        """Allow a load before its rows are computed; return which types it may name."""

    def snapshot(self, at: SnapshotRef | None = None) -> Snapshot:
        """Return the state a branch, tag, commit id or time names."""

    def load(  # noqa: PLR0913 - the options of a load
        self,
        data: Any,  # noqa: ANN401 - what Graph.load takes
        *,
        mode: str = ...,
        branch: str | None = ...,
        from_: str | None = ...,
        message: str | None = ...,
        partial: bool = ...,
        vectors_from: VectorsFrom = ...,
    ) -> LoadResult:
        """Load data as one commit."""
        ...
