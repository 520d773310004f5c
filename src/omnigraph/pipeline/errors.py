"""This module defines what stands between a caller and Spark."""

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
        why = "more than `max_rejects` allows" if number < given else "which leaves none"
        message = (
            f"{number} of {given} rows were rejected, {why}; nothing was published. "
            f"{folder} says what is wrong with each"
        )
        details = {
            "rejected": {key: dict(counts) for key, counts in rejected.items()},
            "given": given,
            "rejects": folder,
        }
        super().__init__(message, code="too_many_rejects", details=details)


class SparkFailed(OmniError):
    """A job on Spark failed; nothing was changed."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message, code=code, category=Category.UNAVAILABLE)
