"""Steps of automatic maintenance: their CPU share, their errors, and when to stop."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event
from typing import TypeVar

from omnigraph.errors import Category, InvalidInput, OmniError
from omnigraph.maintain.cleanup import AGE_FLOOR

_T = TypeVar("_T")
_log = logging.getLogger("omnigraph.maintain")


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainerSettings:
    """How often a graph is maintained, and how much it may cost.

    `interval` is in seconds, `cpu_share` the share of one core that maintenance may use over time.
    Cleanups are at least `cleanup_interval` apart; files younger than `age_floor` are kept.
    """

    interval: float = 60.0
    cpu_share: float = 0.25
    cleanup_interval: timedelta = timedelta(hours=1)
    age_floor: timedelta = AGE_FLOOR

    def __post_init__(self) -> None:
        if not 0 < self.interval < float("inf"):
            message = f"the interval of maintenance must be a positive number: {self.interval}"
            raise InvalidInput(message, code="maintenance_invalid")
        if not 0 < self.cpu_share <= 1:
            message = f"the CPU share must be above 0 and at most 1: {self.cpu_share}"
            raise InvalidInput(message, code="maintenance_invalid")


@dataclass(slots=True)
class MaintenancePass:
    """The result of one pass.

    `skipped` means that another process maintains the graph, `stopped` that the pass was stopped
    before its end. `done` counts actions by task.
    """

    actions: list[str] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    lost_races: int = 0
    bytes_removed: int = 0
    seconds: float = 0.0
    skipped: bool = False
    stopped: bool = False

    @property
    def failures(self) -> int:
        """Steps that did not succeed."""
        return len(self.errors) + self.lost_races

    def record(self, task: str, action: str) -> None:
        """Record what a step did."""
        self.actions.append(action)
        self.done[task] = self.done.get(task, 0) + 1

    def to_json(self) -> dict[str, object]:
        """Return the wire form."""
        return {
            "skipped": self.skipped,
            "actions": self.actions,
            "lost_races": self.lost_races,
            "errors": self.errors,
        }


class StepRunner:
    """Runs the steps of a pass, and waits after each until the CPU share is kept.

    The CPU time of the whole process counts, because Lance works in threads of its own.
    """

    def __init__(self, share: float, stop: Event, result: MaintenancePass) -> None:
        self._share, self._stop, self.result = share, stop, result

    def run(self, task: str, step: Callable[[], _T]) -> _T | None:
        """Run a step and return its result; None if it failed, or if maintenance was stopped."""
        if self._stop.is_set():
            self.result.stopped = True
            return None
        cpu, began = time.process_time(), time.monotonic()
        try:
            return step()
        except OmniError as error:
            self._record_failure(task, error)
        except Exception as error:  # noqa: BLE001 - one failure must not end maintenance
            _log.exception("%s failed", task)
            self.result.errors.append(f"{task}: {type(error).__name__}: {error}")
        finally:
            seconds = time.monotonic() - began
            self.result.seconds += seconds
            self._stop.wait(max(0.0, (time.process_time() - cpu) / self._share - seconds))
        return None

    def _record_failure(self, task: str, error: OmniError) -> None:
        if error.code == "branch_not_found":
            return  # it was just deleted
        if error.category in (Category.CONTENTION, Category.CONFLICT):
            self.result.lost_races += 1
        else:
            self.result.errors.append(f"{task}: {error.message}")
