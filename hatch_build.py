"""Compile the kernels of queries, and refuse to build a distribution without Studio.

An editable installation works without Studio, and every installation without compiled kernels:
NumPy does the same then, more slowly. `python hatch_build.py` compiles them in place.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_BUILT = ("src/omnigraph/server/studio/index.html", "src/omnigraph/notebook/canvas/canvas.js")
_SOURCE = "src/omnigraph/query/kernels.c"
_LIBRARY = f"src/omnigraph/query/_kernels.{'dll' if sys.platform == 'win32' else 'so'}"
_OPTIONS = ("-O3", "-std=c99", "-ffp-contract=off", "-fvisibility=hidden", "-shared", "-fPIC")


class DistributionHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compile the kernels, and check that the files of Studio are there to be packaged."""

    def dependencies(self) -> list[str]:
        """Return what a build needs: a C compiler from PyPI where there is no other."""
        return [] if self.target_name != "wheel" or any(_system_compilers()) else ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raise FileNotFoundError for a distribution whose `/` would be a page of instructions."""
        built = all(Path(self.root, path).is_file() for path in _BUILT)
        if version != "editable" and not built:
            message = "Studio is not built: run `make ui`, then build the distribution"
            raise FileNotFoundError(message)
        if self.target_name != "wheel":
            return
        source, library = Path(self.root, _SOURCE), Path(self.root, _LIBRARY)
        if compile_kernels(source, library) and version != "editable":
            build_data["artifacts"].append(_LIBRARY)
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data.update(pure_python=False, tag=f"py3-none-{platform}")


def compile_kernels(source: Path, library: Path) -> bool:
    """Compile the kernels unless they are newer than their source; return whether there are any.

    Where no compiler works there are none, and an older library is removed.
    """
    if library.is_file() and library.stat().st_mtime > source.stat().st_mtime:
        return True
    made = library.with_name(f"{library.name}.{os.getpid()}")
    for compiler in (*_system_compilers(), *_packaged_compilers()):
        command = [*compiler, *_OPTIONS, str(source), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode == 0:
            made.replace(library)
            return True
        _report(f"{shlex.join(compiler)} cannot compile the kernels: {done.stderr}")
    _report("No C compiler works: queries use NumPy instead of compiled kernels.")
    library.unlink(missing_ok=True)
    return False


def _report(message: str) -> None:
    sys.stderr.write(f"{message}\n")


def _system_compilers() -> Iterator[list[str]]:
    """Yield the commands of the C compilers of this machine."""
    named = shlex.split(os.environ.get("CC", ""))
    for command in (named, ["cc"], ["gcc"], ["clang"]):
        if command and shutil.which(command[0]):
            yield command


def _packaged_compilers() -> Iterator[list[str]]:
    """Yield the command of the compiler that a package brings."""
    if find_spec("ziglang"):
        yield [sys.executable, "-m", "ziglang", "cc"]


if __name__ == "__main__":
    compile_kernels(Path(_SOURCE), Path(_LIBRARY))
