"""Run a function on executors for each of many tasks, as a data frame."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

_TaskT = TypeVar("_TaskT")
_TASKS = "number int, task binary"


def map_tasks(
    spark: SparkSession,
    tasks: Sequence[_TaskT],
    work: Callable[[_TaskT], Iterable[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """Return what a function yields for each task as a frame; every task is one of Spark.

    Tasks are pickled, and an executor gets only its own: what Spark sends to all of them does not
    grow with their number.
    """
    if not tasks:
        return spark.createDataFrame([], schema)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch["task"].to_pylist():
                # What is read here was written below.
                yield from work(pickle.loads(task))  # noqa: S301

    rows = [(number, pickle.dumps(task)) for number, task in enumerate(tasks)]
    frame = spark.createDataFrame(rows, _TASKS)
    return frame.repartitionById(len(tasks), "number").mapInArrow(run, schema)
