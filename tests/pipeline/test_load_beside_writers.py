"""A load on Spark lands beside processes that never pause: nothing is lost or half visible."""

import os
import time

import omnigraph.graph as og
from tests.support.change_workers import PATIENCE, insert_people, see_loads
from tests.support.changes import read_state
from tests.support.fork_server import CONTEXT, process_pool
from tests.support.spark_loads import SCHEMA, knows, load, people

WRITERS = 4
LOADS = 10 if os.environ.get("SOAK_SECONDS") else 1
SIZE = 30
KNOWN = {"expected_version_mismatch", "contention"}
"""What a writer may be refused for that was not alone for long enough."""


def await_a_write(uri):
    """Wait for a write, so that the load about to publish has lost a race."""
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
    with CONTEXT.Manager() as manager, process_pool(WRITERS + 1) as pool:
        over, begun = manager.Event(), manager.Barrier(WRITERS + 2)
        try:
            writers = [
                pool.submit(insert_people, graph.uri, n, begun, over) for n in range(WRITERS)
            ]
            reader = pool.submit(see_loads, graph.uri, LOADS, begun, over)
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
