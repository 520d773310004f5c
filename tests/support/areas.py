"""Report the time of each area of the suite and of its slowest files, below the summary."""

from __future__ import annotations

from collections import defaultdict

import pytest

SLOWEST_FILES = 25


class AreaTimes:
    """Sums the seconds of set-up, call and teardown of tests by folder of `tests`."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.tests: defaultdict[str, int] = defaultdict(int)
        self.files: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        area = f"tests/{file.split('/')[1]}"
        self.files[file] += report.duration
        self.seconds[area] += report.duration
        self.tests[area] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if len(self.seconds) < 2:
            return
        terminalreporter.section("time per area (seconds of one worker)")
        for area, seconds in sorted(self.seconds.items(), key=lambda item: -item[1]):
            terminalreporter.line(f"{seconds:8.1f} s  {self.tests[area]:6,} tests  {area}")
        terminalreporter.line(f"{sum(self.seconds.values()):8.1f} s in all")
        terminalreporter.section("slowest files (seconds of one worker)")
        for file, seconds in sorted(self.files.items(), key=lambda item: -item[1])[:SLOWEST_FILES]:
            terminalreporter.line(f"{seconds:8.1f} s  {file}")


def pytest_configure(config: pytest.Config) -> None:
    """Register the report in the process that prints; workers forward their durations to it."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(AreaTimes(), "area-times")
