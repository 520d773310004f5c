"""Errors of pipelines and Spark jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.errors import Category, OmniError


class SparkUnavailable(OmniError):
    """Spark cannot be used here: it or Java is missing, or a cluster does not answer."""

    def __init__(self, message: str, *, code: str, **details: Any) -> None:  # noqa: ANN401
        super().__init__(message, code=code, category=Category.UNAVAILABLE, details=details)


class TooManyRejects(OmniError):
    """More rows were rejected than the load allows; nothing was changed."""

    def __init__(
        self,
        rejected: Mapping[str, Mapping[str, int]],
        number: int,
        given: int,
        folder: str | None,
    ) -> None:
        why = "more than `max_rejects` allows" if number < given else "so none are left to load"
        message = (
            f"{number} of {given} rows were rejected, {why}; nothing was published. "
            f"The rows and the reasons are in {folder}"
        )
        details = {
            "rejected": {key: dict(counts) for key, counts in rejected.items()},
            "given": given,
            "rejects": folder,
        }
        super().__init__(message, code="too_many_rejects", details=details)


class RunStopped(OmniError):
    """This process cannot continue a run: it was aborted, or another process owns it."""

    def __init__(self, message: str, *, code: str, run: str) -> None:
        super().__init__(message, code=code, category=Category.CONFLICT, details={"run": run})

    @classmethod
    def aborted(cls, run: str) -> RunStopped:
        """Return the error of an aborted run."""
        message = (
            f"run {run} was aborted: nothing was published, and its staged files were removed; "
            "run the pipeline again to start over"
        )
        return cls(message, code="run_aborted", run=run)

    @classmethod
    def busy(cls, run: str, who: str, heard: str) -> RunStopped:
        """Return the error of a run that another process is running."""
        message = (
            f"run {run} is still running in {who} (last heartbeat {heard}): wait until it ends, "
            f"or stop it with `omnigraph pipeline abort {run}`"
        )
        return cls(message, code="run_alive", run=run)

    @classmethod
    def taken(cls, run: str, who: str) -> RunStopped:
        """Return the error of a run that another process took over."""
        message = f"run {run} was taken over by {who}, because this process appeared to be dead"
        return cls(message, code="run_taken", run=run)


class SparkFailed(OmniError):
    """A job on Spark failed; nothing was changed."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message, code=code, category=Category.UNAVAILABLE)
