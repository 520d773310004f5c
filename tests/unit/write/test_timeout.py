"""A writer waits for other writers of its branch at most as long as it was asked to."""

import math
import time

import pytest

import omnigraph.graph as og
from omnigraph.commit.commit_queue import QueuedChange
from omnigraph.errors import Contention, InvalidInput
from omnigraph.server.request import preferred_wait
from omnigraph.write.transaction import commit_queue

SCHEMA = "node Note { slug: String @key\n text: String? }\n"
INSERT = 'query add() { insert Note { slug: "n" } }'


@pytest.fixture
def graph(tmp_path):
    return og.init(tmp_path / "graph", SCHEMA)


WRITES = {
    "mutate": lambda graph, timeout: graph.mutate(INSERT, timeout=timeout),
    "load": lambda graph, timeout: graph.load({"Note": [{"slug": "n"}]}, timeout=timeout),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_small_change_fails_when_its_turn_does_not_come(graph, name):
    queue = commit_queue(graph._manifest, None)
    before = graph.snapshot().commit_id
    turn = queue.turn(QueuedChange(time.monotonic() + 60, alone=True))
    with turn, pytest.raises(Contention) as failure:
        WRITES[name](og.open(graph.uri), 0.05)
    assert failure.value.code == "commit_timeout"
    assert graph.snapshot().commit_id == before
    WRITES[name](graph, 0.05)
    assert graph.entity_at("Note", "n") is not None


@pytest.mark.parametrize("name", WRITES)
def test_a_change_that_need_not_wait_is_made_with_a_timeout_of_zero(graph, name):
    WRITES[name](graph, 0)
    assert graph.entity_at("Note", "n") is not None


@pytest.mark.parametrize("timeout", [-1, math.nan, math.inf, "5"])
@pytest.mark.parametrize(
    "write",
    [
        *WRITES.values(),
        lambda graph, timeout: graph.merge("side", timeout=timeout),
        lambda graph, timeout: graph.schema.apply(SCHEMA, timeout=timeout),
    ],
    ids=[*WRITES, "merge", "schema apply"],
)
def test_a_timeout_is_a_number_of_seconds(graph, write, timeout):
    graph.branches.create("side")
    with pytest.raises(InvalidInput) as failure:
        write(graph, timeout)
    assert failure.value.code == "timeout_invalid"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([], None),
        (["wait=5"], 5.0),
        (["respond-async, wait=10; strict"], 10.0),
        (["handling=lenient", 'Wait = "7"'], 7.0),
        (["wait=soon", "wait=-1", "wait=1.5", "await=3"], None),
    ],
)
def test_the_timeout_of_a_request_is_its_preference(headers, seconds):
    assert preferred_wait(headers) == seconds
