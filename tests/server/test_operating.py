"""Running a server: it stops gracefully, speaks TLS, and tells what it does."""

import datetime
import ipaddress
import json
import signal
import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.serving import ALL_PEOPLE, INSERT, PATIENCE, make_graph, serving
from tests.support.sockets import connected, everything


def test_what_was_asked_before_the_end_is_answered(tmp_path):
    uri = make_graph(tmp_path / "g")
    body = json.dumps({"query": INSERT, "params": {"name": "Last", "age": 1}}).encode()
    head = (
        b"POST /graphs/g/mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    with (
        serving(f"--graph=g={uri}", "--unauthenticated") as server,
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
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "omnigraph")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    (tmp_path / "cert.pem").write_bytes(made.public_bytes(pem))
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    )
    return tmp_path / "cert.pem", tmp_path / "key.pem"


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
