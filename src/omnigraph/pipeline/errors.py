"""This module defines what stands between a caller and Spark."""

from __future__ import annotations

from typing import Any

from omnigraph.errors import Category, OmniError


class SparkUnavailable(OmniError):
    """Spark cannot be used here: it or Java is missing, or a cluster does not answer."""

    def __init__(self, message: str, *, code: str, **details: Any) -> None:  # noqa: ANN401
        super().__init__(message, code=code, category=Category.UNAVAILABLE, details=details)
