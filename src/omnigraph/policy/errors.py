"""Errors of policies: an invalid file, and a denied action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import Category, OmniError


@dataclass(frozen=True, slots=True, order=True)
class PolicyProblem:
    """One problem of a file, with its line."""

    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


class PolicyInvalid(OmniError):
    """A policy, or a file of tests for one, is invalid; `problems` lists every problem."""

    def __init__(self, what: str, problems: Sequence[PolicyProblem]) -> None:
        self.problems = tuple(sorted(problems))
        problems_json = [{"line": p.line, "message": p.message} for p in self.problems]
        super().__init__(
            "\n".join([f"the {what} is invalid:", *(f"  {p}" for p in self.problems)]),
            code="policy_invalid",
            category=Category.INVALID,
            details={"problems": problems_json},
        )


class PolicyDenied(OmniError):
    """A policy does not allow the action of an actor; nothing was changed."""

    def __init__(self, message: str, *, code: str = "forbidden", **details: Any) -> None:  # noqa: ANN401
        super().__init__(message, code=code, category=Category.DENIED, details=details)
