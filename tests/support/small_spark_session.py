"""Settings that make a session fast with a handful of rows, where compiling takes longest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

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
