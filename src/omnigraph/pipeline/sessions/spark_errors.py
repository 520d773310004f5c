"""Summaries of error messages of Spark, and errors that name the next step."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
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


# --- summaries --------------------------------------------------------------------------------

_CHATTY = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_JAVA = re.compile(r"^(?:Caused by: |: )?(?:[\w$]+\.)+[\w$]*(?:Exception|Error): ", re.MULTILINE)
_COLUMN = re.compile(r"with name (`.+`) cannot be resolved")


def error_summary(error: PySparkException | Py4JError) -> str:
    """Return the reason of an error, without codes, plans and stack traces."""
    text = str(error).strip()
    causes = list(_JAVA.finditer(text))
    if causes:
        text = text[causes[-1].end() :]
    text = _CONDITION.sub("", _STATE.sub("", text))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


def unknown_column(error: PySparkException) -> str | None:
    """Return the column that Spark does not find, if that is the error."""
    match = _COLUMN.search(str(error))
    return None if match is None else match[1].split("`.`")[-1].strip("`")


@contextmanager
def quiet_spark() -> Iterator[None]:
    """Silence the loggers of Spark that print stack traces for cancelled jobs and errors."""
    # The first call of getLogger decides the class of a logger; Spark needs its own class.
    chatty = [*map(PySparkLogger.getLogger, _CHATTY), logging.getLogger("py4j")]
    levels = [logger.level for logger in chatty]
    for logger in chatty:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(chatty, levels, strict=True):
            logger.setLevel(level)
