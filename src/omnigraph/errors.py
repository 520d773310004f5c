"""This module defines the one root error every public call may raise, and its categories.

A caller that wants to react catches a subclass; a caller that wants to report reads
`code`, `category`, `message` and `details`, which mean the same on every surface.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Category(StrEnum):
    """What kind of trouble this is, and therefore what a caller may do about it."""

    INVALID = "invalid"
    NOT_FOUND = "not_found"
    DENIED = "denied"
    CONFLICT = "conflict"
    CONTENTION = "contention"
    LIMIT = "limit"
    UNAVAILABLE = "unavailable"
    OUTCOME_UNKNOWN = "outcome_unknown"
    INTERNAL = "internal"


class OmniError(Exception):
    """The root of every error this package raises on purpose."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        category: Category = Category.INVALID,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.category = category
        self.details: dict[str, Any] = dict(details or {})

    def to_json(self) -> dict[str, Any]:
        """Return the facts of this error as plain JSON values."""
        return {
            "code": self.code,
            "category": str(self.category),
            "message": self.message,
            "details": self.details,
        }
