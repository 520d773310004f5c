"""Callers who mean ill: right status, structured answer, nothing leaks, the server goes on."""

import json
import resource
import threading
from base64 import urlsafe_b64encode
from contextlib import ExitStack, suppress
from hashlib import sha256

import httpx
import pytest

from tests.support.serving import ALL_PEOPLE, INSERT, PATIENCE
from tests.support.sockets import connected, everything, get, raw

G = "/graphs/hostile"
IDLE = 2_500


@pytest.fixture(autouse=True)
def goes_on(open_server):
    yield
    with open_server.client() as client:
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (b"/graphs/hostile/../routes/snapshot", 404),
        (b"/graphs/hostile%2F..%2Froutes/snapshot", 400),
        (b"/graphs/%2e%2e/snapshot", 400),
        (b"/graphs/hostile%2Fsnapshot", 404),
        (b"/graphs/hostile%00/snapshot", 404),
        (b"/graphs/%ff/snapshot", 404),
        (b"/graphs//snapshot", 404),
        (b"//graphs/hostile/snapshot", 404),
        (b"/graphs/" + b"a" * 65 + b"/snapshot", 400),
        (b"/graphs/a_b/snapshot", 400),
        (b"/graphs/graphs/snapshot", 400),
        (b"/graphs/nothere/snapshot", 404),
        (b"/graphs/hostile/snapshot?branch=..%2F..%2Fetc%2Fpasswd", 404),
        (b"/graphs/hostile/snapshot?branch=%00", 404),
        (b"/graphs/hostile/snapshot?branch=main&branch=main", 400),
        (b"/graphs/hostile/commits/..%2F..%2Fetc", 404),
        (b"/snapshot", 404),
        (b"/runs", 404),
        (b"/graphs/hostile/runs", 404),
        (b"/nothing", 404),
    ],
)
def test_a_path_leads_where_it_says_or_nowhere(open_server, path, status):
    found, body = get(open_server.address, path)
    assert found == status
    assert b"/tmp" not in body
    if body:
        assert json.loads(body)["error"]


def test_removed_routes_and_wrong_methods_are_reported(client):
    assert client.get("/nothing").content == b""
    wrong = client.put(f"{G}/branches")
    assert (wrong.status_code, wrong.json()["code"]) == (405, "method_not_allowed")
    assert {way.strip() for way in wrong.headers["allow"].split(",")} == {"GET", "HEAD", "POST"}
    for method in ("POST", "DELETE"):
        gone = client.request(method, "/graphs")
        assert (gone.status_code, gone.content) == (404, b"")
    assert client.put("/graphs").status_code == 405


def test_a_slash_at_the_end_makes_another_path(client):
    for path in ("/healthz/", "/graphs/", f"{G}/schema/"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    "name", ["../x", "a//b", "__main", "main", "x" * 300, "a\nb", "x.lock", "%2e%2e", ""]
)
def test_a_branch_with_a_tricky_name_is_not_made(client, name):
    answer = client.post(f"{G}/branches", json={"name": name})
    assert answer.status_code == 400
    assert answer.json()["problem"]["code"] == "branch_name_invalid"
    assert client.get(f"{G}/branches").json()["branches"] == ["main"]


