"""Run an algorithm over a graph, and store its result as a property of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from omnigraph.catalog.model import NodeType
from omnigraph.commit.model import Snapshot
from omnigraph.commit.snapshot import SnapshotRef
from omnigraph.errors import InvalidInput
from omnigraph.pipeline.analytics.components import components
from omnigraph.pipeline.analytics.degrees import degrees
from omnigraph.pipeline.analytics.labels import label_propagation
from omnigraph.pipeline.analytics.network import NODE, VALUE, Network, node_key, read_network
from omnigraph.pipeline.analytics.pagerank import PageRankOptions, pagerank
from omnigraph.pipeline.frames import read
from omnigraph.pipeline.graphs import GraphHandle
from omnigraph.pipeline.load import load_frames, load_result
from omnigraph.pipeline.model import SparkLoadOptions, TypeFrame
from omnigraph.pipeline.sessions import session
from omnigraph.plan.expressions import Direction
from omnigraph.query.entities import find_type
from omnigraph.types import PropertyType, Scalar
from omnigraph.write.load import LoadResult, WriteMode

_TEXT = (Scalar.STRING,)
_NUMBER = (Scalar.F64, Scalar.F32)
_COUNT = (Scalar.I64, Scalar.U64, Scalar.I32, Scalar.U32)


@dataclass(frozen=True, slots=True)
class Algorithm:
    """What an algorithm is called, what its values may be stored as, and how to run it."""

    name: str
    stored_as: tuple[Scalar, ...]
    run: Callable[..., tuple[DataFrame, int]]


def _degrees(network: Network, direction: str = "both") -> tuple[DataFrame, int]:
    try:
        return degrees(network, Direction(direction)), 1
    except ValueError:
        message = f"direction must be one of {', '.join(Direction)}, got '{direction}'"
        raise InvalidInput(message, code="analysis_option_invalid") from None


def _pagerank(network: Network, **options: Any) -> tuple[DataFrame, int]:  # noqa: ANN401 - checked by the class
    return pagerank(network, PageRankOptions(**options))


ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {
        algorithm.name: algorithm
        for algorithm in (
            Algorithm("pagerank", _NUMBER, _pagerank),
            Algorithm("components", _TEXT, components),
            Algorithm("labels", _TEXT, label_propagation),
            Algorithm("degrees", _COUNT, _degrees),
        )
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What to compute over which edges, and where to put it.

    `into` is a property of a node type, as `Person.rank`. Edges are those of the state `at`, by
    default of the branch that is written, or of the one it is forked from (`from_`).
    """

    algorithm: str
    edges: Sequence[str]
    into: str
    options: Mapping[str, Any]
    at: SnapshotRef | None = None
    branch: str | None = None
    from_: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisResult:
    """What an analysis did: how many nodes have a value now, after how many rounds."""

    algorithm: str
    into: str
    nodes: int
    rounds: int
    loaded: LoadResult

    def to_json(self) -> dict[str, Any]:
        """Return the facts as plain JSON values."""
        return {
            "algorithm": self.algorithm,
            "into": self.into,
            "nodes": self.nodes,
            "rounds": self.rounds,
            "branch": self.loaded.branch,
            "commit": None if self.loaded.commit is None else self.loaded.commit.to_json(),
        }


def analyze(
    graph: GraphHandle, analysis: Analysis, *, spark: SparkSession | None = None
) -> AnalysisResult:
    """Run an algorithm over the edges of a graph and store its values, as one commit."""
    algorithm = _algorithm(analysis.algorithm)
    source = graph.snapshot(analysis.at or analysis.from_ or analysis.branch)
    type_name, property_ = _target(source, analysis.into, algorithm)
    request = graph._request("load", analysis.branch, analysis.message or _message(analysis))
    options = SparkLoadOptions(mode=WriteMode.MERGE, partial=True, from_=analysis.from_)
    found = spark or session()
    network = read_network(found, graph, source, analysis.edges, [type_name])
    try:
        values, rounds = algorithm.run(network, **analysis.options)
        rows = _rows(found, graph, source, (type_name, property_), values)
        given = [TypeFrame(f"node:{type_name}", rows)]
        outcome = load_frames(graph._manifest, request, given, options, found)
    finally:
        network.release()
    loaded = load_result(outcome, request, options)
    return AnalysisResult(
        algorithm=algorithm.name,
        into=analysis.into,
        nodes=loaded.total,
        rounds=rounds,
        loaded=loaded,
    )


def _algorithm(name: str) -> Algorithm:
    found = ALGORITHMS.get(name)
    if found is None:
        message = f"unknown algorithm '{name}'; use one of {', '.join(ALGORITHMS)}"
        raise InvalidInput(message, code="analysis_unknown", algorithm=name)
    return found


def _target(snapshot: Snapshot, into: str, algorithm: Algorithm) -> tuple[str, str]:
    """Return the type and the property values go to; raise InvalidInput when they do not fit."""
    type_name, dot, name = into.partition(".")
    if not dot:
        message = f"the property to store values in must be Type.property, got '{into}'"
        raise InvalidInput(message, code="analysis_target_invalid", into=into)
    definition = find_type(snapshot, f"node:{type_name}").definition
    assert isinstance(definition, NodeType), "it was looked for among nodes"
    property_ = definition.properties.get(name)
    wanted = " or ".join(f"{scalar}?" for scalar in algorithm.stored_as)
    if property_ is None:
        message = f"{type_name} has no property {name}: add `{name}: {wanted}` to the schema first"
        raise InvalidInput(message, code="analysis_target_invalid", into=into)
    if not _fits(property_.type, algorithm) or name in definition.key:
        message = (
            f"{into} is {property_.type}; {algorithm.name} needs {wanted}, and not a key property"
        )
        raise InvalidInput(message, code="analysis_target_invalid", into=into)
    return type_name, name


def _fits(type_: PropertyType, algorithm: Algorithm) -> bool:
    return type_.scalar in algorithm.stored_as and not type_.is_list and type_.enum_values is None


def _message(analysis: Analysis) -> str:
    return f"{analysis.algorithm} over {', '.join(analysis.edges)} into {analysis.into}"


def _rows(
    spark: SparkSession,
    graph: GraphHandle,
    snapshot: Snapshot,
    target: tuple[str, str],
    values: DataFrame,
) -> DataFrame:
    """Return the nodes of a type with what names them, and their new values."""
    type_name, property_ = target
    keys = list(snapshot.catalog.nodes[type_name].key)
    columns = list(dict.fromkeys(["id", *keys]))
    nodes = read(spark, graph, f"node:{type_name}", at=snapshot, columns=columns)
    known = nodes.withColumn("@node", node_key(type_name, F.col("id")))
    joined = known.join(values.withColumnRenamed(NODE, "@key"), F.col("@node") == F.col("@key"))
    value = _own_id(F.col(VALUE), type_name) if _is_text(values) else F.col(VALUE)
    return joined.select(*(F.col(f"`{name}`") for name in keys or ["id"]), value.alias(property_))


def _is_text(values: DataFrame) -> bool:
    return values.schema[VALUE].dataType.simpleString() == "string"


def _own_id(key: Any, type_name: str) -> Any:  # noqa: ANN401 - columns
    """Return the id of a node of the same type; of another type, the type stands before it."""
    own = f"{type_name}/"
    return F.when(key.startswith(own), F.substr(key, F.lit(len(own) + 1))).otherwise(key)
