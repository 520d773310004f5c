"""How a pipeline requests writes, and how it is interrupted."""

from __future__ import annotations

from typing import Protocol

from omnigraph.write.request import WriteRequest


class RequestFactory(Protocol):
    """Creates the request of a write for the actor that the graph is bound to."""

    def __call__(self, operation: str, branch: str | None, message: str | None) -> WriteRequest:
        """Return the request of a write."""


class PipelineInterrupted(KeyboardInterrupt):
    """A run was interrupted: before it was published, or before it was completed."""

    def __init__(self, run: str, *, is_published: bool) -> None:
        super().__init__(f"run {run} was interrupted")
        self.run = run
        self.is_published = is_published
