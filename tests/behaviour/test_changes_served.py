"""Changes through servers have the verdict, the words and the state they have embedded.

`LANE_CASES=all` takes every case through every surface, to one process and to three; `make
soak-server` does. By default some cases go through one surface each.
"""

import itertools
import os
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import omnigraph as og
import omnigraph.graph as embedded
from tests.behaviour.change_cases import CASES, MUTATION
from tests.behaviour.test_changes import Hashed, populate, without_new_ids
from tests.support.changes import State, read_state, said
from tests.support.deployments import ACTOR, TOKEN, serving_graphs
from tests.support.embedding import MOCK
from tests.support.surfaces import Columns, Lines, Mutation, Wanted

SURFACES = {surface.name: surface for surface in (Mutation(), Lines(), Columns())}
BY_NAME = {case.name: case for case in CASES}


def rows():
    """Return which case goes to how many processes through which surface."""
    every = [(case.name, [name for name in case.on if name in SURFACES]) for case in CASES]
    if os.environ.get("LANE_CASES") == "all":
        return [(n, case, on) for n in (1, 3) for case, surfaces in every for on in surfaces]
    chosen = [(case, on[place % len(on)]) for place, (case, on) in enumerate(every)]
    return [(1, *row) for row in chosen[1::4]] + [(3, *row) for row in chosen[2::24]]


ROWS = rows()


@dataclass(frozen=True)
class Template:
    """A graph of a schema and first entities, which every case changes on branches of its own."""

    path: Path
    graph: embedded.Graph
    before: State


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Return a function that makes a graph for a case once, on disk."""
    folder = tmp_path_factory.mktemp("served")

    @cache
    def make(schema, before):
        path = folder / f"g{make.cache_info().currsize}"
        graph = embedded.init(path, schema, embedding=MOCK)
        populate(graph, before)
        return Template(path, graph.as_actor(ACTOR), read_state(graph))

    return lambda case: make(case.schema, Hashed(case.before))


@pytest.fixture(scope="module")
def address(template, tmp_path_factory):
    """Return a function that starts a server of so many processes once, and says where it is."""
    with ExitStack() as running:

        @cache
        def start(workers):
            cases = [BY_NAME[name] for number, name, _ in ROWS if number == workers]
            graphs = dict.fromkeys(template(case).path for case in cases)
            folder = tmp_path_factory.mktemp("lane")
            mock = {"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}
            served = serving_graphs(list(graphs), workers, folder, mock)
            return running.enter_context(served).url

        yield start


NUMBERS = itertools.count()


@pytest.mark.parametrize(("workers", "name", "surface"), ROWS)
def test_change_has_the_verdict_it_has_embedded(template, address, workers, name, surface):
    url, case, number = address(workers), BY_NAME[name], next(NUMBERS)
    here, there = f"here/{number}", f"there/{number}"
    first = template(case)
    wanted = Wanted(
        case.steps,
        case.mode,
        case.partial,
        first.before,
        in_order=case.on == MUTATION,
        together="mutation" not in case.on,
    )
    first.graph.branches.create(here)
    verdict = SURFACES[surface].run(first.graph, wanted, here)
    # Each connection is taken by whichever process comes first.
    with og.connect(url, token=TOKEN, graph=first.path.name) as remote:
        remote.branches.create(there)
    with og.connect(url, token=TOKEN, graph=first.path.name) as remote:
        reported = SURFACES[surface].run(remote, wanted, there)
    assert (reported.reported, reported.affected) == (verdict.reported, verdict.affected)
    assert (reported.commit is None) == (verdict.commit is None)
    if verdict.error is not None:
        assert words(reported.error, surface) == words(verdict.error, surface)
    after = without_new_ids(read_state(first.graph, there))
    assert after == without_new_ids(read_state(first.graph, here))
    if case.wrong:
        assert first.graph.snapshot(there).commit_id == first.graph.snapshot().commit_id


def words(error, surface):
    """Return what an error says; the type of a column is nothing that lines could have wrong."""
    found = said(error)
    if surface == "columns" and set(found["details"]["totals"]) == {"value"}:
        del found["message"], found["details"]["violations"]
    return found
