"""Translate errors of Spark into errors that name the next step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from ulid import ULID

from omnigraph.pipeline.errors import SparkFailed

_ADVICE = (
    (
        r"No space left on device|Disk quota exceeded",
        "spark_disk_full",
        "Spark's scratch space is full: free some space, or set `spark.local.dir` to a larger disk",
    ),
    (
        r"OutOfMemoryError|Java heap space|GC overhead limit",
        "spark_memory",
        "Spark ran out of memory: give the session more memory, or use more partitions",
    ),
    (
        r"Python worker exited unexpectedly|worker_exited|ExecutorLostFailure|FetchFailed|crashed",
        "spark_worker_lost",
        "a worker process died, possibly out of memory: run it again; finished stages are kept",
    ),
    (
        r"cancelled|Connection refused|SparkContext was shut down|UNAVAILABLE",
        "spark_session_lost",
        "the Spark session ended: run it again with a new session",
    ),
    (
        r"FAILED_READ_FILE|not a Parquet file|PATH_NOT_FOUND|CANNOT_READ",
        "input_unreadable",
        "a source cannot be read: repair or remove the file, and run it again",
    ),
)

_CAUSE = re.compile("^(: |Caused by: )")


@contextmanager
def translate_spark_errors() -> Iterator[None]:
    """Run something on Spark; raise SparkFailed when Spark fails."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise _translate_error(str(error)) from error


@contextmanager
def cancellable_jobs(spark: SparkSession) -> Iterator[Callable[[], None]]:
    """Give what stops the jobs that this thread starts in the block; any thread may call it."""
    tag = f"omnigraph-{ULID()}"
    # Tags of a session stop nothing where it runs in its own driver; those of jobs do.
    context = SparkContext._active_spark_context
    add, cancel, remove = (
        (spark.addTag, spark.interruptTag, spark.removeTag)
        if context is None
        else (context.addJobTag, context.cancelJobsWithTag, context.removeJobTag)
    )
    add(tag)

    def stop() -> None:
        with ignore_lost_session():
            cancel(tag)

    try:
        yield stop
    finally:
        with ignore_lost_session():
            remove(tag)


@contextmanager
def ignore_lost_session() -> Iterator[None]:
    """Ask something of a session that may be gone, and with it all that was to be stopped."""
    with suppress(PySparkException, Py4JError, OSError):
        yield


def _translate_error(text: str) -> SparkFailed:
    for pattern, code, advice in _ADVICE:
        if re.search(pattern, text, re.IGNORECASE):
            return SparkFailed(f"{advice} ({_reason(text)})", code=code)
    return SparkFailed(f"the Spark job failed: {_reason(text)}", code="spark_failed")


def _reason(text: str) -> str:
    """Return the line that says most: the last one that names what was raised, or the first."""
    lines = [_CAUSE.sub("", line.strip()) for line in text.splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[\w.$]*(Error|Exception)\b.*:", line)]
    return (raised[-1] if raised else lines[0] if lines else "no reason given")[:300]
