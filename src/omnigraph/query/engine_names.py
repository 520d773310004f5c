"""The engines that execute queries, and the choice between them."""

from __future__ import annotations

from typing import Final

from omnigraph.errors import InvalidInput

LOCAL_ENGINE: Final = "local"
SPARK_ENGINE: Final = "spark"
ENGINES = (LOCAL_ENGINE, SPARK_ENGINE)


def is_spark_engine(engine: str, **limits: float | None) -> bool:
    """Return whether Spark was chosen; it has limits of its own, so ours are refused there."""
    if engine not in ENGINES:
        message = f"unknown engine '{engine}'; it is one of {', '.join(ENGINES)}"
        raise InvalidInput(message, code="engine_unknown", engine=engine)
    options = [name for name, value in limits.items() if value is not None]
    if engine == SPARK_ENGINE and options:
        message = f"{' and '.join(options)}: the local engine keeps such limits, Spark does not"
        raise InvalidInput(message, code="engine_unsupported", options=options)
    return engine == SPARK_ENGINE
