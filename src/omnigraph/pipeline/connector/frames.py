"""Read types of a graph as data frames, and write data frames into it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN
from omnigraph.commit.snapshot import SnapshotRef, resolve_snapshot
from omnigraph.embed.config import VectorsFrom, read_models
from omnigraph.errors import InvalidInput
from omnigraph.pipeline.connector.data_source import FORMAT, STORAGE, register
from omnigraph.pipeline.connector.filters import FilterCondition, apply_conditions
from omnigraph.pipeline.connector.table_scan import manifest_at, pin_table
from omnigraph.pipeline.graph_handle import GraphHandle
from omnigraph.pipeline.load.entry_points import load_frame
from omnigraph.storage import Location, locate
from omnigraph.write.load import LoadOptions, LoadResult, parse_load_mode

GraphOrUri: TypeAlias = GraphHandle | str | os.PathLike[str]
"""An open graph, or its address."""


def read(
    spark: SparkSession,
    graph: GraphOrUri,
    type_name: str,
    *,
    at: SnapshotRef | None = None,
    columns: Sequence[str] | None = None,
    where: Sequence[FilterCondition] = (),
) -> DataFrame:
    """Return the entities of a type as a data frame that never changes.

    `at` is a branch, tag, commit id, time or snapshot; by default the branch of the graph. Blobs
    are read only if `columns` names them. `where` are conditions that storage answers, such as
    `("tons", ">", 5)`: rows that do not fulfil all of them are never read.
    """
    manifest, branch = resolve_graph(graph)
    if isinstance(graph, str | os.PathLike):
        snapshot = resolve_snapshot(manifest, branch if at is None else at, branch=branch)
    else:
        snapshot = graph.snapshot(at)  # requires `read` on the branch
    pinned = apply_conditions(pin_table(manifest, snapshot, type_name), where).named(columns)
    reader = register(spark).read.format(FORMAT).options(**graph_reader_options(manifest.location))
    reader = reader.option("type", pinned.entity).option("commit", pinned.commit_id)
    if where:
        reader = reader.option("where", json.dumps([list(c) for c in where], default=_as_json))
    return reader.option("columns", ",".join(c.name for c in pinned.columns)).load()


def write(  # noqa: PLR0913 - the options of a load
    frame: DataFrame,
    graph: GraphHandle,
    type_name: str,
    *,
    mode: str = "append",
    branch: str | None = None,
    from_: str | None = None,
    message: str | None = None,
    partial: bool = False,
    vectors_from: VectorsFrom = None,
) -> LoadResult:
    """Load a data frame as one commit, or none of it; executors compute, write and check it.

    Modes and the rest are those of `Graph.load`. Columns are `id`, for edges `from` and `to`, and
    properties, as `read` gives them.
    """
    options = LoadOptions(mode=parse_load_mode(mode), partial=partial, from_=from_)
    request = replace(
        graph._load_request(branch, from_, message), vectors_from=read_models(vectors_from)
    )
    return load_frame(graph._manifest, request, type_name, frame, options)


def _as_json(value: object) -> str | int | list[object]:
    """Return what JSON has no word for in the words our types read."""
    match value:
        case date():
            return value.isoformat()
        case Decimal() if value == value.to_integral_value():
            return int(value)
        case set() | frozenset() | tuple():
            return list(value)
        case _:
            raise InvalidInput(f"cannot compare with {value!r}", code="filter_invalid")


def resolve_graph(graph: GraphOrUri) -> tuple[Manifest, str]:
    """Return a graph and the branch it is bound to."""
    if isinstance(graph, str | os.PathLike):
        return manifest_at(locate(graph)), MAIN
    return graph._for_spark(), graph.branch_name


def graph_reader_options(location: Location) -> dict[str, str]:
    """Return the options by which another process finds a graph."""
    return {"path": location.uri, **{f"{STORAGE}{k}": v for k, v in location.options.items()}}
