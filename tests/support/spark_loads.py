"""People and who knows whom as frames, to be loaded on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

import omnigraph.graph as og
from omnigraph.embed.config import read_models
from omnigraph.pipeline.load.entry_points import load_frames
from omnigraph.pipeline.load.model import OnViolation, SparkLoadOptions, SparkLoadResult, TypeFrame
from omnigraph.pipeline.runs.run import PipelineRun, RunStore
from omnigraph.write.load import parse_load_mode

SCHEMA = """
node Person { name: String @key  age: I32?  email: String? @unique  @range(age, 0..150) }
node Town { name: String @key }
edge Knows: Person -> Person @card(0..3) { since: Date? }
edge Lives: Person -> Town
"""
PEOPLE = [(f"p{number}", number, f"{number}@x") for number in range(20)]
KNOWS = [(f"p{number}", f"p{number + 1}") for number in range(19)]


def people(spark: SparkSession, rows: Sequence[tuple[Any, ...]] = PEOPLE) -> TypeFrame:
    """Return people as a frame that says where its rows stood."""
    placed = [(*row, 0, number) for number, row in enumerate(rows, 1)]
    schema = "name string, age int, email string, `@file` int, `@at` long"
    return TypeFrame("node:Person", spark.createDataFrame(placed, schema))


def knows(spark: SparkSession, rows: Sequence[tuple[str, str]] = KNOWS) -> TypeFrame:
    """Return who knows whom as a frame that says where its rows stood."""
    placed = [(*row, 1, number) for number, row in enumerate(rows, 1)]
    schema = "`from` string, `to` string, `@file` int, `@at` long"
    return TypeFrame("edge:Knows", spark.createDataFrame(placed, schema))


FILES = (("people", "row"), ("knows", "row"))


def load(
    graph: og.Graph, inputs: Sequence[TypeFrame], spark: SparkSession, **options: Any
) -> SparkLoadResult:
    """Load frames."""
    mode, how = parse_load_mode(options.pop("mode", "merge")), options.pop("on_violation", "fail")
    models = read_models(options.pop("vectors_from", None))
    load_options = SparkLoadOptions(
        files=FILES, mode=mode, on_violation=OnViolation(how), **options
    )
    request = replace(graph._request("load", None, None), vectors_from=models)
    return load_frames(graph._manifest, request, inputs, load_options, spark)


def begin(graph: og.Graph, key: str | None = None) -> PipelineRun:
    """Begin a run."""
    return RunStore(graph._manifest.objects).begin("main", key=key)
