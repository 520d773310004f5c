"""The time per area that the suite prints below its summary."""

from types import SimpleNamespace

from tests.support.areas import AreaTimes


class Lines(list):
    def section(self, title):
        self.append(title)

    def line(self, text):
        self.append(text)


def report(nodeid, duration, when="call"):
    return SimpleNamespace(nodeid=nodeid, duration=duration, when=when)


def test_seconds_are_summed_by_folder_longest_first():
    times, lines = AreaTimes(), Lines()
    times.pytest_runtest_logreport(report("tests/cli/test_fmt.py::test_a", 1.0))
    times.pytest_runtest_logreport(
        report("tests/unit/query/test_cost.py::test_b[x::y]", 2.0, "setup")
    )
    times.pytest_runtest_logreport(report("tests/unit/query/test_cost.py::test_b[x::y]", 3.0))
    times.pytest_runtest_logreport(report("tests/unit/test_graph.py::test_c", 4.0))
    times.pytest_terminal_summary(lines)
    assert [" ".join(line.split()) for line in lines[1:]] == [
        "9.0 s 2 tests tests/unit",
        "1.0 s 1 tests tests/cli",
        "10.0 s in all",
        "slowest files (seconds of one worker)",
        "5.0 s tests/unit/query/test_cost.py",
        "4.0 s tests/unit/test_graph.py",
        "1.0 s tests/cli/test_fmt.py",
    ]
