"""Save short commands what they do not need of libraries: pandas, and threads of linear algebra.

PyArrow imports pandas where it is installed, to recognise its frames, and NumPy starts a thread for
each core. Both take longer than a short query, and no short command needs them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType

LIGHT_COMMANDS = ("query", "explain", "mutate", "branch", "tag", "commit", "snapshot")
"""Commands that need neither, unless they run on Spark."""
_THREADS = "OPENBLAS_NUM_THREADS"


class _NoPandas:
    """A finder of modules that reports pandas as not installed."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        """Raise ModuleNotFoundError for pandas; leave the rest to others."""
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named '{fullname}'", name=fullname)


def start_light(line: Sequence[str]) -> None:
    """Prepare this process for a command line, before its libraries are imported."""
    is_light = any(word in LIGHT_COMMANDS for word in line)
    if is_light and not any("spark" in word for word in line):
        os.environ.setdefault(_THREADS, "1")
        if "pandas" not in sys.modules:
            sys.meta_path.insert(0, _NoPandas())
