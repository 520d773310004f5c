"""Print the progress of long commands: one updating line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Protocol, cast

import click

from omnigraph.cli.options import option_value
from omnigraph.cli.output import wants_json
from omnigraph.query.engine_names import SPARK_ENGINE

INTERVAL_VARIABLE = "OMNIGRAPH_PROGRESS_SECONDS"
"""Seconds between two lines where standard error is not a terminal; 0 prints none."""
LINE_SECONDS = 5.0
_FIRST_SECONDS, _REDRAW_SECONDS = 1.0, 0.5
"""When the line on a terminal appears, and how often it is drawn again."""
_CLEAR = "\r\x1b[2K"
TEXT_LOG, JSON_LOG = LOG_FORMATS = ("text", "json")


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


def log_format_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option for the form of progress lines, passed as `log_format`."""
    return click.option(
        "--log-format",
        type=click.Choice(LOG_FORMATS),
        default=TEXT_LOG,
        help="Form of progress on standard error; json is a line for each stage and interval.",
    )(command)


@contextmanager
def show_progress(
    what: str,
    details: ProgressDetails | None = None,
    log_format: str = TEXT_LOG,
    link: ProgressDetails | None = None,
) -> Iterator[Callable[[ProgressReport], None] | None]:
    """Show what a command does while the block lasts; yield a listener for what it reports.

    On a terminal a line on standard error is updated twice a second and removed at the end.
    Elsewhere a line is printed every few seconds, unless the command prints JSON. With `--quiet`
    nothing is shown, and the listener is None. `details` returns what no listener reports.
    `link` returns the address of a page that shows more, once there is one.
    With the log format `json`, each stage and interval is a line of JSON, also with `--json`.
    """
    if log_format == JSON_LOG:
        with _json_progress(what, details, link) as listener:
            yield listener
        return
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
        wait, page = first, None
        while not ended.wait(wait):
            wait = every
            if page is None and link is not None:
                page = link()
                if page is not None:
                    line.clear()
                    click.echo(f"{what}: {page} shows the jobs", err=True)
            line.draw() if is_terminal else click.echo(line.text(), err=True)

    thread = threading.Thread(target=show, name="progress", daemon=True)
    thread.start()
    try:
        yield line
    finally:
        ended.set()
        thread.join()
        line.clear()


@contextmanager
def _json_progress(
    what: str, details: ProgressDetails | None, link: ProgressDetails | None
) -> Iterator[Callable[[ProgressReport], None]]:
    """Print a line when a stage begins, every few seconds, and at the end."""
    lines = _JsonLines(what, details, link)
    ended, every = threading.Event(), _line_seconds()

    def show() -> None:
        while not ended.wait(every):
            lines.write("progress")

    thread = threading.Thread(target=show, name="progress", daemon=True)
    if every:
        thread.start()
    try:
        yield lines
    except BaseException:
        lines.write("failed")
        raise
    else:
        lines.write("finished")
    finally:
        ended.set()
        if every:
            thread.join()


class _JsonLines:
    """Progress as lines of JSON: the command, its stage, rows, tasks, link and seconds."""

    def __init__(
        self, what: str, details: ProgressDetails | None, link: ProgressDetails | None
    ) -> None:
        self._what = what
        self._link = link
        self._details = details
        self._last: ProgressReport | None = None
        self._began = time.monotonic()

    def __call__(self, reported: ProgressReport) -> None:
        is_new = self._last is None or self._last.phase != reported.phase
        self._last = reported
        if is_new or reported.rows:
            self.write("stage" if is_new else "progress")

    def write(self, event: str) -> None:
        last = self._last
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event,
            "command": self._what,
            "stage": None if last is None else last.phase,
            "rows": 0 if last is None else last.rows,
            "tasks": None if self._details is None or event == "failed" else self._details(),
            "link": None if self._link is None or event == "failed" else self._link(),
            "seconds": round(time.monotonic() - self._began, 3),
        }
        click.echo(json.dumps(line), err=True)


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
