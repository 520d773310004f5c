"""Several processes serve one graph: nothing is lost, and one that dies is replaced."""

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

import omnigraph.graph as og
from tests.support.serving import ALL_PEOPLE, INSERT, PATIENCE, make_graph, serving

WRITERS, EACH = 6, 5


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    uri = make_graph(folder / "g")
    with serving(f"--graph=g={uri}", "--unauthenticated", "--workers=3") as server:
        yield server, uri


def workers(server):
    return _children(server.process.pid)


def _children(pid):
    shown = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    return {int(pid) for pid in shown.stdout.split()}


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_server_and_all_its_workers_exit_with_zero(tmp_path, number):
    uri = make_graph(tmp_path / "g")
    with serving(f"--graph=g={uri}", "--unauthenticated", "--workers=2") as server:
        started = workers(server)
        with server.client() as client:
            assert insert(client, "Ada").status_code == 200
        server.process.send_signal(number)
        assert server.process.wait(PATIENCE) == 0
    assert exits(server.log) == dict.fromkeys(started, 0)
    assert not any("Fatal Python error" in line for line in server.log)


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