@pytest.mark.parametrize(
    "line",
    [
        r'{"type":"Person","data":{"name":"half \ud800"}}',
        r'{"type":"Person","data":{"name":"a","half \ud800":1}}',
        r'{"type":"half \ud800","data":{"name":"a"}}',
        r'{"edge":"Knows","from":"half \ud800","to":"a"}',
    ],
)
def test_half_a_character_is_reported_with_its_place(client, line):
    headers = {"Content-Type": "application/x-ndjson"}
    answer = client.post(f"{G}/load/ndjson?mode=merge", content=line, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("line 1: ")
    assert "half" not in answer.text.replace(r"half \\ud800", "").replace("half of a", "")


@pytest.mark.parametrize("depth", [600, 2_500])
def test_what_is_nested_too_deeply_is_refused(client, depth):
    deep = "[" * depth + "]" * depth
    begun = deep[:2_500].encode()
    token = urlsafe_b64encode(begun + sha256(begun).digest()).rstrip(b"=").decode()
    line = f'{{"type":"Person","data":{{"name":"deep","age":{deep}}}}}'
    merge = {"source": "main", "target": "main", "dry_run": True, "resolve": deep}
    lines = {"Content-Type": "application/x-ndjson"}
    for answer in (
        client.get(f"{G}/changes", params={"cursor": token}),
        client.get(f"{G}/changes", params={"page_token": token}),
        client.post(f"{G}/branches/merge", json=merge),
        client.post(f"{G}/load", json={"data": line}),
        client.post(f"{G}/load/ndjson?mode=merge", content=line, headers=lines),
    ):
        assert answer.status_code == 400, answer.text


def test_a_number_beyond_every_list_is_refused(client):
    arguments = {"skip": 10**20}
    call = {"name": "commits_list", "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accepts = {"Accept": "application/json, text/event-stream"}
    answer = client.post(f"{G}/mcp", json=body, headers=accepts).json()["result"]
    assert answer["isError"]
    assert "arguments_invalid" in answer["content"][0]["text"]


def test_blanks_around_a_name_are_no_part_of_it(client):
    assert client.post(f"{G}/tags", json={"name": " spaced "}).json()["name"] == "spaced"
    deleted = client.delete(f"{G}/tags/%20spaced%20")
    assert (deleted.status_code, deleted.json().get("name")) == (200, "spaced")
    assert client.get(f"{G}/tags").json() == {"tags": []}


def test_a_schema_is_a_text_and_never_a_file_of_the_server(client, tmp_path):
    file = tmp_path / "secret.pg"
    file.write_text("node Secret { a: String @key }")
    answer = client.post(f"{G}/schema/apply", json={"schema_source": str(file)})
    assert answer.status_code == 400
    assert "Secret" not in answer.text
    assert "Secret" not in client.get(f"{G}/schema").text


def test_nobody_says_who_acts_but_the_token(client):
    spoofed = {"X-Actor-Id": "act-ada", "X-Omnigraph-Actor": "act-ada", "Actor": "act-ada"}
    body = {"query": INSERT, "params": {"name": "Spy"}, "actor_id": "act-ada", "actor": "act-ada"}
    done = client.post(f"{G}/mutate?actor_id=act-ada", json=body, headers=spoofed)
    assert done.status_code == 200
    assert done.json()["actor_id"] is None
    assert done.json()["commit"]["actor_id"] is None


@pytest.mark.parametrize("given", ["abc-123", "x" * 128])
def test_a_request_keeps_its_id(client, given):
    assert client.get("/healthz", headers={"X-Request-Id": given}).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["x" * 129, "a b", 'x"y', "<script>"])
def test_an_id_that_cannot_stand_in_a_log_is_replaced(client, given):
    answer = client.get("/healthz", headers={"X-Request-Id": given})
    assert answer.headers["x-request-id"] != given
    assert len(answer.headers["x-request-id"]) == 26


@pytest.mark.parametrize(
    "data",
    [
        b"NONSENSE\r\n\r\n",
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
        b"POST /graphs/hostile/query HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /graphs/hostile/query HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
        b"Content-Length: 6\r\n\r\nhello",
    ],
)
def test_what_is_no_http_is_refused(open_server, data):
    answer = raw(open_server.address, data)
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_body_that_does_not_come_is_not_waited_for(open_server):
    head = (
        b"POST /graphs/hostile/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n\r\n{"
    )
    with connected(open_server.address) as connection:
        connection.sendall(head)
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["problem"]["code"] == "body_slow"


@pytest.mark.parametrize("begun", [b"", b"GET /healthz HTTP/1.1\r\nHost:"])
def test_a_connection_that_asks_nothing_is_closed(open_server, begun):
    with connected(open_server.address) as connection:
        connection.sendall(begun)
        assert everything(connection) == b""


def test_thousands_of_idle_connections_keep_nobody_out(open_server):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with ExitStack() as idle:
        opened = [idle.enter_context(connected(open_server.address)) for _ in range(IDLE)]
        with open_server.client() as client:
            found = client.post(f"{G}/query", json={"query": ALL_PEOPLE})
            assert found.status_code == 200
        assert everything(opened[0]) == b""


def test_a_body_that_comes_byte_by_byte_is_not_waited_for(open_server):
    head = (
        b"POST /graphs/hostile/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100000\r\n\r\n"
    )
    with connected(open_server.address) as connection:
        connection.sendall(head)
        connection.settimeout(0.1)
        answer = b""
        for _ in range(int(PATIENCE * 10)):
            with suppress(TimeoutError):
                answer = connection.recv(65_536)
                break
            connection.sendall(b" ")
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_guessing_tokens_tells_nothing_and_locks_nobody_out(guarded_server):
    with guarded_server.client() as client:
        reported = set()
        for number in range(50):
            headers = {"Authorization": f"Bearer token-{number:x}"}
            answer = client.get("/graphs/guarded/schema", headers=headers)
            reported.add((answer.status_code, answer.text, "retry-after" in answer.headers))
    [(status, text, _)] = reported
    assert (status, json.loads(text)["code"]) == (401, "unauthorized")
    with guarded_server.client("token-ada") as client:
        assert client.get("/graphs/guarded/schema").status_code == 200


EXHAUSTING = {
    "rows": "match { $a: Doc  $b: Doc  $c: Doc } return { $a.slug as a, $c.slug as c }",
    "answer": "match { $a: Doc  $b: Doc } return { $a.slug as a, $b.slug as b }",
}


@pytest.mark.parametrize("way", EXHAUSTING)
def test_queries_made_to_exhaust_are_refused(client, way):
    lines = "".join(f'{{"type":"Doc","data":{{"slug":"e{n}"}}}}\n' for n in range(2_000))
    body = {"data": lines, "branch": "exhausting", "from": "main"}
    assert client.post(f"{G}/load", json=body).status_code == 200
    asked = {"query": f"query q() {{ {EXHAUSTING[way]} }}", "branch": "exhausting"}
    refused = client.post(f"{G}/query", json=asked)
    assert refused.status_code == 413
    assert refused.json()["resource_limit"]["resource"] == "query_memory_bytes"
    product = "match { $a: Doc  $b: Doc  $c: Doc  $d: Doc } return { count($a) as n }"
    counted = client.post(f"{G}/query", json={**asked, "query": f"query q() {{ {product} }}"})
    assert counted.json()["rows"] == [{"n": 2_000**4}]


def test_a_caller_that_leaves_while_it_writes_leaves_all_or_nothing(open_server):
    body = json.dumps({"query": INSERT, "params": {"name": "Gone", "age": 1}}).encode()
    head = b"POST /graphs/hostile/mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with connected(open_server.address) as connection:
        connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    with connected(open_server.address) as connection:
        connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body[:20])
    with open_server.client() as client:
        _until(lambda: ("Gone", 1) in _people(client))
        assert client.get(f"{G}/commits").status_code == 200


