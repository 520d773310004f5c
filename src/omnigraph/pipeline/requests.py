"""This module defines how a pipeline asks to write, and how it is stopped."""

from __future__ import annotations

from typing import Protocol

from omnigraph.write.request import Request


class MakeRequest(Protocol):
    """Makes what a write says about itself, for whoever the graph is bound to."""

    def __call__(self, operation: str, branch: str | None, message: str | None) -> Request:
        """Return the request of a write."""


class PipelineInterrupted(KeyboardInterrupt):
    """Somebody stopped a run; it can be resumed or aborted."""

    def __init__(self, run: str) -> None:
        super().__init__(f"run {run} was interrupted; resume or abort it")
        self.run = run
