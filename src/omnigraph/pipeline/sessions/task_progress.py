"""What displays of progress show of Spark: its running tasks, and the address of its page."""

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


def spark_ui() -> str | None:
    """Return the address of the page that shows the jobs of the running session.

    None while no session runs, it has no page, or the driver is not in this process.
    """
    context = SparkContext._active_spark_context
    if context is None or not hasattr(context, "_jsc"):
        return None
    address: str | None = None
    with ignore_lost_session():
        address = context.uiWebUrl
    return address or None
