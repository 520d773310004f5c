"""A load on Spark lands beside processes that never pause: nothing is lost or half visible."""

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor

import omnigraph.graph as og
from omnigraph.errors import OmniError
from tests.support.changes import read_state
from tests.support.spark_loads import SCHEMA, knows, load, people

WRITERS = 4
LOADS = 10 if os.environ.get("SOAK_SECONDS") else 1
SIZE = 30
PATIENCE = 600
KNOWN = {"expected_version_mismatch", "contention"}
"""What a writer may be refused for that was not alone for long enough."""


def write(uri, number, begun, over):
    """Insert people one after the other until all is over; return what was acknowledged or not."""
    graph, made, refused = og.open(uri), {}, set()
    begun.wait(PATIENCE)
    while not over.is_set():
        name = f"w{number}-{len(made)}"
        text = f'query q() {{ insert Person {{ name: "{name}", age: {number} }} }}'
        try:
            made[name] = graph.mutate(text).commit.id
        except OmniError as error:
            refused.add(error.code)
    return made, refused


def look(uri, begun, over):
    """Look at the graph until all is over; return how many people of each load were ever seen."""
    seen = set()
    begun.wait(PATIENCE)
    while not over.is_set():
        names = [*read_state(og.open(uri))["Person"]]
        seen |= {(t, sum(name.startswith(f"l{t}-") for name in names)) for t in range(LOADS)}
    return seen


def await_a_write(uri):
    """Wait until somebody has written, so that who is about to publish has lost a race."""
    graph, end = og.open(uri), time.monotonic() + PATIENCE
    before = graph.snapshot().commit_id
    while graph.snapshot().commit_id == before:
        assert time.monotonic() < end, "writers never pause"


def test_loads_land_beside_writers_that_never_pause(spark, tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA)
    loaded, steps = [], []

    def observe(step):
        steps.append(step)
        if step == "pipeline: validated":
            await_a_write(graph.uri)

    graph._manifest.datasets.observe = observe
    spawn = multiprocessing.get_context("spawn")
    with spawn.Manager() as manager, ProcessPoolExecutor(WRITERS + 1, spawn) as pool:
        over, begun = manager.Event(), manager.Barrier(WRITERS + 2)
        try:
            writers = [pool.submit(write, graph.uri, n, begun, over) for n in range(WRITERS)]
            reader = pool.submit(look, graph.uri, begun, over)
            begun.wait(PATIENCE)
            for turn in range(LOADS):
                rows = [(f"l{turn}-{n}", turn, f"{turn}-{n}@x") for n in range(SIZE)]
                ends = [(f"l{turn}-{n}", f"l{turn}-{n + 1}") for n in range(SIZE - 1)]
                inputs = [people(spark, rows), knows(spark, ends)]
                loaded.append(load(graph, inputs, spark).commit.id)
        finally:
            over.set()
        done = [writer.result(timeout=PATIENCE) for writer in writers]
        seen = reader.result(timeout=PATIENCE)
    written = {name: commit for made, _ in done for name, commit in made.items()}
    tries = steps.count("pipeline: prepared")
    print(f"{len(written)} writes beside {LOADS} loads, published in {tries} tries; seen: {seen}")
    assert {code for _, refused in done for code in refused} <= KNOWN
    assert {number for _, number in seen} <= {0, SIZE}
    assert tries > LOADS
    assert steps.count("pipeline: validated") == LOADS

    graph = og.open(graph.uri)
    chain = [commit.id for commit in graph.commits.list()]
    assert sorted(chain[:-1]) == sorted([*written.values(), *loaded])
    state = read_state(graph)
    assert set(state["Person"]) == {
        *written,
        *(f"l{turn}-{n}" for turn in range(LOADS) for n in range(SIZE)),
    }
    ends = {(row["src"], row["dst"]) for row in state["Knows"].values()}
    assert ends == {(f"l{t}-{n}", f"l{t}-{n + 1}") for t in range(LOADS) for n in range(SIZE - 1)}
    assert graph.verify().ok
