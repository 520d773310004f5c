"""Stored queries: listed with their types, run by name."""

import pytest

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