def test_a_caller_that_leaves_in_the_middle_of_an_export_frees_its_place(open_server, client):
    lines = "".join(
        json.dumps({"type": "Doc", "data": {"slug": f"d{n}", "title": "x" * 900}}) + "\n"
        for n in range(4_000)
    )
    headers = {"Content-Type": "application/x-ndjson"}
    assert client.post(f"{G}/load/ndjson", content=lines, headers=headers).status_code == 200
    # More than may be under way at once, each of them left behind its first bytes.
    for _ in range(10):
        with httpx.stream("POST", f"{open_server.url}{G}/export", json={}) as sent:
            assert sent.status_code in (200, 413)
            next(sent.iter_raw())
    asked = {"query": "query q() { match { $d: Doc } return { $d.slug, $d.title } }"}
    for _ in range(10):
        headers = {"Accept": "application/x-ndjson"}
        with httpx.stream(
            "POST", f"{open_server.url}{G}/query", json=asked, headers=headers, timeout=PATIENCE
        ) as sent:
            assert sent.status_code == 200
            next(sent.iter_raw())
    _until(lambda: client.post(f"{G}/export", json={}).status_code == 200)
    sent = client.post(f"{G}/export", json={"type_names": ["Doc"]})
    assert len(sent.text.splitlines()) == 4_000


def _people(client):
    rows = client.post(f"{G}/query", json={"query": ALL_PEOPLE}).json()["rows"]
    return [(row["name"], row["age"]) for row in rows]


def _until(holds):
    pause = threading.Event()
    for _ in range(int(PATIENCE * 20)):
        if holds():
            return
        pause.wait(0.05)
    raise AssertionError("it never came true")
