"""Progress reports of a load."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

REPORT_INTERVAL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a load is: `read`, `validate`, `write` or `publish`; rows and bytes read so far."""

    phase: str
    rows: int
    bytes: int
    total_bytes: int | None = None


ProgressListener: TypeAlias = Callable[[Progress], None]


class ProgressMeter:
    """Counts rows and bytes; calls a listener about five times a second and at each new phase."""

    def __init__(
        self, listener: ProgressListener | None = None, total_bytes: int | None = None
    ) -> None:
        self._listener = listener
        self._total = total_bytes
        self._phase = "read"
        self._rows = 0
        self._bytes = 0
        self._reported = time.monotonic()

    def read(self, size: int) -> None:
        """Note that bytes were read, by any thread; the next rows report them."""
        self._bytes += size

    def add_rows(self, rows: int) -> None:
        """Note that rows were taken in."""
        self._rows += rows
        self._report()

    def start_phase(self, phase: str) -> None:
        """Note that another phase begins."""
        self._phase = phase
        self._report(now=True)

    def _report(self, *, now: bool = False) -> None:
        moment = time.monotonic()
        if self._listener is None or not (
            now or moment - self._reported >= REPORT_INTERVAL_SECONDS
        ):
            return
        self._reported = moment
        self._listener(Progress(self._phase, self._rows, self._bytes, self._total))
