"""Compute a value for every node and store it as a property: locally, or on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import omnigraph.pipeline as spark_jobs
from omnigraph.catalog.model import NodeType
from omnigraph.commit.model import Snapshot
from omnigraph.commit.snapshot import SnapshotRef
from omnigraph.errors import InvalidInput
from omnigraph.pipeline.graph_handle import GraphHandle
from omnigraph.query.analytics.algorithms import AnalysisAlgorithm, find_algorithm
from omnigraph.query.analytics.run import GraphAnalysis, NodeValues
from omnigraph.query.engine import QuerySettings
from omnigraph.query.engine_names import LOCAL_ENGINE, SPARK_ENGINE, is_spark_engine
from omnigraph.query.entities import find_type
from omnigraph.query.limits import DEFAULT_MEMORY_BYTES
from omnigraph.query.result import Result
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import arrow_type
from omnigraph.write.load import LoadOptions, LoadResult, WriteMode, load
from omnigraph.write.request import WriteRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What to compute over which edges, and where to put it.

    `into` is a property of a node type, as `Person.rank`. Edges are those of the state `at`, by
    default of the branch that is written, or of the one it is forked from (`from_`). Without an
    `engine`, Spark computes what does not fit the local limit of memory. `timeout` and `memory`
    are limits of the local engine.
    """

    algorithm: str
    edges: Sequence[str]
    into: str
    options: Mapping[str, Any]
    at: SnapshotRef | None = None
    branch: str | None = None
    from_: str | None = None
    message: str | None = None
    engine: str | None = None
    timeout: float | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisResult:
    """What an analysis did: how many nodes have a value now, after how many rounds."""

    algorithm: str
    into: str
    nodes: int
    rounds: int
    loaded: LoadResult
    engine: str = LOCAL_ENGINE

    def to_json(self) -> dict[str, Any]:
        """Return the facts as plain JSON values."""
        return {
            "algorithm": self.algorithm,
            "engine": self.engine,
            "into": self.into,
            "nodes": self.nodes,
            "rounds": self.rounds,
            "branch": self.loaded.branch,
            "commit": None if self.loaded.commit is None else self.loaded.commit.to_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTarget:
    """The property of a node type that stores values, and the branch they are committed to."""

    type_name: str
    property_name: str
    property_type: PropertyType
    request: WriteRequest
    from_: str | None

    @property
    def load_key(self) -> str:
        """The node type as loads name it."""
        return f"node:{self.type_name}"


def analyze(
    graph: GraphHandle,
    analysis: Analysis,
    *,
    spark: Any = None,  # noqa: ANN401 - a session of Spark
) -> AnalysisResult:
    """Run an algorithm over the edges of a graph and store its values, as one commit.

    With a session of `spark`, it runs there.
    """
    algorithm = find_algorithm(analysis.algorithm)
    source = graph.snapshot(analysis.at or analysis.from_ or analysis.branch)
    type_name, name, type_ = _find_target(source, analysis.into, algorithm)
    run = GraphAnalysis.of(source, algorithm.name, analysis.edges, analysis.options, [type_name])
    on_spark = _chooses_spark(run, analysis, has_session=spark is not None)
    target = ValueTarget(
        type_name=type_name,
        property_name=name,
        property_type=type_,
        request=graph._request("load", analysis.branch, analysis.message or _message(analysis)),
        from_=analysis.from_,
    )
    if on_spark:
        rounds, loaded = spark_jobs.store_values(graph, run, target, spark)
    else:
        rounds, loaded = _store_locally(graph, run, target, _settings(analysis))
    return AnalysisResult(
        algorithm=algorithm.name,
        engine=SPARK_ENGINE if on_spark else LOCAL_ENGINE,
        into=analysis.into,
        nodes=loaded.total,
        rounds=rounds,
        loaded=loaded,
    )


def _settings(analysis: Analysis) -> QuerySettings:
    memory = DEFAULT_MEMORY_BYTES if analysis.memory is None else analysis.memory
    return QuerySettings(timeout=analysis.timeout, memory=memory)


def _chooses_spark(run: GraphAnalysis, analysis: Analysis, *, has_session: bool) -> bool:
    """Return whether Spark was chosen, or is needed since too little memory is allowed here."""
    engine = analysis.engine or (SPARK_ENGINE if has_session else None)
    limits = {"timeout": analysis.timeout, "memory": analysis.memory}
    if engine is not None:
        return check_engine(run.algorithm, engine, **limits)
    is_free = all(limit is None for limit in limits.values())
    return is_free and run.algorithm.on_spark and not run.fits(_settings(analysis))


def check_engine(algorithm: AnalysisAlgorithm, engine: str, **limits: float | None) -> bool:
    """Return whether Spark was chosen; raise InvalidInput where it does not have the algorithm."""
    chosen = is_spark_engine(engine, **limits)
    if chosen and not algorithm.on_spark:
        message = f"{algorithm.name} runs on the local engine only; choose the engine `local`"
        raise InvalidInput(message, code="engine_unsupported", algorithm=algorithm.name)
    return chosen


def _find_target(
    snapshot: Snapshot, into: str, algorithm: AnalysisAlgorithm
) -> tuple[str, str, PropertyType]:
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
    return type_name, name, property_.type


def _fits(type_: PropertyType, algorithm: AnalysisAlgorithm) -> bool:
    fits = type_.scalar in algorithm.stored_as and not type_.is_list and type_.enum_values is None
    return fits and (type_.nullable or not algorithm.has_nulls)


def _message(analysis: Analysis) -> str:
    edges = [analysis.edges] if isinstance(analysis.edges, str) else analysis.edges
    return f"{analysis.algorithm} over {', '.join(edges)} into {analysis.into}"


def _store_locally(
    graph: GraphHandle, run: GraphAnalysis, target: ValueTarget, settings: QuerySettings
) -> tuple[int, LoadResult]:
    """Compute values in this process, and load them; return the number of rounds, too."""
    values = run.run(graph._engine, settings)
    rows = _rows(values, run.snapshot, target)
    options = LoadOptions(mode=WriteMode.MERGE, partial=True, from_=target.from_)
    loaded = load(graph._manifest, target.request, {target.load_key: rows}, options)
    return values.rounds, loaded


def _rows(values: NodeValues, snapshot: Snapshot, target: ValueTarget) -> pa.Table:
    """Return the nodes of a type with what names them, and their new values."""
    definition = snapshot.catalog.nodes[target.type_name]
    table = values.network.nodes[target.type_name]
    types = {name: definition.properties[name].type for name in definition.key}
    names = list(types) or ["id"]
    columns = {name: table.column(name) for name in names}
    types = {name: types.get(name, PropertyType(Scalar.STRING)) for name in names}
    columns[target.property_name] = values.column(target.type_name).cast(
        arrow_type(target.property_type), safe=False
    )
    types[target.property_name] = target.property_type
    return Result("values", pa.table(columns), types, snapshot.commit_id).to_arrow()
