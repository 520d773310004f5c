"""Several processes serve one graph: nothing is lost, and one that dies is replaced."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

import omnigraph.graph as og
from tests.support.serving import ALL_PEOPLE, INSERT, PATIENCE, make_graph, serving
from tests.support.sockets import connected

WRITERS, EACH = 6, 5


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    uri = make_graph(folder / "g")
    with serving(f"--graph=g={uri}", "--unauthenticated", "--workers=3", preloaded=False) as server:
        yield server, uri


def workers(server):
    return _children(server.process.pid)


def _children(pid):
    shown = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = (line.split() for line in shown.stdout.splitlines())
    return {int(words[0]) for words in lines if "omnigraph.server.maintenance_worker" not in words}


def insert(client, name):
    body = {"query": INSERT, "params": {"name": name, "age": len(name)}}
    return client.post("/graphs/g/mutate", json=body)


def people(client):
    rows = client.post("/graphs/g/query", json={"query": ALL_PEOPLE}).json()["rows"]
    return {row["name"]: row["age"] for row in rows}


def test_writers_at_several_processes_lose_nothing(several):
    server, uri = several

    def write(number):
        with server.client() as client:
            for step in range(EACH):
                name = f"w{number}-{step}"
                done = insert(client, name)
                while done.status_code == 409:
                    done = insert(client, name)
                assert done.status_code == 200
                # Whoever is asked next may be another process: it sees what was acknowledged.
                assert name in people(client)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    expected = {f"w{n}-{s}": len(f"w{n}-{s}") for n in range(WRITERS) for s in range(EACH)}
    with server.client() as client:
        assert people(client) == expected
    graph = og.open(uri, mode="ro")
    assert {row["name"]: row["age"] for row in graph.query(ALL_PEOPLE)} == expected
    assert len(graph.commits.list()) == 1 + WRITERS * EACH
    assert graph.verify().ok


def test_a_process_that_is_killed_is_replaced_and_nothing_acknowledged_is_lost(several):
    server, uri = several
    before = workers(server)
    assert len(before) == 3
    acknowledged, stop = [], threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            number += 1
            name = f"k{number}"
            try:
                with server.client() as client:
                    if insert(client, name).status_code == 200:
                        acknowledged.append(name)
            except httpx.TransportError:
                continue

    writer = threading.Thread(target=write)
    writer.start()
    try:
        _until(lambda: len(acknowledged) > 2)
        killed = min(before)
        os.kill(killed, signal.SIGKILL)
        _until(lambda: len(workers(server)) == 3 and killed not in workers(server))
        seen = len(acknowledged)
        _until(lambda: len(acknowledged) > seen + 2)
    finally:
        stop.set()
        writer.join(PATIENCE)
    with server.client() as client:
        found = people(client)
    assert set(acknowledged) <= set(found)
    assert og.open(uri, mode="ro").verify().ok
    assert any("another takes its place" in line for line in server.log)


@contextmanager
def burst(server, count):
    """Open connections at once, and keep them."""
    with ExitStack() as stack:
        yield [stack.enter_context(connected(server.address)) for _ in range(count)]


def ask(server, connections, label):
    """Send a request on each connection; return how many each process answered."""
    for number, connection in enumerate(connections):
        head = f"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: {label}-{number}\r\n\r\n"
        connection.sendall(head.encode())
    for connection in connections:
        assert connection.recv(4_096).startswith(b"HTTP/1.1 200 ")

    def answered():
        lines = [json.loads(line) for line in list(server.log) if f'"{label}-' in line]
        return Counter(line["process"] for line in lines if "status" in line)

    _until(lambda: sum(answered().values()) == len(connections))
    return answered()


def test_connections_are_spread_over_workers_also_over_a_replaced_one(tmp_path):
    uri = make_graph(tmp_path / "g")
    arguments = ["--unauthenticated", "--workers=2", "--connection-age=2"]
    with serving(f"--graph=g={uri}", *arguments, preloaded=False) as server:
        before = workers(server)
        with burst(server, 32) as connections:
            found = ask(server, connections, "burst")
        assert found.keys() == before
        # By chance each gets about half; fewer than 4 of 32 happen once in 400,000 times.
        assert min(found.values()) >= 4
        killed = min(before)
        os.kill(killed, signal.SIGKILL)
        # Connections to the socket of a worker that is gone are not lost, and do not wait for long.
        with burst(server, 16) as connections:
            found = ask(server, connections, "gap")
        assert sum(found.values()) == 16
        _until(lambda: len(workers(server)) == 2 and killed not in workers(server))
        [replacement] = workers(server) - before
        with server.client() as client:
            number = 0

            def reached():
                nonlocal number
                number += 1
                client.get("/healthz", headers={"X-Request-Id": f"kept-{number}"})
                lines = [json.loads(line) for line in list(server.log) if '"kept-' in line]
                return any(line["process"] == replacement for line in lines)

            # One client that keeps its connection reaches the replacement once that is old.
            _until(reached)
        with burst(server, 32) as connections:
            found = ask(server, connections, "again")
        left = workers(server)
        assert found.keys() == left
        assert min(found.values()) >= 4
        assert server.stop() == 0
    check_stopped(server, left)


def test_a_worker_that_cannot_start_does_not_end_the_others(tmp_path):
    tokens = tmp_path / "tokens.json"
    tokens.write_text('{"ada": "secret"}')
    environment = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tokens)}
    arguments = [f"--graph=g={make_graph(tmp_path / 'g')}", "--workers=2"]
    with (
        serving(*arguments, environment=environment, preloaded=False) as server,
        server.client("secret") as client,
    ):
        tokens.write_text("{")
        left = workers(server)
        os.kill(left.pop(), signal.SIGKILL)
        _until(lambda: sum("tokens_invalid" in line for line in server.log) > 1)
        assert client.get("/graphs/g/schema").status_code == 200
        tokens.write_text('{"ada": "secret"}')
        _until(lambda: len(workers(server) - left) == 1)
        assert server.stop() == 0


def test_two_servers_do_not_share_an_address(several):
    server, uri = several
    host, port = server.address
    second = start(uri, f"--bind={host}:{port}", "--workers=2")
    _, err = second.communicate(timeout=PATIENCE)
    assert (second.returncode, "error[bind_failed]" in err) == (1, True)


def test_processes_count_together(several):
    server, _ = several
    with server.client() as client:
        for _ in range(5):
            client.get("/healthz")
        text = client.get("/metrics").text
    counted = [line for line in text.splitlines() if line.startswith("omnigraph_requests_total{")]
    assert any('route="/graphs/{graph_id}/mutate"' in line for line in counted)


def exits(lines):
    """Return the exit code of each worker process that the supervisor stopped."""
    records = [json.loads(line) for line in lines if line.startswith("{")]
    return {record["pid"]: record["exit_code"] for record in records if "exit_code" in record}


def check_stopped(server, left):
    """Check that all processes that were left ended as programs of Python do."""
    found = exits(server.log)
    assert {pid: found.get(pid) for pid in left} == dict.fromkeys(left, 0)
    assert not any("Fatal Python error" in line for line in server.log)


# The test above that replaces a worker stops its server by SIGTERM.
def test_an_interrupted_server_and_all_its_workers_exit_with_zero(tmp_path):
    uri = make_graph(tmp_path / "g")
    with serving(f"--graph=g={uri}", "--unauthenticated", "--workers=2", preloaded=False) as server:
        started = workers(server)
        with server.client() as client:
            assert insert(client, "Ada").status_code == 200
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(PATIENCE) == 0
    check_stopped(server, started)
    assert exits(server.log).keys() == started


def start(uri, *arguments, tokens=None):
    """Start a server and do not wait until it is ready."""
    protected = ["--unauthenticated"] if tokens is None else []
    named = {} if tokens is None else {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tokens)}
    command = ["serve", "--bind=127.0.0.1:0", f"--graph=g={uri}", *protected, *arguments]
    return subprocess.Popen(
        [sys.executable, "-m", "omnigraph.cli", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **named},
    )


def test_a_stop_while_workers_start_is_a_normal_stop(tmp_path):
    server = start(make_graph(tmp_path / "g"), "--workers=2")
    _until(lambda: len(_children(server.pid)) == 2)
    started = _children(server.pid)
    server.send_signal(signal.SIGTERM)
    out, err = server.communicate(timeout=PATIENCE)
    assert (server.returncode, out) == (0, "")
    assert exits(err.splitlines()) == dict.fromkeys(started, 0)
    assert "error[" not in err


@pytest.mark.parametrize("arguments", [[], ["--workers=2"]], ids=["one", "several"])
def test_a_stop_while_a_server_reads_its_files_is_a_normal_stop(tmp_path, arguments):
    tokens = tmp_path / "tokens.json"
    os.mkfifo(tokens)
    server = start(make_graph(tmp_path / "g"), *arguments, tokens=tokens)
    # Opening returns once a process reads the other end, which then waits for content.
    with tokens.open("w"):
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=PATIENCE)
    assert (server.returncode, out) == (0, "")
    assert set(exits(err.splitlines()).values()) <= {0}
    assert "error[" not in err


def test_processes_end_with_whoever_started_them(several):
    server, _ = several
    left = workers(server)
    assert len(left) == 3
    server.process.kill()
    server.process.wait(PATIENCE)
    _until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))


def _until(holds):
    pause = threading.Event()
    for _ in range(int(PATIENCE * 10)):
        if holds():
            return
        pause.wait(0.1)
    raise AssertionError("it never came true")
