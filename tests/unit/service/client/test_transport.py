"""What is sent again and what is not, seen by a server with prepared answers."""

import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import omnigraph as og
from omnigraph.errors import InvalidInput, StorageUnavailable
from omnigraph.service.client import connect
from omnigraph.service.client.transport import RemoteCall, RetryPolicy, Transport

READ = RemoteCall(method="GET", path="/x", reads=True)
WRITE = RemoteCall(method="POST", path="/x", json={})
FAST = RetryPolicy(connect=5, answer=5, attempts=3, wait=5)
HANG_UP = "hang up"


class Scripted(ThreadingHTTPServer):
    """Answers requests one after the other as a script says."""

    daemon_threads = True

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = deque(script)
        self.asked = []
        self.preferences = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        length = int(self.headers.get("Content-Length", 0))
        self.rfile.read(length)
        self.server.asked.append((self.command, self.path, self.headers.get("Authorization")))
        self.server.preferences.append(self.headers.get("Prefer"))
        answer = self.server.script.popleft()
        if answer == HANG_UP:
            self.close_connection = True
            return
        status, headers, body = answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_):
        """Keep quiet."""


@pytest.fixture
def scripted():
    servers = []

    def start(*script):
        server = Scripted(script)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server, Transport(server.url, "secret", FAST)

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


OK = (200, {}, b'{"fine": true}')
BUSY = (429, {"Retry-After": "0"}, b'{"error": "too many", "code": "too_many_requests"}')


def test_token_goes_with_every_request(scripted):
    server, transport = scripted(OK)
    assert transport.decoded(READ, dict) == {"fine": True}
    assert server.asked == [("GET", "/x", "Bearer secret")]


@pytest.mark.parametrize("call", [READ, WRITE], ids=["read", "write"])
def test_refusal_to_begin_is_tried_again(scripted, call):
    server, transport = scripted(BUSY, BUSY, OK)
    assert transport.decoded(call, dict) == {"fine": True}
    assert len(server.asked) == 3


def test_refusal_to_begin_is_reported_when_it_lasts(scripted):
    server, transport = scripted(BUSY, BUSY, BUSY)
    with pytest.raises(og.OmniError) as caught:
        transport.decoded(WRITE, dict)
    assert caught.value.code == "too_many_requests"
    assert len(server.asked) == 3


def test_long_waits_are_not_waited_for(scripted):
    server, transport = scripted((429, {"Retry-After": "60"}, b'{"error": "too many"}'))
    with pytest.raises(og.OmniError):
        transport.decoded(READ, dict)
    assert len(server.asked) == 1


def test_read_that_broke_off_is_tried_again(scripted):
    server, transport = scripted(HANG_UP, (502, {}, b"bad gateway"), OK)
    assert transport.decoded(READ, dict) == {"fine": True}
    assert len(server.asked) == 3


def test_write_that_broke_off_is_not_sent_again(scripted):
    server, transport = scripted(HANG_UP, OK)
    with pytest.raises(og.OmniError) as caught:
        transport.decoded(WRITE, dict)
    assert (caught.value.code, caught.value.category) == ("outcome_unknown", "outcome_unknown")
    assert len(server.asked) == 1


def test_write_is_not_sent_again_after_a_fault_of_the_server(scripted):
    server, transport = scripted((502, {}, b"bad gateway"), OK)
    with pytest.raises(og.OmniError) as caught:
        transport.decoded(WRITE, dict)
    assert caught.value.code == "http_502"
    assert len(server.asked) == 1


def test_nobody_there_is_reported():
    transport = Transport("http://127.0.0.1:9", None, RetryPolicy(attempts=2, wait=0.2))
    with pytest.raises(StorageUnavailable) as caught:
        transport.decoded(WRITE, dict)
    assert caught.value.code == "server_unreachable"


def test_answer_that_is_none_of_ours_is_reported(scripted):
    _, transport = scripted((200, {}, b"<html>"), (404, {}, b""))
    with pytest.raises(StorageUnavailable) as caught:
        transport.decoded(READ, dict)
    assert caught.value.code == "server_unknown"
    with pytest.raises(og.NotFound):
        transport.decoded(READ, dict)


def test_redirects_are_not_followed(scripted):
    server, transport = scripted((302, {"Location": "http://127.0.0.1:9/"}, b""))
    assert transport.send(READ).status_code == 302
    assert len(server.asked) == 1


