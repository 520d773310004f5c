"""Functions of packages above, named by the rows of registries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any


@dataclass(frozen=True, slots=True)
class Implementation:
    """A function of a package above that of its row, as `package.module:name`.

    Naming it instead of importing it keeps imports pointing downward.
    """

    path: str

    def load(self) -> Callable[..., Any]:
        """Return the function; its module is imported the first time."""
        return _load(self.path)


@cache
def _load(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function
