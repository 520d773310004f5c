"""The library of kernels, compiled from `kernels.c` when the package is built or installed.

Where it is missing, because there was no compiler, callers do the same with NumPy, more slowly.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.signedinteger[Any]]
VERSION = 2
"""The version of the functions that is called; one built from other sources is not used."""
PATH = Path(__file__).with_name("_kernels.dll" if sys.platform == "win32" else "_kernels.so")


class KernelLibrary:
    """Compiled kernels by name; a call lets other threads run."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def run(self, name: str, *args: npt.NDArray[Any] | int, nodes: Numbers) -> int:
        """Run the variant of a kernel for the type of `nodes`; arrays are passed as pointers.

        Arrays that a kernel writes to must be contiguous.
        """
        function = getattr(self._library, f"{name}_i{8 * nodes.itemsize}")
        function.restype = ctypes.c_int64
        result: int = function(*map(_argument, args))
        return result


def _argument(value: npt.NDArray[Any] | int) -> Any:  # noqa: ANN401 - of ctypes
    if isinstance(value, int):
        return ctypes.c_int64(value)
    assert value.flags.c_contiguous, "kernels read contiguous arrays"
    assert value.flags.aligned, "kernels read aligned arrays"
    return ctypes.c_void_p(value.ctypes.data)


def contiguous(array: npt.NDArray[Any], kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array as kernels read it: itself unless it has to be converted."""
    return np.require(array, kind, ["C", "A"])


def edge_arrays(starts: Numbers, nodes: Numbers) -> tuple[Numbers, Numbers]:
    """Return where the neighbours of each node start and all neighbours, as kernels read them."""
    return contiguous(starts, np.int64), contiguous(nodes, nodes.dtype)


def load_library(path: Path = PATH) -> KernelLibrary | None:
    """Return the compiled kernels; None where there are none of this version."""
    try:
        library = ctypes.CDLL(str(path))
        library.kernels_version.restype = ctypes.c_int64
        version = library.kernels_version()
    except (OSError, AttributeError):
        return None
    return KernelLibrary(library) if version == VERSION else None


LIBRARY = load_library()
"""The kernels of this installation."""
