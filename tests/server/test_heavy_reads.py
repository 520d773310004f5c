"""Long reads stop with their clients, and do not keep short reads of other actors waiting."""

import json
import socket
import threading
import time
from contextlib import ExitStack

import pytest

import omnigraph.graph as og
from tests.support.serving import ALL_PEOPLE, INSERT, PATIENCE, make_graph, serving
from tests.support.sockets import connected
from tests.support.wire_contract import validator

RING = 700
LONG = """
query longest() {
  match { $a: Person  $b: Person }
  return { $a.name as a, path_length($a, <knows>, $b) as n }
  order { n desc }
  limit 1
}
"""
"""Takes half a minute: from each of the people to each of the others, around the ring."""
SHORT = 'query one() { match { $p: Person  $p.name = "p1" } return { $p.name as name } }'
READS = 8


def ring(uri):
    lines = [{"type": "Person", "data": {"name": f"p{n}"}} for n in range(RING)]
    lines += [{"edge": "Knows", "from": f"p{n}", "to": f"p{(n + 1) % RING}"} for n in range(RING)]
    og.open(uri).load("\n".join(json.dumps(line) for line in lines).encode())


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("heavy")
    uri = make_graph(folder / "g")
    ring(uri)
    tokens = folder / "tokens.json"
    tokens.write_text(json.dumps({"ada": "ada-token", "bob": "bob-token"}))
    environment = {
        "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tokens),
        "OMNIGRAPH_PER_ACTOR_READS_MAX": str(READS),
    }
    with serving(f"--graph=g={uri}", "--query-timeout=600", environment=environment) as found:
        yield found


def send(connection, body, path="query", accept="application/json"):
    """Send a request of ada's, and read no answer."""
    data = json.dumps(body).encode()
    head = (
        f"POST /graphs/g/{path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Accept: {accept}\r\nAuthorization: Bearer ada-token\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    connection.sendall(head.encode() + data)


def metric(server, name):
    with server.client() as client:
        lines = client.get("/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def running(server):
    return metric(server, "omnigraph_reads_running")


CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "query", "arguments": {"query": LONG}},
}


@pytest.mark.parametrize(
    ("path", "body", "accept"),
    [
        ("query", {"query": LONG}, "application/json"),
        ("query", {"query": LONG}, "application/x-ndjson"),
        ("explain", {"query": LONG, "analyze": True}, "application/json"),
        ("mcp", CALL, "application/json, text/event-stream"),
    ],
    ids=["json", "lines", "explain", "mcp"],
)
def test_a_query_whose_client_has_gone_stops(server, path, body, accept):
    before = metric(server, "omnigraph_reads_cancelled_total")
    with ExitStack() as stack:
        for _ in range(3):
            send(stack.enter_context(connected(server.address)), body, path, accept)
        _until(lambda: running(server) == 3)
    _until(lambda: running(server) == 0)
    assert metric(server, "omnigraph_reads_cancelled_total") == before + 3
    assert not any("Traceback" in line for line in server.log)


def test_a_short_read_of_another_actor_is_answered_while_long_ones_run(server):
    with ExitStack() as stack:
        connections = [stack.enter_context(connected(server.address)) for _ in range(READS)]
        for connection in connections:
            send(connection, {"query": LONG})
        # Some run, some wait; none of them ends in time.
        _until(lambda: running(server) >= 6)
        with server.client("bob-token") as bob:
            begun = time.monotonic()
            for _ in range(3):
                answer = bob.post("/graphs/g/query", json={"query": SHORT})
                assert answer.json()["rows"] == [{"name": "p1"}]
            assert time.monotonic() - begun < 30
        with server.client("ada-token") as ada:
            refused = ada.post("/graphs/g/query", json={"query": SHORT})
            assert refused.status_code == 429
            validator("ErrorOutput").validate(refused.json())
            assert refused.json()["code"] == "too_many_requests"
            assert 1 <= int(refused.headers["retry-after"]) <= 60
            for path, body in (("export", {}), ("mcp", CALL)):
                assert ada.post(f"/graphs/g/{path}", json=body).status_code in (403, 429)
    _until(lambda: running(server) == 0)
    with server.client("ada-token") as ada:
        assert ada.post("/graphs/g/query", json={"query": SHORT}).status_code == 200


def test_a_query_of_a_deadline_that_passed_stops(tmp_path):
    uri = make_graph(tmp_path / "g")
    ring(uri)
    arguments = ["--unauthenticated", "--query-timeout=600", "--deadline=2"]
    with serving(f"--graph=g={uri}", *arguments) as server, server.client() as client:
        assert client.post("/graphs/g/query", json={"query": LONG}).status_code == 503
        _until(lambda: metric(server, "omnigraph_reads_cancelled_total") == 1)
        assert running(server) == 0


def test_a_change_whose_client_has_gone_is_finished(tmp_path):
    uri = make_graph(tmp_path / "g")
    with serving(f"--graph=g={uri}", "--unauthenticated") as server:
        body = json.dumps({"query": INSERT, "params": {"name": "Left", "age": 1}}).encode()
        head = (
            b"POST /graphs/g/mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body)
        )
        with connected(server.address) as connection:
            connection.sendall(head + body)
            connection.shutdown(socket.SHUT_RDWR)
        with server.client() as client:

            def people():
                found = client.post("/graphs/g/query", json={"query": ALL_PEOPLE})
                return [row["name"] for row in found.json()["rows"]]

            _until(lambda: people() == ["Left"])


def test_a_stream_counts_as_long_as_it_is_read(tmp_path):
    uri = make_graph(tmp_path / "g")
    lines = [{"type": "Person", "data": {"name": f"p{n}" + "x" * 900}} for n in range(20_000)]
    og.open(uri).load("\n".join(json.dumps(line) for line in lines).encode())
    environment = {"OMNIGRAPH_PER_ACTOR_READS_MAX": "1"}
    with (
        serving(f"--graph=g={uri}", "--unauthenticated", environment=environment) as server,
        server.client() as client,
    ):
        with connected(server.address) as connection:
            send(connection, {}, "export")
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
            assert client.post("/graphs/g/query", json={"query": SHORT}).status_code == 429
        _until(lambda: client.post("/graphs/g/query", json={"query": SHORT}).status_code == 200)
        assert not any("Traceback" in line for line in server.log)


def _until(holds):
    pause = threading.Event()
    for _ in range(int(PATIENCE * 10)):
        if holds():
            return
        pause.wait(0.1)
    raise AssertionError("it never came true")
