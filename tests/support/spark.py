"""The one Spark session that all tests in a process share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from omnigraph import pipeline
from tests.support.small_spark_session import INTERPRETED

CONFIG = {
    **({} if os.environ.get("PIPELINE_CASES") == "all" else INTERPRETED),
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}
"""`make soak` compiles and plans queries as a session of a user does."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Run a small session on two cores."""
    yield pipeline.session("local[2]", memory="1g", config=CONFIG)
    pipeline.close()
