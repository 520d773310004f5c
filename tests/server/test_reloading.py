"""SIGHUP reads tokens, policies, stored queries and certificates again, without downtime."""

import json
import signal
import socket
import ssl
import subprocess
import threading

import pytest

from tests.support.certificates import make_certificate
from tests.support.serving import ALL_PEOPLE, PATIENCE, STORED, make_graph, serving, stored_folder

POLICY = """
version: 1
groups: {{readers: [{readers}]}}
rules:
  - id: read
    allow: {{actors: {{group: readers}}, actions: [read], branch_scope: any}}
  - id: look
    allow: {{actors: {{group: readers}}, actions: [read]}}
  - id: invoke
    allow: {{actors: {{group: readers}}, actions: [invoke_query]}}
"""
COUNT = "query people_count() { match { $p: Person } return { count($p) as n } }\n"
RELOADED, REFUSED = "reloaded tokens", "reload refused"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY.format(readers="ada"))
    (tmp_path / "tokens.json").write_text(json.dumps({"ada": "one", "bob": "bobs"}))
    stored_folder(tmp_path / "queries")
    make_certificate(tmp_path, serial=1)
    return tmp_path


def options(files):
    return [
        f"--graph=g={make_graph(files / 'g')}",
        f"--policy={files / 'policy.yaml'}",
        f"--queries={files / 'queries'}",
    ], {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(files / "tokens.json")}


def reload(server, message, times=1):
    """Send the signal, and wait until each process reported what became of it."""
    seen = sum(message in line for line in list(server.log))
    server.process.send_signal(signal.SIGHUP)
    pause = threading.Event()
    for _ in range(int(PATIENCE * 20)):
        if sum(message in line for line in list(server.log)) == seen + times:
            return
        pause.wait(0.05)
    raise AssertionError("".join(server.log))


def read(server, token):
    with server.client(token, verify=False) as client:
        return client.post("/graphs/g/query", json={"query": ALL_PEOPLE}).status_code


def stored(server, token):
    with server.client(token, verify=False) as client:
        found = client.get("/graphs/g/queries").json()["queries"]
    return [query["name"] for query in found]


def serial(server):
    """Return the serial number of the certificate that a new connection is shown."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, _, port = server.url.removeprefix("https://").rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=PATIENCE) as plain,
        context.wrap_socket(plain) as connection,
    ):
        shown = connection.getpeercert(binary_form=True)
    read = subprocess.run(
        ["openssl", "x509", "-inform", "der", "-noout", "-serial"],
        input=shown,
        capture_output=True,
        check=True,
    )
    return int(read.stdout.decode().strip().removeprefix("serial="), 16)


def test_new_files_are_used_and_broken_ones_are_not(files):
    arguments, environment = options(files)
    tls = [f"--tls-cert={files / 'cert.pem'}", f"--tls-key={files / 'key.pem'}"]
    with (
        serving(*arguments, *tls, environment=environment, scheme="https") as server,
        server.client("one", verify=False) as connected,
    ):
        assert connected.get("/graphs/g/schema").status_code == 200
        assert (read(server, "two"), read(server, "bobs")) == (401, 403)
        assert serial(server) == 1

        (files / "tokens.json").write_text(json.dumps({"ada": ["one", "two"], "bob": "bobs"}))
        (files / "policy.yaml").write_text(POLICY.format(readers="ada, bob"))
        (files / "queries" / "more.gq").write_text(COUNT)
        make_certificate(files, serial=2)
        reload(server, RELOADED)
        assert [read(server, token) for token in ("one", "two", "bobs")] == [200, 200, 200]
        assert stored(server, "two") == ["add_person", "adults", "people_count"]
        assert serial(server) == 2
        # A connection from before is still open and still serves.
        assert connected.get("/graphs/g/schema").status_code == 200

        broken = {
            "tokens.json": "{",
            "policy.yaml": "version: 7",
            "queries/more.gq": "query x() { match { $p: Nope } return { $p } }",
            "key.pem": "no key",
        }
        good = {name: (files / name).read_text() for name in broken}
        for name, text in broken.items():
            (files / name).write_text(text)
            # Others are fine and still not used: all files of a reload belong together.
            (files / "queries" / "people.gq").write_text(STORED.replace("adults", "grown"))
            reload(server, REFUSED)
            assert read(server, "two") == 200
            assert stored(server, "two") == ["add_person", "adults", "people_count"]
            assert serial(server) == 2
            (files / name).write_text(good[name])

        (files / "tokens.json").write_text(json.dumps({"ada": "two", "bob": "bobs"}))
        reload(server, RELOADED)
        assert (read(server, "one"), read(server, "two")) == (401, 200)
        assert stored(server, "two") == ["add_person", "grown", "people_count"]
        (files / "tokens.json").write_text("{}")
        reload(server, REFUSED)
        assert read(server, "two") == 200
    assert not any('"two"' in line or "bobs" in line for line in server.log)


def test_every_worker_reloads(files):
    arguments, environment = options(files)
    with serving(*arguments, "--workers=2", environment=environment) as server:
        (files / "tokens.json").write_text(json.dumps({"ada": "two"}))
        reload(server, RELOADED, times=2)
        assert {read(server, "two") for _ in range(8)} == {200}
        assert {read(server, "one") for _ in range(8)} == {401}
        assert server.stop() == 0


def test_an_open_server_does_not_become_another_by_a_reload(tmp_path):
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"ada": "one"}))
    arguments = [f"--graph=g={make_graph(tmp_path / 'g')}", "--unauthenticated"]
    environment = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tokens)}
    with serving(*arguments, environment=environment) as server:
        tokens.write_text("{}")
        reload(server, REFUSED)
        assert (read(server, None), read(server, "one")) == (401, 200)
        assert any("default_deny to open" in line for line in server.log)
