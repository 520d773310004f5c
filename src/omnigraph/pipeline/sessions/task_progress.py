"""Count the tasks of the Spark stages that run, for displays of progress."""

from __future__ import annotations

from pyspark import SparkContext

from omnigraph.pipeline.sessions.spark_errors import ignore_lost_session


def running_tasks() -> str | None:
    """Return `3 of 8 tasks` for the stages that run now.

    None while no stage runs, or the driver is not in this process.
    """
    context = SparkContext._active_spark_context
    # A context that is being started is active before it has a connection to Java.
    if context is None or not hasattr(context, "_jsc"):
        return None
    with ignore_lost_session():
        tracker = context.statusTracker()
        found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in found if stage is not None]
        if known:
            done = sum(stage.numCompletedTasks for stage in known)
            return f"{done:,} of {sum(stage.numTasks for stage in known):,} tasks"
    return None
