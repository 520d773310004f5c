"""Settings that make a session fast with a handful of rows, where compiling takes longest.

They are the defaults of every session that a test starts, in any process. `make soak` compiles and
plans queries and starts workers as sessions of users do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from tests.support.java_runtime import use_settings
from tests.support.program import ROOT
from tests.support.spark_daemon import MODULE

INTERPRETED = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
SETTINGS = {**INTERPRETED, "spark.sql.shuffle.partitions": "1"}
_DEFAULTS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.shuffle.partitions": "4",
}


def pytest_configure() -> None:
    """Set the defaults of sessions, and make the daemon of their workers importable."""
    if os.environ.get("PIPELINE_CASES") == "all":
        return
    use_settings({**INTERPRETED, "spark.python.daemon.module": MODULE})
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(ROOT) not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, path)])


@pytest.fixture(scope="module")
def quick(spark: SparkSession) -> Iterator[SparkSession]:
    """Shuffle into one partition in the tests of a module."""
    with _settings(spark, SETTINGS):
        yield spark


@pytest.fixture(scope="module")
def default_settings(spark: SparkSession) -> Iterator[SparkSession]:
    """Plan and compile queries in the tests of a module as a session of a user does."""
    with _settings(spark, _DEFAULTS):
        yield spark


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name, old in before.items():
        if old is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, old)
