"""Processes of a server reach the queries of each other; one that died has none."""

import socket
import threading

import pytest

from omnigraph.errors import OmniError
from omnigraph.query.limits import QueryBudget, QueryCancelled
from omnigraph.query.running import QueryRecord, RunningQueries
from omnigraph.server.query_peers import WorkerQueries

GRAPH = "/graphs/g"


def begun(registry, actor):
    record = QueryRecord(
        registry=registry,
        graph=GRAPH,
        actor=actor,
        name="q",
        text="query q() { }",
        commit_id="c",
        plan=lambda: "Scan",
    )
    record.begin()
    return record


@pytest.fixture
def worker(tmp_path):
    """A process with a query of ada's, as another process sees it."""
    own = RunningQueries()
    answering = WorkerQueries(tmp_path, own)
    answering.start()
    record = begun(own, "ada")
    asking = WorkerQueries(tmp_path, RunningQueries())
    asking._path = tmp_path / "queries-0.sock"  # of another process
    yield record, asking
    asking._listening.close()


def test_queries_of_another_process_are_listed_and_cancelled(worker):
    record, peers = worker
    registry = RunningQueries()
    registry.peers = peers
    mine = begun(registry, "bob")
    assert [query.id for query in registry.list(GRAPH)] == [record.id, mine.id]
    [found] = registry.list(GRAPH, owner="ada")
    assert (found.id, found.started_at, found.digest) == (
        record.id,
        record.started_at,
        record.digest,
    )
    assert registry.list("/graphs/other") == []
    assert not registry.cancel(record.id, GRAPH, owner="bob")
    record.check("Scan")
    assert registry.cancel(record.id, GRAPH, owner="ada")
    with pytest.raises(QueryCancelled, match="it was at Sort"):
        QueryBudget(observer=record).check("Sort")
    record.end()
    assert [query.id for query in registry.list(GRAPH)] == [mine.id]
    assert not registry.cancel(record.id, GRAPH)


def test_a_process_that_died_has_no_queries(worker, tmp_path):
    record, peers = worker
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    dead.bind(str(tmp_path / "queries-1.sock"))
    dead.close()
    assert [query.id for query in peers.list(GRAPH)] == [record.id]
    assert not (tmp_path / "queries-1.sock").exists()


def test_a_process_that_answers_nonsense_is_reported(worker, tmp_path):
    _, peers = worker
    other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    other.bind(str(tmp_path / "queries-1.sock"))
    other.listen()

    def answer():
        connection, _ = other.accept()
        with connection:
            connection.recv(4_096)
            connection.sendall(b"nonsense\n")

    thread = threading.Thread(target=answer)
    thread.start()
    with pytest.raises(OmniError, match="did not report its running queries") as error:
        peers.list(GRAPH)
    thread.join()
    other.close()
    assert error.value.code == "worker_unreachable"


def test_a_process_whose_folder_has_a_long_path_serves_all_the_same(tmp_path, caplog):
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    peers = WorkerQueries(folder, RunningQueries())
    peers.start()
    assert "other processes cannot list the queries of this one" in caplog.text
    assert peers.list(GRAPH) == []
    peers._listening.close()
