"""Who asks is known by a token alone; what each may do is what the states and policies say."""

import json
import time

import pytest

from tests.support.serving import ALL_PEOPLE, INSERT, PATIENCE, TOKENS, make_graph, serving

READ = ("POST", "query", {"query": ALL_PEOPLE})
CHANGE = ("POST", "mutate", {"query": INSERT, "params": {"name": "Ada"}})
ROUTES = {
    "read": [
        READ,
        ("GET", "snapshot", None),
        ("GET", "schema", None),
        ("GET", "branches", None),
        ("GET", "commits", None),
        ("GET", "queries", None),
        ("GET", "changes", None),
    ],
    "export": [("POST", "export", {}), ("POST", "changes/baseline", {})],
    "change": [CHANGE, ("POST", "load", {"data": ""})],
    "branch": [("POST", "branches", {"name": "b"}), ("DELETE", "branches/b", None)],
    "merge": [("POST", "branches/merge", {"source": "main", "target": "other"})],
    "schema": [("POST", "schema/apply", {"schema_source": "node {"})],
}


def status(client, graph, method, path, body):
    options = {} if body is None else {"json": body}
    return client.request(method, f"/graphs/{graph}/{path}", **options).status_code


@pytest.mark.parametrize(
    "header",
    [
        None,
        "token-ada",
        "Basic token-ada",
        "Bearer",
    ],
)
def test_a_caller_without_a_token_is_reported_so(guarded_server, header):
    headers = {} if header is None else {"Authorization": header}
    with guarded_server.client() as client:
        for method, path, body in [READ, CHANGE]:
            answer = client.request(method, f"/graphs/guarded/{path}", json=body, headers=headers)
            assert answer.status_code == 401
            assert answer.json()["error"] == "missing bearer token"
            assert answer.json()["code"] == "unauthorized"
            assert answer.headers["www-authenticate"] == 'Bearer realm="omnigraph"'


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_name_of_the_scheme_has_no_case(guarded_server, scheme):
    headers = {"Authorization": f"{scheme} token-ada"}
    with guarded_server.client() as client:
        answer = client.post("/graphs/guarded/query", json=READ[2], headers=headers)
    assert answer.status_code == 200


@pytest.mark.parametrize("token", ["wrong", "token-ad", "token-adaa", "TOKEN-ADA", "té"])
def test_a_wrong_token_is_reported_alike_whatever_is_asked(guarded_server, token):
    with guarded_server.client() as client:
        headers = {"Authorization": f"Bearer {token}".encode()}
        answers = [
            client.get(path, headers=headers)
            for path in ("/graphs", "/graphs/guarded/schema", "/graphs/nothere/schema")
        ]
        answers.append(client.post("/graphs/guarded/mcp", json={}, headers=headers))
    assert {found.status_code for found in answers} == {401}
    challenges = {found.headers["www-authenticate"] for found in answers}
    assert challenges == {'Bearer realm="omnigraph", error="invalid_token"'}
    [answer] = {found.text for found in answers}
    body = json.loads(answer)
    assert (body["error"], body["code"]) == ("invalid bearer token", "unauthorized")


def test_health_and_the_document_need_no_token(guarded_server):
    with guarded_server.client() as client:
        for path in ("/healthz", "/readyz", "/openapi.json", "/metrics"):
            assert client.get(path).status_code == 200
        assert client.get("/nothing").status_code == 404


def test_the_actor_of_a_change_is_the_one_of_the_token(guarded_server):
    with guarded_server.client(TOKENS["act-ada"]) as client:
        spoofed = {"X-Actor-Id": "act-bob"}
        body = {"query": INSERT, "params": {"name": "Z"}, "actor_id": "act-bob"}
        done = client.post("/graphs/guarded/mutate", json=body, headers=spoofed)
    assert done.json()["actor_id"] == "act-ada"
    assert done.json()["commit"]["actor_id"] == "act-ada"


@pytest.mark.parametrize(
    ("actor", "allowed"),
    [
        ("act-ada", {"read", "export", "change", "branch", "merge", "schema"}),
        ("act-bob", {"read"}),
        ("act-eve", set()),
    ],
)
def test_a_policy_says_who_may_do_what(guarded_server, actor, allowed):
    with guarded_server.client(TOKENS[actor]) as client:
        for kind, routes in ROUTES.items():
            for route in routes:
                denied = status(client, "guarded", *route) == 403
                assert denied is (kind not in allowed), (kind, route)


@pytest.mark.parametrize("actor", list(TOKENS))
def test_a_graph_without_a_policy_is_only_read(guarded_server, actor):
    with guarded_server.client(TOKENS[actor]) as client:
        for kind, routes in ROUTES.items():
            for route in routes:
                found = status(client, "plain", *route)
                assert found == (200 if kind == "read" else 403), (kind, route)


