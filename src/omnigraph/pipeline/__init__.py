"""The data pipeline on Spark: the only package that imports pyspark.

Names are loaded when first used, so that the package can be imported where Spark is not installed;
using one of them there raises an error with the package to install. `__init__.pyi` declares the
same names for type checkers.
"""

from importlib import import_module

from omnigraph.errors import install_command
from omnigraph.pipeline.errors import SparkUnavailable

_HOMES = {
    "abort_run": "omnigraph.pipeline.runs.recovery",
    "Analysis": "omnigraph.pipeline.analytics.analysis",
    "AnalysisResult": "omnigraph.pipeline.analytics.analysis",
    "analyze": "omnigraph.pipeline.analytics.analysis",
    "check_engine": "omnigraph.pipeline.analytics.analysis",
    "close": "omnigraph.pipeline.sessions.session",
    "load_frames": "omnigraph.pipeline.load.entry_points",
    "load_sources": "omnigraph.pipeline.load.entry_points",
    "on_spark": "omnigraph.pipeline.sessions.executors",
    "optimize_on_spark": "omnigraph.pipeline.maintenance.optimize",
    "plan_pipeline": "omnigraph.pipeline.runs.planning",
    "query_frame": "omnigraph.pipeline.query.queries",
    "query_stream": "omnigraph.pipeline.query.queries",
    "read": "omnigraph.pipeline.connector.frames",
    "read_changes": "omnigraph.pipeline.connector.streams",
    "register": "omnigraph.pipeline.connector.data_source",
    "resume_pipeline": "omnigraph.pipeline.runs.runner",
    "run_pipeline": "omnigraph.pipeline.runs.runner",
    "PipelineExecution": "omnigraph.pipeline.runs.runner",
    "running_tasks": "omnigraph.pipeline.sessions.task_progress",
    "spark_ui": "omnigraph.pipeline.sessions.task_progress",
    "session": "omnigraph.pipeline.sessions.session",
    "store_values": "omnigraph.pipeline.analytics.run",
    "SparkUnavailable": "omnigraph.pipeline.errors",
    "stream_into": "omnigraph.pipeline.connector.streams",
    "StreamOptions": "omnigraph.pipeline.connector.streams",
    "value_frame": "omnigraph.pipeline.analytics.run",
    "verify_on_spark": "omnigraph.pipeline.maintenance.verify",
    "warm_up": "omnigraph.pipeline.sessions.warmup",
    "warm_up_in_background": "omnigraph.pipeline.sessions.warmup",
    "write": "omnigraph.pipeline.connector.frames",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'omnigraph.pipeline' has no attribute {name!r}")
    try:
        module = import_module(home)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing.startswith("omnigraph"):
            raise
        message = f"the pipeline needs '{missing}': {install_command('spark')}"
        raise SparkUnavailable(message, code="spark_not_installed", missing=missing) from error
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
