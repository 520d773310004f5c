"""Analyse SQL expressions over a frame: the type of each, or why Spark rejects it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

Analysis: TypeAlias = DataType | PySparkException


def analyse_expressions(frame: DataFrame, texts: Sequence[str]) -> dict[str, Analysis]:
    """Return the type of each expression, or the exception of Spark.

    Analysing a frame costs about as much for one expression as for hundreds. So all are analysed
    together, and halves of them only if Spark rejects one.
    """
    return _analyse(frame, list(dict.fromkeys(texts)))


def _analyse(frame: DataFrame, texts: Sequence[str]) -> dict[str, Analysis]:
    if not texts:
        return {}
    try:
        if len(texts) == 1:
            return {texts[0]: frame.select(F.expr(texts[0])).schema[0].dataType}
        # Names that no expression uses: Spark lets one refer to the names of others.
        named = [F.expr(text).alias(f"@expression{number}") for number, text in enumerate(texts)]
        schema = frame.select(*named).schema
        if len(schema) == len(texts):
            return {text: one.dataType for text, one in zip(texts, schema, strict=True)}
    except PySparkException as error:
        if len(texts) == 1:
            return {texts[0]: error}
    # Some are valid alone but not beside others: two generators, or an aggregate.
    half = len(texts) // 2
    return _analyse(frame, texts[:half]) | _analyse(frame, texts[half:])
