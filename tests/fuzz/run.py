"""Feeds both languages whatever comes to mind; anything but diagnostics is a finding.

Run it with `make fuzz`, or `python -m tests.fuzz.run --seconds 60 --seed 7`. It stops at the first
finding, shows the smallest input that still fails the same way, and exits with 1.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from types import FrameType

from tests.fuzz.inputs import INPUTS
from tests.fuzz.targets import TARGETS, Target

CPU_SECONDS = 2.0
"""How long one target may work on one input."""

_SHRINK_SECONDS = 20.0


class TooSlow(Exception):
    """A target worked longer than it may."""


@dataclass(frozen=True)
class Finding:
    """An input that broke a promise."""

    target: Target
    data: bytes
    error: Exception

    def __str__(self) -> str:
        reported = "".join(traceback.format_exception(self.error))
        return f"{self.target.name} broke on {len(self.data)} bytes:\n{self.data!r}\n{reported}"

    @property
    def kind(self) -> tuple[str, type[Exception], str]:
        """What tells one bug from another: the promise, the error and where it was raised."""
        frames = traceback.extract_tb(self.error.__traceback__)
        place = "" if isinstance(self.error, TooSlow) else f"{frames[-1].name} {frames[-1].line}"
        return self.target.name, type(self.error), place


@dataclass(frozen=True)
class Run:
    """What a run did: how many inputs in how many seconds, and what broke."""

    inputs: int
    seconds: float
    finding: Finding | None


def fuzz(seconds: float, seed: int, targets: Iterable[Target] = TARGETS) -> Run:
    """Feed the targets for a while, or until one breaks."""
    random = Random(seed)
    targets = tuple(targets)
    start = time.monotonic()
    count = 0
    while (spent := time.monotonic() - start) < seconds:
        data = INPUTS[count % len(INPUTS)](random)
        count += 1
        for target in targets:
            if finding := attempt(target, data):
                return Run(count, time.monotonic() - start, smallest(finding))
    return Run(count, spent, None)


def attempt(target: Target, data: bytes) -> Finding | None:
    """Run one target on one input."""
    before = signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        target.run(data)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what we look for
        return Finding(target, data, error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return None


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise TooSlow(f"more than {CPU_SECONDS} s of CPU")


def smallest(finding: Finding) -> Finding:
    """Cut slices out of the input as long as it fails the same way."""
    deadline = time.monotonic() + _SHRINK_SECONDS
    size = len(finding.data) // 2
    while size and time.monotonic() < deadline:
        shorter = _without_slice(finding, size, deadline)
        finding, size = (shorter, size) if shorter else (finding, size // 2)
    return finding


def _without_slice(finding: Finding, size: int, deadline: float) -> Finding | None:
    for start in range(0, len(finding.data), size):
        if time.monotonic() > deadline:
            return None
        rest = finding.data[:start] + finding.data[start + size :]
        again = attempt(finding.target, rest)
        if again is not None and again.kind == finding.kind:
            return again
    return None


def main(arguments: list[str] | None = None) -> int:
    """Fuzz as the command line says; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="how long (default 600)")
    parser.add_argument("--seed", type=int, default=None, help="repeat a run (default: the time)")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else time.time_ns()
    print(f"fuzzing for {options.seconds:g} s with --seed {seed}", flush=True)
    run = fuzz(options.seconds, seed)
    print(f"{run.inputs} inputs in {run.seconds:.0f} s, {run.inputs / run.seconds:.0f} inputs/s")
    if run.finding is not None:
        print(run.finding)
        return 1
    print("nothing but diagnostics")
    return 0


if __name__ == "__main__":
    sys.exit(main())
