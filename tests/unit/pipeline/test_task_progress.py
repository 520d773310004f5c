"""Counts of running tasks, for displays of progress."""

from pyspark import SparkContext

from omnigraph.pipeline.sessions.task_progress import running_tasks


def test_a_session_that_is_starting_has_no_tasks_yet(monkeypatch):
    starting = SparkContext.__new__(SparkContext)
    monkeypatch.setattr(SparkContext, "_active_spark_context", starting)
    assert running_tasks() is None
