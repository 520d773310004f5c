"""This module holds what all parts of a graph's face share: which graph, where, and for whom."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, CommitId, Snapshot
from omnigraph.commit.snapshot import Target, resolve_snapshot
from omnigraph.errors import InvalidInput
from omnigraph.query.engine import Engine
from omnigraph.write.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A graph, the actor it is bound to, and the branch it reads and writes unless told otherwise.

    `external_blobs` are places below which blobs given as a URI may lie.
    """

    manifest: Manifest
    engine: Engine
    mode: str
    actor: str | None = None
    on: str = MAIN
    external_blobs: tuple[str, ...] = ()

    def snapshot(self, at: Target | None = None) -> Snapshot:
        """Return the state a branch, tag, commit id or time names."""
        return resolve_snapshot(self.manifest, self.on if at is None else at, branch=self.on)

    def request(
        self,
        operation: str,
        branch: str | None,
        message: str | None,
        if_commit: str | None = None,
    ) -> Request:
        """Return what a write says about itself."""
        self.writable()
        return Request(
            branch=self.on if branch is None else branch,
            operation=operation,
            actor=self.actor,
            message=message,
            if_commit=CommitId(if_commit) if if_commit is not None else None,
            external_blobs=self.external_blobs,
            embedder=self.engine.embedder,
        )

    def writable(self) -> None:
        """Refuse to write to a graph that was opened to be read."""
        if self.mode != "rw":
            raise InvalidInput("this graph is open read-only", code="read_only")
