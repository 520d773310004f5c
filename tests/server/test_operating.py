"""Running a server: it stops gracefully, speaks TLS, and tells what it does."""

import json
import signal
import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest

from tests.support.certificates import make_certificate
from tests.support.serving import ALL_PEOPLE, INSERT, PATIENCE, make_graph, serving
from tests.support.sockets import connected, everything
from tests.support.wire_contract import validator


def test_what_was_asked_before_the_end_is_answered(tmp_path):
    uri = make_graph(tmp_path / "g")
    body = json.dumps({"query": INSERT, "params": {"name": "Last", "age": 1}}).encode()
    head = (
        b"POST /graphs/g/mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    with (
        serving(f"--graph=g={uri}", "--unauthenticated", preloaded=False) as server,
        connected(server.address) as connection,
    ):
        connection.sendall(head)
        # The server reads the body now: the request is under way.
        assert connection.recv(1_000).startswith(b"HTTP/1.1 100 ")
        server.process.send_signal(signal.SIGTERM)
        _until(lambda: any("Shutting down" in line for line in server.log))
        connection.sendall(body)
        answer = everything(connection)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b'"affected_nodes":1' in answer
        assert server.process.wait(PATIENCE) == 0


@pytest.fixture
def certificate(tmp_path):
    return make_certificate(tmp_path)


class Collector(BaseHTTPRequestHandler):
    """Takes spans."""

    got = threading.Event()
    paths: ClassVar[list[str]] = []

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.paths.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.got.set()

    def log_message(self, *_):
        pass


def test_requests_are_encrypted_and_traced_where_that_is_configured(tmp_path, certificate):
    uri = make_graph(tmp_path / "g")
    cert, key = certificate
    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }
        with (
            serving(
                f"--graph=g={uri}",
                "--unauthenticated",
                f"--tls-cert={cert}",
                f"--tls-key={key}",
                environment=environment,
                scheme="https",
            ) as server,
            server.client(verify=ssl.create_default_context(cafile=cert)) as client,
        ):
            assert client.post("/graphs/g/query", json={"query": ALL_PEOPLE}).json()["rows"] == []
            assert Collector.got.wait(PATIENCE)
        collector.shutdown()
    assert set(Collector.paths) == {"/v1/traces"}


def test_metrics_count_routes_and_never_names(open_server):
    with open_server.client() as client:
        client.get("/graphs/secret-name/schema")
        client.request("FROBNICATE", "/healthz")
        text = client.get("/metrics").text
    assert 'route="/graphs/{graph_id}/schema",status="404"' in text
    assert "secret-name" not in text
    assert "FROBNICATE" not in text


def test_the_log_ties_lines_to_requests(open_server):
    with open_server.client() as client:
        client.get("/graphs", headers={"X-Request-Id": "tie-me"})
    _until(lambda: len(_tied(open_server)) == 2)
    decided, answered = _tied(open_server)
    assert (decided["logger"], decided["action"], decided["allowed"]) == (
        "omnigraph.policy",
        "graph_list",
        False,
    )
    assert (answered["route"], answered["status"]) == ("/graphs", 403)
    assert answered["milliseconds"] >= 0


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    folder = tmp_path_factory.mktemp("proxied")
    uri = make_graph(folder / "g")
    with serving(
        f"--graph=g={uri}",
        f"--graph=other={make_graph(folder / 'other')}",
        "--trusted-proxy=127.0.0.0/8",
        "--trusted-proxy=10.1.0.0/16",
        environment={"OMNIGRAPH_SERVER_BEARER_TOKEN": "secret"},
    ) as server:
        yield server, folder


def lines_of(server, request_id):
    """Return what the log has about a request, its own line last."""

    def found():
        lines = [json.loads(line) for line in list(server.log) if request_id in line]
        return [line for line in lines if line["request_id"] == request_id]

    _until(lambda: any("status" in line for line in found()))
    return found()


