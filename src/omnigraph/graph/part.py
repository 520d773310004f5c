"""What all parts of a graph share: how to reach the graph, and its current branch."""

from __future__ import annotations

from abc import ABC
from typing import Generic, Protocol, Self, TypeVar


class BranchContext(Protocol):
    """How to reach a graph, and the branch that is read and written by default."""

    @property
    def current_branch(self) -> str:
        """The branch."""

    def on_branch(self, name: str) -> Self:
        """Return the same with another branch."""


_ContextT = TypeVar("_ContextT", bound=BranchContext)
_StateT = TypeVar("_StateT")


class GraphPart(ABC, Generic[_ContextT, _StateT]):
    """Something of a graph, and how to reach the graph."""

    def __init__(self, context: _ContextT) -> None:
        self._context = context

    def _branch(self, name: str | None) -> str:
        """Return the branch that is meant: the current one by default."""
        return name or self._context.current_branch
