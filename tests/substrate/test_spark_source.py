"""What we rely on in Spark's Python data sources, and what we must not rely on."""

import os

import pytest
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceWriter,
    EqualTo,
    WriterCommitMessage,
)

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def numbers():
    """Return a source of ten numbers; a local class travels to the workers by value."""

    class Reader(DataSourceReader):
        wanted = tuple(range(10))

        def pushFilters(self, filters):
            for filter_ in filters:
                if isinstance(filter_, EqualTo):
                    self.wanted = (filter_.value,)
                else:
                    yield filter_

        def read(self, partition):
            return ((number,) for number in self.wanted)

    class Writer(DataSourceWriter):
        def __init__(self, path):
            self.path = path

        def write(self, iterator):
            assert all(row.n for row in iterator)
            return WriterCommitMessage()

        def commit(self, messages):
            with open(self.path, "w") as file:
                file.write(f"{os.getpid()} {len(messages)}")

    class Numbers(DataSource):
        @classmethod
        def name(cls):
            return "numbers"

        def schema(self):
            return "n int"

        def reader(self, schema):
            return Reader()

        def writer(self, schema, overwrite):
            return Writer(self.options["path"])

    return Numbers


@pytest.fixture
def source(spark):
    spark.dataSource.register(numbers())
    spark.conf.set(PUSHDOWN, "true")
    yield spark.read.format("numbers")
    spark.conf.unset(PUSHDOWN)


def test_pushed_filter_of_a_frame_used_once_is_answered_by_the_source(source):
    assert source.load().where("n = 3").collect() == [(3,)]


def test_pushed_filter_of_one_use_of_a_frame_spoils_its_other_uses(source):
    """Therefore we take filters only if somebody asks for it; once this fails, always."""
    frame = source.load()
    both = frame.where("n = 3").union(frame.where("n = 4"))
    assert sorted(both.collect()) in ([(3,), (3,)], [(4,), (4,)])
    apart = source.load().where("n = 3").union(source.load().where("n = 4"))
    assert sorted(apart.collect()) == [(3,), (4,)]


def test_commit_of_a_writer_runs_once_in_another_process(spark, source, tmp_path):
    path = tmp_path / "reported"
    frame = spark.createDataFrame([(1,), (2,)], "n int").repartition(2)
    frame.write.format("numbers").mode("append").save(str(path))
    pid, messages = path.read_text().split()
    assert int(pid) != os.getpid()
    assert messages == "2"
