"""Print the progress of long commands: one updating line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

import click

from omnigraph.cli.options import option_value
from omnigraph.cli.output import wants_json
from omnigraph.query.limits import SPARK_ENGINE

INTERVAL_VARIABLE = "OMNIGRAPH_PROGRESS_SECONDS"
"""Seconds between two lines where standard error is not a terminal; 0 prints none."""
LINE_SECONDS = 5.0
_FIRST_SECONDS, _REDRAW_SECONDS = 1.0, 0.5
"""When the line on a terminal appears, and how often it is drawn again."""
_CLEAR = "\r\x1b[2K"


class ProgressReport(Protocol):
    """What a long operation reports; see `omnigraph.write.progress`."""

    @property
    def phase(self) -> str:
        """What it does now."""

    @property
    def rows(self) -> int:
        """Rows so far."""

    @property
    def bytes(self) -> int:
        """Bytes read so far."""

    @property
    def total_bytes(self) -> int | None:
        """Bytes there are to read."""


ProgressDetails = Callable[[], str | None]


@contextmanager
def show_progress(
    what: str, details: ProgressDetails | None = None
) -> Iterator[Callable[[ProgressReport], None] | None]:
    """Show what a command does while the block lasts; yield a listener for what it reports.

    On a terminal a line on standard error is updated twice a second and removed at the end.
    Elsewhere a line is printed every few seconds, unless the command prints JSON. With `--quiet`
    nothing is shown, and the listener is None. `details` returns what no listener reports.
    """
    is_terminal = sys.stderr.isatty()
    first, every = (
        (_FIRST_SECONDS, _REDRAW_SECONDS) if is_terminal else (_line_seconds(), _line_seconds())
    )
    if option_value("quiet") or not every or (wants_json() and not is_terminal):
        yield None
        return
    line = _ProgressLine(what, details)
    ended = threading.Event()

    def show() -> None:
        wait = first
        while not ended.wait(wait):
            wait = every
            line.draw() if is_terminal else click.echo(line.text(), err=True)

    thread = threading.Thread(target=show, name="progress", daemon=True)
    thread.start()
    try:
        yield line
    finally:
        ended.set()
        thread.join()
        line.clear()


def spark_details(engine: str) -> ProgressDetails | None:
    """Return what counts the tasks of Spark, where Spark does the work."""
    if engine != SPARK_ENGINE:
        return None
    return cast(ProgressDetails, import_module("omnigraph.pipeline").running_tasks)


@dataclass(frozen=True, slots=True)
class _LineCount:
    rows: int
    phase: str = "write"
    bytes: int = 0
    total_bytes: int | None = None


def report_line_counts(
    lines: Iterable[str], listener: Callable[[ProgressReport], None] | None
) -> Iterator[str]:
    """Yield lines, and report how many there were so far."""
    for number, line in enumerate(lines, 1):
        yield line
        if listener is not None and number % 1000 == 0:
            listener(_LineCount(number))


class _ProgressLine:
    """The text of one line: what, phase, bytes, rows, details, seconds."""

    def __init__(self, what: str, details: ProgressDetails | None) -> None:
        self._what = what
        self._details = details
        self._last: ProgressReport | None = None
        self._began = time.monotonic()
        self._is_drawn = False

    def __call__(self, reported: ProgressReport) -> None:
        self._last = reported

    def text(self) -> str:
        seconds = time.monotonic() - self._began
        last = self._last
        parts = [self._what if last is None else f"{self._what}: {last.phase}"]
        if last is not None and last.bytes:
            total = "" if last.total_bytes is None else f" of {_size(last.total_bytes)}"
            parts.append(f"{_size(last.bytes)}{total}")
        if last is not None and last.rows:
            parts.append(f"{last.rows:,} rows")
        more = None if self._details is None else self._details()
        parts += [] if more is None else [more]
        return ", ".join([*parts, _elapsed(seconds)])

    def draw(self) -> None:
        width = shutil.get_terminal_size().columns
        sys.stderr.write(_CLEAR + self.text()[: width - 1])
        sys.stderr.flush()
        self._is_drawn = True

    def clear(self) -> None:
        if self._is_drawn:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


def _line_seconds() -> float:
    try:
        return max(float(os.environ.get(INTERVAL_VARIABLE, LINE_SECONDS)), 0.0)
    except ValueError:
        return LINE_SECONDS


def _size(count: int) -> str:
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def _elapsed(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
