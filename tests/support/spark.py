"""The one Spark session that all tests in a process share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from omnigraph import pipeline

CONFIG = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Run a small session on two cores."""
    yield pipeline.session("local[2]", memory="1g", config=CONFIG)
    pipeline.close()
