"""Summarise error messages of Spark in one sentence."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

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
