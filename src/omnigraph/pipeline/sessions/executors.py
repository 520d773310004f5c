"""Run functions on executors: one task each, results in the order of the tasks."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from omnigraph.errors import Category, OmniError
from omnigraph.pipeline.sessions.session import session
from omnigraph.pipeline.sessions.tasks import map_tasks

_TaskT = TypeVar("_TaskT")
_DoneT = TypeVar("_DoneT")
_RESULTS = "number bigint, done binary"


def run_on_executors(
    spark: SparkSession, work: Callable[[_TaskT], _DoneT], tasks: Sequence[_TaskT]
) -> list[_DoneT]:
    """Run a function for each task on executors, and return the results.

    Tasks and results are pickled. An OmniError of a task is raised here; a task may run more than
    once, so the function must be idempotent.
    """

    def run(task: tuple[int, _TaskT]) -> Iterator[pa.RecordBatch]:
        done = pickle.dumps(_attempt(work, task[1]))
        columns = [pa.array([task[0]], pa.int64()), pa.array([done], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, names=["number", "done"])

    rows = map_tasks(spark, list(enumerate(tasks)), run, _RESULTS).collect() if tasks else []
    # What is read here was written by the function above.
    found = {row["number"]: pickle.loads(row["done"]) for row in rows}  # noqa: S301
    return [_result(found[number]) for number in range(len(tasks))]


def _attempt(work: Callable[[Any], Any], task: Any) -> tuple[bool, Any]:  # noqa: ANN401 - as above
    try:
        return True, work(task)
    except OmniError as error:
        return False, error.to_json()


def _result(done: tuple[bool, Any]) -> Any:  # noqa: ANN401 - whatever the work gives
    worked, value = done
    if worked:
        return value
    category = Category(value["category"])
    message, code, details = value["message"], value["code"], value["details"]
    raise OmniError(message, code=code, category=category, details=details)


def on_spark(work: Callable[[_TaskT], _DoneT], tasks: Sequence[_TaskT]) -> list[_DoneT]:
    """Do the same on the running session, or on a new one."""
    return run_on_executors(session(), work, tasks)
