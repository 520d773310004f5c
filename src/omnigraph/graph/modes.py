"""The words that arguments of a graph accept, for type checkers and editors.

The functions check them at run time as well, so a plain string from elsewhere gets an error that
lists the valid ones.
"""

from __future__ import annotations

from typing import Literal

LoadMode = Literal["append", "merge", "overwrite"]
"""How to handle entities that already exist."""
OpenMode = Literal["rw", "ro"]
"""Whether a graph is opened for reading and writing, or for reading only."""
EngineName = Literal["local", "spark"]
"""What computes: this process, or Spark."""
Durability = Literal["full", "relaxed"]
"""Whether a commit is synced to the local disk before the call returns."""
