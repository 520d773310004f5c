"""This module says which engines there are, and which of them somebody chose."""

from __future__ import annotations

from omnigraph.errors import InvalidInput

LOCAL, SPARK = "local", "spark"
ENGINES = (LOCAL, SPARK)


def is_spark(engine: str, **limits: float | None) -> bool:
    """Tell whether Spark was chosen; it has limits of its own, so ours are refused there."""
    if engine not in ENGINES:
        message = f"unknown engine '{engine}'; it is one of {', '.join(ENGINES)}"
        raise InvalidInput(message, code="engine_unknown", engine=engine)
    given = [name for name, value in limits.items() if value is not None]
    if engine == SPARK and given:
        message = f"{' and '.join(given)}: the local engine keeps such limits, Spark does not"
        raise InvalidInput(message, code="engine_unsupported", options=given)
    return engine == SPARK
