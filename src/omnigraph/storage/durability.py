"""The durability of commits on local disks: synced before they return, or left to the system."""

from __future__ import annotations

import os
from enum import StrEnum

from omnigraph.errors import InvalidInput

DURABILITY_VARIABLE = "OMNIGRAPH_DURABILITY"


class Durability(StrEnum):
    """When the files of a commit are on stable storage.

    FULL: before the call returns, so that the commit survives a power failure. RELAXED: when the
    operating system writes them; a power failure may lose the newest commits or damage the graph.
    """

    FULL = "full"
    RELAXED = "relaxed"


def parse_durability(value: str | None) -> Durability:
    """Return a durability by name; None is that of the environment, by default FULL.

    >>> parse_durability("relaxed")
    <Durability.RELAXED: 'relaxed'>
    """
    name = os.environ.get(DURABILITY_VARIABLE, "").strip() if value is None else value
    try:
        return Durability(name or Durability.FULL) if value is None else Durability(name)
    except ValueError as error:
        source = DURABILITY_VARIABLE if value is None else "durability"
        message = f"{source} is 'full' or 'relaxed', not '{name}'"
        raise InvalidInput(message, code="durability_invalid", value=name) from error