def test_lines_of_a_request_name_its_graph_its_client_and_its_commit(open_server, guarded_server):
    with open_server.client() as client:
        body = {"query": INSERT, "params": {"name": "Logged", "age": 1}}
        done = client.post(
            "/graphs/operating/mutate", json=body, headers={"X-Request-Id": "log-write"}
        )
        client.post(
            "/graphs/operating/query",
            json={"query": ALL_PEOPLE},
            headers={"X-Request-Id": "log-read"},
        )
    commit = done.json()["commit"]["graph_commit_id"]
    for request_id in ("log-write", "log-read"):
        *_, line = lines_of(open_server, request_id)
        assert (line["graph_id"], line["client_address"]) == ("operating", "127.0.0.1")
        assert line["commit_id"] == commit
    with guarded_server.client("token-ada") as client:
        headers = {"X-Request-Id": "log-decision"}
        commits = client.get("/graphs/guarded/commits").json()["commits"]
        asked = {"query": ALL_PEOPLE, "snapshot": commits[0]["graph_commit_id"]}
        client.post("/graphs/guarded/query", json=asked, headers=headers)
    decided, answered = lines_of(guarded_server, "log-decision")
    assert (decided["logger"], decided["allowed"]) == ("omnigraph.policy", True)
    for line in (decided, answered):
        assert (line["graph_id"], line["client_address"]) == ("guarded", "127.0.0.1")
    assert answered["commit_id"] == asked["snapshot"]


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ([], "127.0.0.1"),
        (["203.0.113.7"], "203.0.113.7"),
        (["198.51.100.1, 203.0.113.7, 10.1.2.3"], "203.0.113.7"),
        (["203.0.113.7", "10.1.2.3"], "203.0.113.7"),
        (["spoofed, 203.0.113.7"], "203.0.113.7"),
        (["203.0.113.7, nonsense"], "127.0.0.1"),
        (["2001:db8::1"], "2001:db8::1"),
    ],
)
def test_addresses_of_clients_behind_trusted_proxies_are_logged(proxied, forwarded, client):
    server, _ = proxied
    request_id = f"proxied-{abs(hash((*forwarded,)))}"
    headers = [("X-Forwarded-For", text) for text in forwarded]
    with server.client("secret") as one:
        one.get("/healthz", headers=[*headers, ("X-Request-Id", request_id)])
    *_, line = lines_of(server, request_id)
    assert line["client_address"] == client


def test_nothing_is_believed_of_a_client_that_no_proxy_speaks_for(open_server):
    with open_server.client() as client:
        headers = {"X-Forwarded-For": "203.0.113.7", "X-Request-Id": "not-proxied"}
        client.get("/healthz", headers=headers)
    *_, line = lines_of(open_server, "not-proxied")
    assert line["client_address"] == "127.0.0.1"


def test_a_server_whose_storage_is_gone_is_not_ready(proxied):
    server, folder = proxied
    with server.client("secret") as client, server.client() as stranger:
        ready = {"status": "ready", "graphs": 2, "graphs_ready": 2}
        assert stranger.get("/readyz").json() == ready
        assert client.get("/graphs/g/readyz").json() == {
            "status": "ready",
            "graphs": 1,
            "graphs_ready": 1,
        }
        assert stranger.get("/graphs/g/readyz").status_code == 401
        (folder / "g").rename(folder / "gone")
        _until(lambda: client.get("/graphs/g/readyz").status_code == 503)
        _until(lambda: stranger.get("/readyz").json() == {**ready, "graphs_ready": 1})
        assert client.get("/graphs/other/readyz").status_code == 200
        (folder / "other").rename(folder / "other-gone")
        _until(lambda: stranger.get("/readyz").status_code == 503)
        answer = stranger.get("/readyz")
        validator("ErrorOutput").validate(answer.json())
        assert answer.json()["problem"]["code"] == "not_ready"
        assert answer.json()["problem"]["details"] == {"graphs": 2, "graphs_ready": 0}
        assert str(folder) not in answer.text
        assert stranger.get("/healthz").status_code == 200
        for name in ("g", "other"):
            (folder / ("gone" if name == "g" else "other-gone")).rename(folder / name)
        _until(lambda: stranger.get("/readyz").json() == ready)


def _tied(server):
    lines = [json.loads(line) for line in list(server.log) if "tie-me" in line]
    return [line for line in lines if line["request_id"] == "tie-me"]


def _until(holds):
    pause = threading.Event()
    for _ in range(int(PATIENCE * 20)):
        if holds():
            return
        pause.wait(0.05)
    raise AssertionError("it never came true")
