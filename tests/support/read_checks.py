"""Asks a real graph and the reference the same questions, and tells where they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import omnigraph.graph as og
from omnigraph.errors import OmniError
from omnigraph.query.engine import Settings
from omnigraph.query.expand import ExpandMode
from omnigraph.query.result import Result
from tests.support.agreement import disagreement
from tests.support.catalogs import first
from tests.support.generated_reads import Read, Reads, as_case
from tests.support.loaded import content, put, read_back, read_lines
from tests.support.reference import RefusedError, World, ask

Ways = Mapping[str, Callable[[og.Graph, Read], Result]]


def _with(settings: Settings) -> Callable[[og.Graph, Read], Result]:
    def ask_engine(graph: og.Graph, read: Read) -> Result:
        return graph._engine.run(graph.snapshot(), read.text, read.params, None, settings)

    return ask_engine


def _cold(graph: og.Graph, read: Read) -> Result:
    """Ask a graph that has read nothing yet, so that storage is asked to filter."""
    return og.Graph(graph._manifest, mode="ro").query(read.text, read.params)


WAYS: Ways = {
    "cold": _cold,
    "warm": lambda graph, read: graph.query(read.text, read.params),
    "indexed": _with(Settings(expand=ExpandMode.INDEXED)),
    "topology": _with(Settings(expand=ExpandMode.TOPOLOGY)),
}
"""How the engine may be told to answer; all ways give the same."""

STATES: Mapping[str, Callable[[og.Graph], object]] = {
    "as loaded": lambda graph: None,
}
"""What is done to a graph before it is asked; a state changes nothing but time."""


def differences(reads: Reads, ways: Ways = WAYS) -> Iterator[str]:
    """Yield every difference as a case that shows it."""
    schema = first(reads.sample.schema)
    data = read_lines(reads.sample.lines, schema)
    world = World(catalog=schema.catalog, graph=data)
    with TemporaryDirectory() as folder:
        graph = put(Path(folder) / "g", reads.sample.schema, reads.sample.lines)
        if content(read_back(graph)) != content(data):
            yield f"what was loaded is not what is read back\n{as_case(reads.sample)}"
        for state, change in STATES.items():
            change(graph)
            for read in reads.queries:
                for way, engine in ways.items():
                    told = difference(world, read, graph, engine)
                    if told is not None:
                        yield f"{state}, {way}: {told}\n{as_case(reads.sample, read)}"


def difference(
    world: World, read: Read, graph: og.Graph, engine: Callable[[og.Graph, Read], Result]
) -> str | None:
    """Return how the answer of an engine differs from the reference, if it does."""
    try:
        expected = ask(world, read.text, read.params)
    except RefusedError as refused:
        try:
            engine(graph, read)
        except OmniError:
            return None
        return f"answered, though {refused}"
    try:
        found = engine(graph, read)
    except Exception as error:  # noqa: BLE001 - whatever it is, the example is wanted
        return f"{type(error).__name__}: {error}"
    return disagreement(expected, found.columns, found.rows)