def test_errors_of_a_server_that_tells_only_the_contract_are_ours(scripted):
    _, transport = scripted(
        (401, {}, b'{"error": "missing bearer token", "code": "unauthorized"}'),
        (403, {}, b'{"error": "no", "code": "forbidden"}'),
        (412, {}, b'{"error": "x", "precondition_failure": {"expected": "a", "actual": "b"}}'),
    )
    with pytest.raises(og.OmniError) as caught:
        transport.decoded(READ, dict)
    assert (caught.value.code, caught.value.category) == ("unauthorized", "invalid")
    with pytest.raises(og.OmniError) as caught:
        transport.decoded(READ, dict)
    assert type(caught.value).__name__ == "PolicyDenied"
    with pytest.raises(og.PreconditionFailed) as caught:
        transport.decoded(WRITE, dict)
    assert (caught.value.expected, caught.value.actual) == ("a", "b")


@pytest.mark.parametrize(
    "url", ["lab", "ftp://x", "http://", "http://u:p@host", "http://host?x=1", "http://host#a"]
)
def test_impossible_address_is_refused(url):
    with pytest.raises(InvalidInput) as caught:
        connect(url, graph="g")
    assert caught.value.code == "server_invalid"


def test_address_may_name_the_graph():
    assert connect("http://host:1/graphs/my-graph/").uri == "http://host:1/graphs/my-graph"
    assert connect("https://host/base", graph="g").uri == "https://host/base/graphs/g"
    with pytest.raises(InvalidInput, match="names graph 'a', not 'b'"):
        connect("http://host/graphs/a", graph="b")


def test_graph_is_found_when_there_is_exactly_one(scripted):
    one = b'{"graphs": [{"graph_id": "only", "uri": "x"}]}'
    denied = b'{"error": "no policy allows it", "code": "forbidden"}'
    sole = b'{"graph_id": "sole", "uri": "x"}'
    server, _ = scripted(
        (200, {}, one),
        (200, {}, b'{"graphs": []}'),
        (403, {}, denied),
        (404, {}, b""),
        (403, {}, denied),
        (200, {}, sole),
    )
    assert connect(server.url).uri == f"{server.url}/graphs/only"
    with pytest.raises(InvalidInput, match="no graph"):
        connect(server.url)
    with pytest.raises(InvalidInput, match=r"does not list its graphs .*; name one with `graph`"):
        connect(server.url)
    assert connect(server.url).uri == f"{server.url}/graphs/sole"


def test_address_that_lists_no_graphs_is_that_of_a_graph(scripted):
    server, _ = scripted((404, {}, b""), (200, {}, b'{"branches": ["main"]}'))
    graph = connect(f"{server.url}/harbour")
    assert (graph.uri, graph.branches.list()) == (f"{server.url}/harbour", ["main"])
    assert [path for _, path, _ in server.asked] == ["/harbour/graphs", "/harbour/branches"]


@pytest.mark.parametrize(
    "call",
    [
        RemoteCall(method="POST", path="/x", json={"params": {"s": "\ud800"}}),
        RemoteCall(method="GET", path="/x", query=(("at", "\ud800"),)),
    ],
)
def test_what_is_no_unicode_is_not_sent(call):
    transport = Transport("http://127.0.0.1:1", None)
    with pytest.raises(InvalidInput, match="half of a surrogate pair") as caught:
        transport.decoded(call, dict)
    assert caught.value.code == "text_invalid"
    transport.close()


def test_timeout_of_a_write_is_sent_as_a_preference(scripted):
    refusal = (409, {}, b'{"error": "busy", "code": "conflict"}')
    writes = [
        lambda graph, **timeout: graph.mutate('query q() { insert N { a: "b" } }', **timeout),
        lambda graph, **timeout: graph.load(b'{"type": "N", "data": {}}', **timeout),
        lambda graph, **timeout: graph.merge("side", **timeout),
        lambda graph, **timeout: graph.schema.apply("node N { a: String }\n", **timeout),
    ]
    server, _ = scripted(*[refusal] * 8)
    graph = connect(server.url, graph="g")
    for write in writes:
        for timeout in ({}, {"timeout": 1.5}):
            with pytest.raises(og.OmniError):
                write(graph, **timeout)
    assert server.preferences == [None, "wait=2"] * 4


@pytest.mark.parametrize("timeout", [-1, float("inf"), float("nan"), "5"])
def test_what_is_no_timeout_is_not_sent(scripted, timeout):
    server, _ = scripted()
    with pytest.raises(InvalidInput) as caught:
        connect(server.url, graph="g").mutate('insert N { a: "b" }', timeout=timeout)
    assert (caught.value.code, server.asked) == ("timeout_invalid", [])
