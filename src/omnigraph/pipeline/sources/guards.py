"""Guard SQL expressions: a row for which one fails is rejected instead of ending the job.

Spark evaluates expressions in ANSI mode, where `cast('x' as int)` raises. `try_to_binary` returns
null for whatever its argument raises, and the hash of any value, null too, is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from omnigraph.pipeline.sources.text_files import KINDS

FAULT_COLUMN = "@fault"
"""The column with the reason, as JSON, why a row cannot become an entity."""

_SHARING = "spark.sql.subexpressionElimination.enabled"


def prepare_session(spark: SparkSession) -> None:
    """Keep Spark from evaluating common parts of guarded expressions outside of their guards."""
    spark.conf.set(_SHARING, "false")


def failure_test(text: str) -> str:
    """Return an expression that is true for the rows for which another one fails."""
    return f"try_to_binary(cast(hash({text}\n) as string), 'utf-8') is null"


def failure_reason(frame: DataFrame, text: str, property_: str, message: str) -> Column:
    """Return why an expression fails for a row, null where it does not."""
    columns = [name for name in frame.columns if not name.startswith("@") and _names(text, name)]
    return F.when(F.expr(failure_test(text)), _fault(property_, message, columns))


def wrong_kind_reason(column: str, kinds: Sequence[str], property_: str, message: str) -> Column:
    """Return that a value of a column of several kinds is of none of those that are meant."""
    kind = F.col(f"`{KINDS}`")[column]
    return F.when(kind.isNotNull() & ~kind.isin(*kinds), _fault(property_, message, [column]))


def plain_reason(property_: str, message: str, value: Column) -> Column:
    """Return a reason with a value."""
    return F.to_json(
        F.struct(
            F.lit(property_).alias("property"),
            F.lit(message).alias("message"),
            value.alias("value"),
        )
    )


def first_reason(faults: Iterable[Column]) -> Column:
    """Return the first reason there is."""
    return F.coalesce(F.lit(None).cast("string"), *faults)


def _fault(property_: str, message: str, columns: Sequence[str]) -> Column:
    cells = [F.col("`" + name.replace("`", "``") + "`").cast("string") for name in columns]
    value = cells[0] if len(cells) == 1 else F.concat_ws(", ", *cells)
    return plain_reason(property_, message, value)


def _names(text: str, column: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", text, re.IGNORECASE) is not None
