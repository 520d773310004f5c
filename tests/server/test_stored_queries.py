"""Stored queries: listed with their types, run by name."""

import json

import pytest

from tests.support.serving import STORED, TOKENS, make_graph, serving, stored_folder

G = "/graphs/stored"


def test_the_catalog_tells_names_types_and_purpose(client):
    assert client.get(f"{G}/queries").json() == {
        "queries": [
            {
                "name": "add_person",
                "tool_name": "add_person",
                "mutation": True,
                "params": [
                    {"name": "name", "kind": "string", "nullable": False},
                    {"name": "age", "kind": "int", "nullable": True},
                ],
            },
            {
                "name": "adults",
                "tool_name": "adults",
                "description": "People of an age",
                "instruction": "Ask for an age",
                "mutation": False,
                "params": [{"name": "min", "kind": "int", "nullable": False}],
            },
        ]
    }


def test_stored_queries_read_and_write(client):
    done = client.post(f"{G}/queries/add_person", json={"params": {"name": "Ada", "age": 36}})
    assert done.json()["affected_nodes"] == 1
    found = client.post(
        f"{G}/queries/adults", json={"params": {"min": 18}, "expect_mutation": False}
    ).json()
    assert found["rows"] == [{"name": "Ada", "age": 36}]
    assert found["graph_commit_id"] == done.json()["commit"]["graph_commit_id"]


@pytest.mark.parametrize("body", [b"", b"null", b" null ", b"{}"])
def test_a_body_may_be_left_out(client, body):
    answer = client.post(f"{G}/queries/adults", content=body)
    assert answer.status_code == 400
    assert "min" in answer.json()["error"]


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("nope", {}, 404),
        ("adults", {"params": {"min": 1}, "expect_mutation": True}, 400),
        ("add_person", {"params": {"name": "B"}, "expect_mutation": False}, 400),
        ("add_person", {"params": {"name": "B"}, "snapshot": "main"}, 400),
        ("adults", {"params": {"min": 1}, "branch": "main", "snapshot": "main"}, 400),
        ("adults", {"params": {"min": "x"}}, 400),
    ],
)
def test_a_stored_query_that_cannot_run_says_why(client, name, body, status):
    answer = client.post(f"{G}/queries/{name}", json=body)
    assert answer.status_code == status
    if status == 404:
        assert answer.json()["error"] == "stored query not found"


SCOPED = """
version: 1
groups: { readers: [act-ada], staff: [act-bob] }
rules:
  - id: people
    allow: { actors: { group: readers }, actions: [read, change], types: [Person] }
  - id: all
    allow: { actors: { group: staff }, actions: [read, change] }
  - id: run
    allow: { actors: { group: readers }, actions: [invoke_query] }
  - id: run-too
    allow: { actors: { group: staff }, actions: [invoke_query] }
"""
SECRET = """
query secret() { match { $d: Doc } return { $d.title } }
query set_secret($title: String) { insert Doc { slug: "s", title: $title } }
query known_secret() { match { $p: Person  $p knows $q } return { $q.name } }
"""


def test_stored_queries_about_hidden_types_do_not_exist_for_a_caller(tmp_path):
    (tmp_path / "policy.yaml").write_text(SCOPED)
    uri, queries = make_graph(tmp_path / "g"), stored_folder(tmp_path / "q", STORED + SECRET)
    hidden = ["known_secret", "secret", "set_secret"]
    with serving(
        f"--graph=g={uri}",
        f"--queries={queries}",
        f"--policy={tmp_path / 'policy.yaml'}",
        environment={"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps(TOKENS)},
    ) as server:
        with server.client("token-ada") as client:
            listed = client.get("/graphs/g/queries")
            assert [one["name"] for one in listed.json()["queries"]] == ["add_person", "adults"]
            for name in hidden:
                answer = client.post(f"/graphs/g/queries/{name}", json={"params": {"title": "x"}})
                assert (answer.status_code, answer.json()["error"]) == (
                    404,
                    "stored query not found",
                )
                assert "Doc" not in answer.text
            done = client.post("/graphs/g/queries/add_person", json={"params": {"name": "Ada"}})
            assert done.json()["affected_nodes"] == 1
            wrong = client.post("/graphs/g/queries/adults", json={"params": {"min": "x"}})
            assert (wrong.status_code, "min" in wrong.json()["error"]) == (400, True)
        with server.client("token-bob") as client:
            listed = client.get("/graphs/g/queries").json()["queries"]
            assert [one["name"] for one in listed] == ["add_person", "adults", *hidden]
            answer = client.post("/graphs/g/queries/secret")
            assert (answer.status_code, answer.json()["rows"]) == (200, [])
