"""This module says in a sentence what Spark has to say in a page."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

_CHATTY = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_JAVA = re.compile(r"^(?:Caused by: |: )?(?:[\w$]+\.)+[\w$]*(?:Exception|Error): ", re.MULTILINE)
_COLUMN = re.compile(r"with name (`.+`) cannot be resolved")


def reason(error: PySparkException | Py4JError) -> str:
    """Return what is wrong, without codes, plans and stack traces."""
    text = str(error).strip()
    causes = list(_JAVA.finditer(text))
    if causes:
        text = text[causes[-1].end() :]
    text = _CONDITION.sub("", _STATE.sub("", text))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


def unknown_column(error: PySparkException) -> str | None:
    """Return the column that Spark does not find, if that is what is wrong."""
    match = _COLUMN.search(str(error))
    return None if match is None else match[1].split("`.`")[-1].strip("`")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Spark from printing a page about whatever it is asked to stop or does not accept."""
    levels = {name: logging.getLogger(name).level for name in _CHATTY}
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
