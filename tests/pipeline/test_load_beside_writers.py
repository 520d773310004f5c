"""Loads on Spark go on beside processes that write to the same types: nothing is lost or halved."""

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor

import omnigraph.graph as og
from omnigraph.errors import OmniError
from tests.support.changes import read_state
from tests.support.spark_loads import SCHEMA, knows, load, people

WRITERS = 3
WRITES = 400 if os.environ.get("SOAK_SECONDS") else 40
LOADS = 3
SIZE = 30
PATIENCE = 600
KNOWN = {"expected_version_mismatch", "contention"}
"""What somebody who was not alone may be refused for."""


def write(uri: str, number: int) -> list[tuple[str, str]]:
    """Insert people one by one; return what was acknowledged."""
    graph, made = og.open(uri), []
    for turn in range(WRITES):
        name = f"w{number}-{turn}"
        text = f'query q() {{ insert Person {{ name: "{name}", age: {number} }} }}'
        made.append((name, graph.mutate(text).commit.id))
        time.sleep(0.05)  # who never pauses lets nobody else win
    return made


def test_loads_beside_writers_lose_nothing(spark, tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA)
    loaded, refused = {}, set()
    with ProcessPoolExecutor(WRITERS, multiprocessing.get_context("spawn")) as pool:
        writers = [pool.submit(write, graph.uri, n) for n in range(WRITERS)]
        for turn in range(LOADS):
            rows = [(f"l{turn}-{n}", turn, None) for n in range(SIZE)]
            ends = [(f"l{turn}-{n}", f"l{turn}-{n + 1}") for n in range(SIZE - 1)]
            try:
                done = load(graph, [people(spark, rows), knows(spark, ends)], spark)
                loaded[turn] = done.commit.id
            except OmniError as error:
                refused.add(error.code)
        written = dict(pair for writer in writers for pair in writer.result(timeout=PATIENCE))
    print(f"{len(written)} writes beside {len(loaded)} loads; refused: {refused}")
    assert refused <= KNOWN

    graph = og.open(graph.uri)
    chain = [commit.id for commit in graph.commits.list()]
    assert sorted(chain[:-1]) == sorted([*written.values(), *loaded.values()])
    state = read_state(graph)
    expected = {*written, *(f"l{turn}-{n}" for turn in loaded for n in range(SIZE))}
    assert set(state["Person"]) == expected
    ends = {(row["src"], row["dst"]) for row in state["Knows"].values()}
    assert ends == {(f"l{t}-{n}", f"l{t}-{n + 1}") for t in loaded for n in range(SIZE - 1)}
    assert graph.verify().ok
