"""Bodies that are no bodies: the right status, a structured answer, nothing changed."""

import json

import pytest

from tests.support.serving import ALL_PEOPLE, INSERT
from tests.support.sockets import connected, everything

G = "/graphs/decoding"
JSON = {"Content-Type": "application/json"}
QUERY = json.dumps({"query": ALL_PEOPLE})


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "code"),
    [
        ("query", "{", JSON, 400, "body_malformed"),
        ("query", "", JSON, 400, "body_malformed"),
        ("query", '{"query": "\\ud800"}', JSON, 400, "body_malformed"),
        ("query", b'{"query": "\xff"}', JSON, 400, "body_malformed"),
        ("query", "[" * 100_000, JSON, 400, "body_malformed"),
        ("query", QUERY, {}, 415, "content_type_unsupported"),
        ("query", QUERY, {"Content-Type": "text/plain"}, 415, "content_type_unsupported"),
        ("query", "[]", JSON, 422, "body_invalid"),
        ("query", "{}", JSON, 422, "body_invalid"),
        ("query", '{"query": 1}', JSON, 422, "body_invalid"),
        ("query", '{"query": "x", "branch": 7}', JSON, 422, "body_invalid"),
        ("read", '{"query": "x"}', JSON, 422, "body_invalid"),
        ("mutate", '{"query": "x", "query_source": "y"}', JSON, 422, "body_invalid"),
        ("load", '{"data": "", "mode": "upsert"}', JSON, 422, "body_invalid"),
        ("branches", "{}", JSON, 422, "body_invalid"),
        ("export", '{"table_keys": []}', JSON, 400, "export_invalid"),
        ("export", '{"type_names": 1}', JSON, 400, "export_invalid"),
        ("export", "{", JSON, 400, "body_malformed"),
        ("export", "{}", {}, 415, "content_type_unsupported"),
        ("export", '{"branch": "  "}', JSON, 400, "branch_name_invalid"),
        ("export", '{"type_names": ["Nope"]}', JSON, 400, "unknown_type"),
        ("changes/baseline", '{"kind": ["vertex"]}', JSON, 400, "baseline_invalid"),
        ("queries/adults", "{", {}, 400, "body_malformed"),
        ("queries/adults", "[]", {}, 400, "body_malformed"),
        ("load/ndjson", "{}", JSON, 415, "content_type_unsupported"),
    ],
)
def test_a_bad_body_is_reported_from_a_bad_shape(client, path, body, headers, status, code):
    answer = client.post(f"{G}/{path}", content=body, headers=headers)
    assert (answer.status_code, answer.json()["problem"]["code"]) == (status, code)
    assert answer.json()["code"] == "bad_request"


@pytest.mark.parametrize("media", ["application/json; charset=utf-8", "application/vnd.x+json"])
def test_json_by_other_names_is_json(client, media):
    answer = client.post(f"{G}/query", content=QUERY, headers={"Content-Type": media})
    assert answer.status_code == 200


def test_unknown_members_and_nulls_are_taken(client):
    body = {"query": ALL_PEOPLE, "name": None, "params": None, "branch": None, "snapshot": None}
    answer = client.post(f"{G}/query", json={**body, "whatever": 1})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("export", {"branch": None, "type_names": None}),
        ("changes/baseline", {"branch": None, "kind": None, "type": None, "op": None}),
        ("schema/apply", {"schema_source": None, "allow_data_loss": None, "dry_run": None}),
        ("branches/merge", {"source": "nulls", "target": None, "delete_branch": None}),
    ],
)
def test_null_says_what_leaving_out_says(client, path, body):
    """Clients that send every member they know send null for those that were not set."""
    if path == "branches/merge":
        client.post(f"{G}/branches", json={"name": "nulls"}).raise_for_status()
    if path == "schema/apply":
        body = {**body, "schema_source": client.get(f"{G}/schema").json()["schema_source"]}
    assert client.post(f"{G}/{path}", json=body).status_code == 200


def test_null_is_no_value_of_what_must_be_given(client):
    assert client.post(f"{G}/query", json={"query": None}).status_code == 422


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"branch": "main", "snapshot": "main"}, "target_ambiguous"),
        ({"name": "nope"}, None),
        ({"params": [1]}, None),
        ({"query": INSERT}, "query_not_a_read"),
        ({"query": "query broken("}, None),
        ({"branch": " "}, "branch_name_invalid"),
        (
            {"query": f"{ALL_PEOPLE} query other() {{ match {{ $p: Person }} return {{ $p }} }}"},
            None,
        ),
    ],
)
def test_a_query_that_cannot_be_answered_is_a_bad_request(client, request_, code):
    answer = client.post(f"{G}/query", json={"query": ALL_PEOPLE, **request_})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
    assert code in (None, answer.json()["problem"]["code"])


