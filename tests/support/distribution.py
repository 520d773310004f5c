"""How `make test` distributes tests over processes.

All tests that share the Spark session of a process run in one process: a session starts and warms
up once. The long modules come first, so that no process is left with one at the end.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

SPARK = "tests/pipeline"
APART = ("tests/pipeline/test_clusters.py", "tests/pipeline/test_notebooks.py")
"""Modules of that folder whose tests start sessions of their own."""

ELSEWHERE = (
    "tests/architecture/test_extending.py",
    "tests/behaviour/test_earlier_releases.py",
    "tests/docs/test_spark_pages.py",
    "tests/substrate/test_spark_source.py",
    "tests/unit/query/test_number_overflow.py",
)
"""Modules of other folders that use the session."""

LONG_FIRST = (SPARK, "tests/server", "tests/commit", "tests/concurrency", "tests/behaviour")


def scope_of(nodeid: str) -> str:
    """Return the name of the group of tests that stay together: a module, or all on Spark."""
    module = nodeid.partition("::")[0]
    is_on_spark = module.startswith(f"{SPARK}/") and module not in APART
    return SPARK if is_on_spark or module in ELSEWHERE else module


def rank(nodeid: str) -> int:
    """Return which tests begin before others."""
    scope = scope_of(nodeid)
    places = [place for place, folder in enumerate(LONG_FIRST) if scope.startswith(folder)]
    return -1 if scope == SPARK else (places or [len(LONG_FIRST)])[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute by our groups where the command line asks for groups.

    `make soak` has as many tests on Spark as others, and gives each process some of them.
    """
    is_soak = os.environ.get("PIPELINE_CASES") == "all"
    if is_soak or config.getoption("dist") != "loadscope":
        return None
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = scope_of
    return scheduler


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the tests of a parallel run."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: rank(item.nodeid))
