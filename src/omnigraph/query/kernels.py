"""Loops over edges that NumPy cannot express, compiled when first used.

Compiling needs numba, whose import takes longer than most queries, so nothing here is used for a
few nodes. The compiled form is kept beside this file, or in the cache of the user. Where a time
limit leaves no time to compile, callers do the same with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import cached_property
from importlib import import_module
from threading import Lock, Thread
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.signedinteger[Any]]
_P = ParamSpec("_P")
_R = TypeVar("_R")


class CompiledKernel(Generic[_P, _R]):
    """A function that is compiled for each combination of argument types it is called with."""

    def __init__(self, loop: Callable[_P, _R]) -> None:
        self._loop = loop
        self._jobs: dict[Any, Future[None]] = {}
        self._lock, self._making = Lock(), Lock()

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Run the loop, compiling it first where that was not done yet."""
        with self._making:
            dispatcher = self._dispatcher
        result: _R = dispatcher(*args, **kwargs)
        return result

    def is_ready(self, *args: Any, seconds: float | None) -> bool:  # noqa: ANN401 - as it is called
        """Return whether the loop is compiled for such arguments, after waiting some seconds.

        It is compiled in a thread of its own, which goes on when the time to wait is over.
        """
        kind = _argument_type(args)
        with self._lock:
            job = self._jobs.get(kind)
            if job is None:
                job = self._jobs[kind] = self._started(tuple(map(_sample_argument, args)))
        try:
            job.result(seconds)
        except TimeoutError:
            return False
        return True

    def _started(self, examples: tuple[Any, ...]) -> Future[None]:
        job: Future[None] = Future()

        def compile_loop() -> None:
            try:
                types = tuple(map(import_module("numba").typeof, examples))
                with self._making:
                    dispatcher = self._dispatcher
                dispatcher.compile(types)
            except BaseException as error:  # noqa: BLE001 - raised where the result is waited for
                job.set_exception(error)
            else:
                job.set_result(None)

        Thread(target=compile_loop, name=f"compile {self._loop.__name__}").start()
        return job

    @cached_property
    def _dispatcher(self) -> Any:  # noqa: ANN401 - of numba
        compiler = import_module("numba").njit
        try:
            return compiler(cache=True, nogil=True)(self._loop)
        except RuntimeError:  # there is no place to keep it
            return compiler(nogil=True)(self._loop)


def _argument_type(value: Any) -> Any:  # noqa: ANN401 - an argument of a kernel
    """Return what the compiled form depends on."""
    if isinstance(value, tuple):
        return tuple(map(_argument_type, value))
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.flags.writeable
    return type(value)


def _sample_argument(value: Any) -> Any:  # noqa: ANN401 - an argument of a kernel
    """Return a value of the same type that takes no memory."""
    if isinstance(value, tuple):
        return tuple(map(_sample_argument, value))
    if not isinstance(value, np.ndarray):
        return value
    empty = np.empty(0, value.dtype)
    empty.flags.writeable = value.flags.writeable
    return empty


@CompiledKernel
def group_by_key(keys: Numbers, order: Numbers, starts: Numbers) -> Numbers:
    """Return the members of `order` by their keys, in the same order among equals.

    `starts` says where each key begins, and is used up.
    """
    grouped = np.empty_like(order)
    for place in range(len(order)):
        member = order[place]
        key = keys[member]
        grouped[starts[key]] = member
        starts[key] += 1
    return grouped


@CompiledKernel
def count_common_neighbours(
    one: tuple[Numbers, Numbers],
    here: Numbers,
    other: tuple[Numbers, Numbers],
    there: Numbers,
    marks: Numbers,
) -> npt.NDArray[np.int64]:
    """Count for each pair the neighbours both have; each node has each neighbour once.

    `marks` has a zero for each neighbour there may be. It is quickest when pairs with the same
    second member follow each other, whose neighbours are marked once.
    """
    starts, nodes = one
    other_starts, other_nodes = other
    counts = np.zeros(len(here), np.int64)
    mark = 0
    for row in range(len(here)):
        if row == 0 or there[row] != there[row - 1]:
            mark += 1
            for place in range(other_starts[there[row]], other_starts[there[row] + 1]):
                marks[other_nodes[place]] = mark
        count = 0
        for place in range(starts[here[row]], starts[here[row] + 1]):
            count += marks[nodes[place]] == mark
        counts[row] = count
    return counts


@CompiledKernel
def search_breadth_first(
    arrays: tuple[Numbers, Numbers],
    begin: Numbers,
    bounds: tuple[int, int],
    seen: Numbers,
    max_nodes: int,
) -> tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Search breadth first from each start, until more than `max_nodes` nodes are found.

    It also stops after having looked at many times as many edges, so that the caller can check the
    clock.

    Returns how many starts were searched from, and pairs of the number of a start and a node.
    `seen` has a zero for each node. A self-loop leads to its node once, within the bounds, and not
    on from there.
    """
    starts, nodes = arrays
    minimum, maximum = bounds
    rows, reached = np.empty(1024, np.int64), np.empty(1024, np.int64)
    queue = np.empty(1024, np.int64)
    size = done = effort = 0
    while done < len(begin) and size + effort // 64 <= max_nodes:
        # A node is marked when it is met, and with one more when it is also returned.
        mark = 2 * done + 1
        seen[begin[done]] = mark
        queue[0] = begin[done]
        first, last = 0, 1
        for hop in range(1, maximum + 1):
            stop = last
            returned = hop >= minimum
            for place in range(first, stop):
                node = queue[place]
                effort += starts[node + 1] - starts[node]
                for edge in range(starts[node], starts[node + 1]):
                    target = nodes[edge]
                    if target == node:
                        if not returned or seen[node] == mark + 1:
                            continue
                        seen[node] = mark + 1
                    elif seen[target] >= mark:
                        continue
                    else:
                        seen[target] = mark + returned
                        if last == len(queue):
                            queue = np.concatenate((queue, np.empty_like(queue)))
                        queue[last] = target
                        last += 1
                    if returned:
                        if size == len(rows):
                            rows = np.concatenate((rows, np.empty_like(rows)))
                            reached = np.concatenate((reached, np.empty_like(reached)))
                        rows[size], reached[size] = done, target
                        size += 1
            if stop == last:
                break
            first = stop
        done += 1
    return done, rows[:size], reached[:size]