@pytest.mark.parametrize("target", [{"branch": "nope"}, {"snapshot": "nope"}])
def test_a_state_that_is_not_there_is_not_found(client, target):
    answer = client.post(f"{G}/query", json={"query": ALL_PEOPLE, **target})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_a_commit_is_no_branch(client):
    commit = client.get(f"{G}/commits").json()["commits"][0]["graph_commit_id"]
    for path in ("query", "export"):
        answer = client.post(f"{G}/{path}", json={"query": ALL_PEOPLE, "branch": commit})
        assert answer.status_code in (400, 404)


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({"age": "41"}, 200),
        ({"age": 41}, 200),
        ({"age": None}, 200),
        ({"age": 2**31}, 400),
        ({"age": 1.5}, 400),
        ({"age": True}, 400),
        ({"age": [1]}, 400),
        ({"name": None}, 400),
        ({"name": 7}, 400),
        ({"extra": 1}, 200),
    ],
)
def test_parameters_are_taken_as_declared_and_errors_name_them(client, params, status):
    body = {"query": INSERT, "params": {"name": "P", **params}}
    answer = client.post(f"{G}/mutate", json=body)
    assert answer.status_code == status
    if status == 400:
        assert next(iter(params)) in answer.json()["error"]


def test_lines_that_break_rules_are_refused_whole(client):
    good = '{"type":"Person","data":{"name":"Good"}}'
    lines = good + "\n" + '{"type":"Person","data":{"name":"Bad","nme":1}}' + "\n"
    answer = client.post(
        f"{G}/load/ndjson", content=lines, headers={"Content-Type": "application/x-ndjson"}
    )
    assert answer.status_code == 400
    assert "line 2" in answer.json()["error"]
    [violation] = answer.json()["problem"]["details"]["violations"]
    assert violation["rule"] == "unknown_property"
    found = client.post(f"{G}/query", json={"query": ALL_PEOPLE}).json()["rows"]
    assert "Good" not in [row["name"] for row in found]


@pytest.mark.parametrize(
    ("query", "body", "status"),
    [
        ("mode=upsert", b"", 400),
        ("mode=merge&mode=append", b"", 400),
        ("mode=merge&partial=1", b"", 400),
        ("mode=merge&partial=True", b"", 400),
        ("mode=merge&partial=", b"", 400),
        ("mode=merge&partial=true", b"", 200),
        ("mode=merge&partial=false", b"", 200),
        ("branch=nope", b"", 404),
        ("", b"\xff\xfe", 400),
        ("", b"\x1f\x8b\x08\x00", 400),
    ],
)
def test_lines_and_where_they_go_are_checked(client, query, body, status):
    headers = {"Content-Type": "application/x-ndjson"}
    answer = client.post(f"{G}/load/ndjson?{query}", content=body, headers=headers)
    assert answer.status_code == status


@pytest.mark.parametrize(
    ("path", "size", "media", "resource"),
    [
        ("query", 1024 * 1024 + 1, "application/json", "request_bytes"),
        ("mutate", 1024 * 1024 + 1, "application/json", "request_bytes"),
        ("queries/adults", 1024 * 1024 + 1, "application/json", "request_bytes"),
        ("load/ndjson", 32 * 1024 * 1024 + 1, "application/x-ndjson", "graph_batch_request_bytes"),
    ],
)
@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_large_is_refused(client, path, size, media, resource, announced):
    parts = iter([b" " * size])
    content = b" " * size if announced else parts
    answer = client.post(f"{G}/{path}", content=content, headers={"Content-Type": media})
    assert answer.status_code == 413
    limit = answer.json()["resource_limit"]
    assert (limit["resource"], limit["limit"], limit["actual"] > limit["limit"]) == (
        resource,
        1024 * 1024 if size < 2 * 1024 * 1024 else 32 * 1024 * 1024,
        True,
    )
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("announced", [True, False])
def test_who_sends_too_much_reads_the_answer_after_it(open_server, announced):
    size = 8 * 1024 * 1024
    length = b"Content-Length: %d" % size if announced else b"Transfer-Encoding: chunked"
    head = (
        b"POST %s/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\n%s\r\n\r\n"
    )
    chunk = b" " * 65_536
    with connected(open_server.address) as connection:
        connection.sendall(head % (G.encode(), length))
        for _ in range(size // len(chunk)):
            connection.sendall(chunk if announced else b"10000\r\n" + chunk + b"\r\n")
        connection.sendall(b"" if announced else b"0\r\n\r\n")
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_who_asks_before_it_sends_too_much_is_reported_at_once(open_server):
    head = (
        b"POST %s/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n"
    )
    with connected(open_server.address) as connection:
        connection.sendall(head % G.encode())
        assert everything(connection).startswith(b"HTTP/1.1 413 ")


def test_a_line_of_too_many_parts_is_too_large(client):
    line = '{"type":"Person","data":{"name":[' + "1," * 140_000 + "1]}}"
    headers = {"Content-Type": "application/x-ndjson"}
    answer = client.post(f"{G}/load/ndjson", content=line, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (413, "bad_request")
    assert answer.json()["resource_limit"] == {
        "resource": "graph_batch_json_structural_slots",
        "limit": 131_072,
        "actual": 140_010,
    }


def test_a_mutation_among_queries_is_reported_where_to_go(client):
    asked = {"query": INSERT, "params": {"name": "Ada"}}
    for headers in ({}, {"Accept": "application/x-ndjson"}):
        answer = client.post(f"{G}/query", json=asked, headers=headers)
        assert answer.status_code == 400
        assert answer.json()["error"].endswith(f"; send it to {G}/mutate")
