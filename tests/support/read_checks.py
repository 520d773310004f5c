"""Asks a real graph and the reference the same questions, and tells where they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.embed import Embedder
from omnigraph.errors import OmniError
from omnigraph.query import kernel_library
from omnigraph.query.engine import Engine, QuerySettings
from omnigraph.query.expansion import ExpandMode
from omnigraph.query.result import Result
from tests.support.agreement import disagreement
from tests.support.catalogs import first
from tests.support.embedding import MOCK, mock_vector
from tests.support.generated_graphs import Sample
from tests.support.generated_reads import Read, Reads, as_case
from tests.support.graph_data import content, load, read_back, read_lines
from tests.support.reference import Answer, OutOfRangeError, RefusedError, World, ask

Ways = Mapping[str, Callable[[og.Graph, Read], Result]]


def _with(settings: QuerySettings) -> Callable[[og.Graph, Read], Result]:
    def ask_engine(graph: og.Graph, read: Read) -> Result:
        return graph._engine.run(graph.snapshot(), read.text, read.params, None, settings)

    return ask_engine


def _cold(graph: og.Graph, read: Read) -> Result:
    """Ask a graph that has read nothing yet, so that storage is asked to filter."""
    engine = Engine(graph._manifest, may_write=False, embedder=Embedder(MOCK))
    cold = og.Graph(replace(graph._context, mode="ro", engine=engine))
    return cold.query(read.text, read.params)


def _as_if_large(graph: og.Graph, read: Read) -> Result:
    """Ask as if there were very many entities: by index, by kernel, a part at a time."""
    engine = Engine(graph._manifest, may_write=False, embedder=Embedder(MOCK))
    engine.store.small = 0
    engine.topologies = graph._engine.topologies
    with pytest.MonkeyPatch.context() as patch:
        for place, value in LARGE.items():
            patch.setattr(f"omnigraph.query.{place}", value)
        settings = QuerySettings(expand=ExpandMode.TOPOLOGY)
        return engine.run(graph.snapshot(), read.text, read.params, None, settings)


def _without_kernels(graph: og.Graph, read: Read) -> Result:
    """Ask as where no compiler was: NumPy does what kernels do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_library, "LIBRARY", None)
        settings = QuerySettings(expand=ExpandMode.TOPOLOGY)
        return graph._engine.run(graph.snapshot(), read.text, read.params, None, settings)


def _streamed(graph: og.Graph, read: Read) -> Result:
    """Ask for the rows a few at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("omnigraph.query.engine.STREAM_BATCH_ROWS", 3)
        stream = graph._engine.stream(graph.snapshot(), read.text, read.params)
        rows = pa.concat_tables([part.table for part in stream.parts()])
    assert stream.row_count == rows.num_rows
    return Result(stream.name, rows, stream.types, stream.graph_commit_id)


LARGE: Mapping[str, int] = {
    "expansion.KERNEL_MIN_STARTS": 1,
    "executor.DENSE_NODE_RATIO": 1_000_000,
    "executor.STEP_ROWS": 5,
    "engine.STEP_ROWS": 5,
    "row_batches.FIRST_BATCH_ROWS": 1,
    "sorting.TOP_K_RATIO": 1,
    "sorting.SORT_RUN_ROWS": 1,
    "sorting.BUCKET_STEP_ROWS": 3,
    "column_cache.SPARSE_RATIO": 0,
}
"""Bounds beyond which a large graph is treated in another way."""

WAYS: Ways = {
    "cold": _cold,
    "warm": lambda graph, read: graph.query(read.text, read.params),
    "indexed": _with(QuerySettings(expand=ExpandMode.INDEXED)),
    "topology": _with(QuerySettings(expand=ExpandMode.TOPOLOGY)),
    "large": _as_if_large,
    "without kernels": _without_kernels,
    "streamed": _streamed,
    "few ranked": _with(QuerySettings(few=0)),
}
"""The execution modes of the engine; all give the same rows."""

Stage: TypeAlias = tuple[og.Graph, Sequence[str]]
"""A graph to ask, and the lines it holds by now."""


def at_once(graph: og.Graph, lines: Sequence[str]) -> Iterator[Stage]:
    """Load everything in one commit."""
    load(graph, lines)
    yield graph, lines


def in_pieces(graph: og.Graph, lines: Sequence[str]) -> Iterator[Stage]:
    """Load half, then the rest, then some of it again, then go on on a branch.

    Nodes come before edges, so each half hangs together; what is asked in between fills the caches
    that the next commit makes old.
    """
    half = len(lines) // 2
    load(graph, lines[:half])
    yield graph, lines[:half]
    load(graph, lines[half:])
    yield graph, lines
    load(graph, lines[::3])
    yield graph, lines
    branch = graph.branch("other", create=True)
    load(branch, lines[1::3])
    yield branch, lines


def optimized(graph: og.Graph, lines: Sequence[str]) -> Iterator[Stage]:
    """Build indexes over half, ask with part of the data indexed, then with all of it."""
    half = len(lines) // 2
    load(graph, lines[:half])
    graph.optimize()
    yield graph, lines[:half]
    load(graph, lines[half:])
    yield graph, lines
    graph.optimize()
    yield graph, lines
    branch = graph.branch("other", create=True)
    load(branch, lines[::3])
    yield branch, lines


HISTORIES: Mapping[str, Callable[[og.Graph, Sequence[str]], Iterator[Stage]]] = {
    "at once": at_once,
    "in pieces": in_pieces,
    "optimized": optimized,
}
"""How the data came into a graph; it makes no difference."""


def differences(reads: Reads, history: str = "at once", ways: Ways = WAYS) -> Iterator[str]:
    """Yield every difference as a case that shows it."""
    schema = first(reads.sample.schema)
    with TemporaryDirectory() as folder:
        graph = og.init(Path(folder) / "g", reads.sample.schema, embedding=MOCK)
        for stage, lines in HISTORIES[history](graph, reads.sample.lines):
            sample = Sample(reads.sample.schema, tuple(lines))
            data = read_lines(lines, schema)
            world = World(catalog=schema.catalog, graph=data, embed=mock_vector)
            if content(read_back(stage)) != content(data):
                yield f"what was loaded is not what is read back\n{as_case(sample)}"
            for read in reads.queries:
                for way, problem in disagreements(world, read, stage, ways):
                    yield f"{way}: {problem}\n{as_case(sample, read)}"


def disagreements(
    world: World, read: Read, graph: og.Graph, ways: Ways = WAYS
) -> Iterator[tuple[str, str]]:
    """Yield the ways in which the engine answers a query unlike the reference, and how."""
    try:
        expected: Answer | RefusedError = ask(world, read.text, read.params)
    except RefusedError as refused:
        expected = refused
    for way, engine in ways.items():
        problem = _disagreement(expected, read, graph, engine)
        if problem is not None:
            yield way, problem


def _disagreement(
    expected: Answer | RefusedError,
    read: Read,
    graph: og.Graph,
    engine: Callable[[og.Graph, Read], Result],
) -> str | None:
    if isinstance(expected, RefusedError):
        try:
            engine(graph, read)
        except OmniError:
            return None
        if isinstance(expected, OutOfRangeError):
            return None
        return f"answered, though {expected}"
    try:
        result = engine(graph, read)
    except Exception as error:  # noqa: BLE001 - whatever it is, the example is wanted
        return f"{type(error).__name__}: {error}"
    return disagreement(expected, result.columns, result.rows)
