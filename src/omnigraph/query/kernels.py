"""Loops over edges of queries, compiled ahead of time.

Each has a `check`, called at least every 50 ms or so, which raises where the query is to end. Where
there is no compiled library, `is_available` is false and callers do the same with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from omnigraph.query import kernel_library
from omnigraph.query.kernel_library import KernelLibrary, Numbers, contiguous, edge_arrays

STEP_EDGES = 500_000
"""Edges that are followed between two checks."""
Check = Callable[[], None]


def is_available() -> bool:
    """Return whether there are compiled kernels."""
    return kernel_library.LIBRARY is not None


def _library() -> KernelLibrary:
    assert kernel_library.LIBRARY is not None, "callers ask whether kernels are available"
    return kernel_library.LIBRARY


def group_by_key(keys: Numbers, order: Numbers, starts: Numbers, check: Check) -> Numbers:
    """Return the members of `order` by their keys, in the same order among equals.

    `starts` says where each key begins, and is used up.
    """
    keys, order = contiguous(keys, keys.dtype), contiguous(order, order.dtype)
    grouped, name = np.empty_like(order), f"group_by_key_k{8 * keys.itemsize}"
    for begin in range(0, len(order), STEP_EDGES):
        check()
        end = min(begin + STEP_EDGES, len(order))
        _library().run(name, keys, order, starts, grouped, begin, end, nodes=order)
    return grouped


def count_common_neighbours(
    one: tuple[Numbers, Numbers],
    here: Numbers,
    other: tuple[Numbers, Numbers],
    there: Numbers,
    width: int,
    check: Check,
) -> npt.NDArray[np.int64]:
    """Count for each pair the neighbours both have; each node has each neighbour once.

    `width` is how many neighbours there may be. It is quickest when pairs with the same second
    member follow each other, whose neighbours are marked once.
    """
    (starts, nodes), (other_starts, other_nodes) = edge_arrays(*one), edge_arrays(*other)
    if nodes.dtype != other_nodes.dtype:
        nodes, other_nodes = contiguous(nodes, np.int64), contiguous(other_nodes, np.int64)
    here, there = contiguous(here, np.int64), contiguous(there, np.int64)
    marks, counts = np.zeros(width, np.int32), np.empty(len(here), np.int64)
    edges = starts, nodes, here, other_starts, other_nodes, there
    row = 0
    while row < len(here):
        check()
        row = _library().run(
            "count_common_neighbours",
            *edges,
            marks,
            counts,
            len(here),
            row,
            STEP_EDGES,
            nodes=nodes,
        )
    return counts


def search_breadth_first(
    arrays: tuple[Numbers, Numbers],
    begin: Numbers,
    bounds: tuple[int, int],
    most: int,
    check: Check,
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Search breadth first from each start; yield numbers of starts and nodes they reach.

    At most `most` pairs are yielded at once. A self-loop leads to its node once, within the bounds,
    and not on from there.
    """
    (starts, nodes), begin = edge_arrays(*arrays), contiguous(begin, np.int64)
    count = len(starts) - 1
    seen, queue = np.zeros(count, np.int64), np.empty(max(count, 1), np.int64)
    state = np.zeros(6, np.int64)
    while state[0] < len(begin):
        rows, reached = np.empty(most, np.int64), np.empty(most, np.int64)
        size = 0
        while size < most and state[0] < len(begin):
            check()
            size += _library().run(
                "search_breadth_first",
                *(starts, nodes, begin, len(begin), *bounds, seen, queue, state),
                *(rows[size:], reached[size:], most - size, STEP_EDGES),
                nodes=nodes,
            )
        yield rows[:size], reached[:size]