def test_stored_queries_that_are_not_to_be_run_are_not_there(guarded_server):
    body = {"params": {"min": 1}}
    reported = {}
    for actor in TOKENS:
        with guarded_server.client(TOKENS[actor]) as client:
            for name in ("adults", "nope"):
                answer = client.post(f"/graphs/guarded/queries/{name}", json=body)
                reported[actor, name] = (answer.status_code, answer.json().get("error"))
    missing = (404, "stored query not found")
    assert reported.pop(("act-ada", "adults"))[0] == 200
    assert set(reported.values()) == {missing}


def test_changes_of_a_commit_that_is_not_to_be_read_are_not_there(guarded_server):
    with guarded_server.client(TOKENS["act-bob"]) as client:
        known = client.get("/graphs/guarded/commits").json()["commits"][0]["graph_commit_id"]
    with guarded_server.client(TOKENS["act-eve"]) as client:
        answers = [
            client.get(f"/graphs/guarded/commits/{id_}/changes")
            for id_ in (known, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
        ]
    assert [answer.status_code for answer in answers] == [404, 404]
    hidden, missing = (answer.text for answer in answers)
    assert hidden.replace(known, "01ARZ3NDEKTSV4RRFFQ69G5FAV") == missing


def test_graphs_are_listed_to_whom_the_server_policy_allows(guarded_server):
    with guarded_server.client(TOKENS["act-bob"]) as client:
        found = client.get("/graphs").json()["graphs"]
    assert [graph["graph_id"] for graph in found] == ["contract", "guarded", "plain"]
    with guarded_server.client(TOKENS["act-ada"]) as client:
        assert client.get("/graphs").status_code == 403


def test_a_graph_that_cannot_be_opened_does_not_keep_others_from_being_served(tmp_path):
    good, bad = make_graph(tmp_path / "good"), make_graph(tmp_path / "bad")
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "x.gq").write_text("query x() { match { $p: Nope } return { $p } }")
    with (
        serving(
            f"--graph=good={good}",
            f"--graph=bad={bad}",
            f"--graph=gone={tmp_path / 'gone'}",
            f"--queries=bad={tmp_path / 'q'}",
            environment={"OMNIGRAPH_SERVER_BEARER_TOKEN": "secret"},
        ) as server,
        server.client("secret") as client,
    ):
        assert client.get("/graphs/good/schema").status_code == 200
        for name in ("bad", "gone"):
            answer = client.get(f"/graphs/{name}/schema")
            assert answer.status_code == 404
            assert answer.json()["error"] == f"graph '{name}' not found"
        denied = client.post("/graphs/good/mutate", json=CHANGE[2])
        assert denied.status_code == 403
    assert any("graph 'bad' is not served" in line for line in server.log)
    assert not any("secret" in line for line in server.log)


@pytest.mark.parametrize(
    ("path", "body", "decided"),
    [
        ("query", {"query": ALL_PEOPLE}, [("read", "main", None, True)]),
        (
            "mutate",
            {"query": INSERT, "params": {"name": "Ada"}},
            [("change", "main", None, True)],
        ),
        (
            "queries/adults",
            {"params": {"min": 1}},
            [("invoke_query", None, None, True), ("read", "main", None, True)],
        ),
        (
            "branches/merge",
            {"source": "nope", "target": "main"},
            [("branch_merge", "nope", "main", True)],
        ),
    ],
    ids=["query", "mutate", "invoke", "merge"],
)
def test_each_decision_is_logged_once(guarded_server, path, body, decided):
    asked = f"decided-{path.replace('/', '-')}"
    with guarded_server.client("token-ada") as client:
        client.post(f"/graphs/guarded/{path}", json=body, headers={"X-Request-Id": asked})
    lines = [json.loads(line) for line in until_reported(guarded_server, asked)]
    reported = [line for line in lines if line["logger"] == "omnigraph.policy"]
    facts = ("action", "branch", "target_branch", "allowed")
    assert [tuple(line[name] for name in facts) for line in reported] == decided
    assert {line["actor"] for line in reported} == {"act-ada"}


def until_reported(server, request_id):
    """Return the lines of the log about a request, once the last one is there."""
    patient = time.monotonic() + PATIENCE
    while time.monotonic() < patient:
        found = [line for line in list(server.log) if request_id in line]
        if any('"omnigraph.server"' in line for line in found):
            return found
        time.sleep(0.02)
    raise AssertionError(f"the log does not speak of {request_id}")
