"""Mutations on condition: done when the branch is where the caller thinks, else refused."""

import pytest

from omnigraph.server.request import IF_GRAPH_COMMIT
from tests.support.serving import INSERT

G = "/graphs/conditions"
CHANGE = {"query": INSERT, "params": {"name": "Ada", "age": 36}}


def head(client):
    return client.get(f"{G}/commits").json()["commits"][0]["graph_commit_id"]


def test_a_condition_holds_once(client):
    expected = head(client)
    conditional = f"{G}/mutate/if-graph-commit"
    done = client.post(conditional, json=CHANGE, headers={IF_GRAPH_COMMIT: expected})
    assert done.status_code == 200
    now = done.json()["commit"]["graph_commit_id"]
    lost = client.post(conditional, json=CHANGE, headers={IF_GRAPH_COMMIT: expected})
    assert lost.status_code == 412
    assert "code" not in lost.json()
    assert lost.json()["precondition_failure"] == {"expected": expected, "actual": now}
    assert head(client) == now


def test_a_fresh_branch_is_at_the_head_it_was_forked_from(client):
    client.post(f"{G}/branches", json={"name": "fresh"})
    done = client.post(
        f"{G}/queries/add_person/if-graph-commit",
        json={"params": {"name": "Bo"}, "branch": "fresh"},
        headers={IF_GRAPH_COMMIT: head(client)},
    )
    assert done.status_code == 200
    assert done.json()["branch"] == "fresh"


@pytest.mark.parametrize("value", ["*", '"abc"', "W/abc", "a,b", 'abc"', "a*"])
def test_an_unclear_condition_is_refused(client, value):
    headers = {IF_GRAPH_COMMIT: value}
    answer = client.post(f"{G}/mutate/if-graph-commit", json=CHANGE, headers=headers)
    assert (answer.status_code, answer.json()["problem"]["code"]) == (400, "condition_invalid")


def test_a_condition_is_given_exactly_once(client):
    path = f"{G}/mutate/if-graph-commit"
    assert client.post(path, json=CHANGE).status_code == 400
    twice = [(IF_GRAPH_COMMIT, head(client)), (IF_GRAPH_COMMIT, head(client))]
    assert client.post(path, json=CHANGE, headers=twice).status_code == 400


@pytest.mark.parametrize("path", ["mutate", "change", "queries/add_person", "queries/adults"])
def test_a_condition_where_nobody_looks_at_it_is_refused(client, path):
    answer = client.post(f"{G}/{path}", json=CHANGE, headers={IF_GRAPH_COMMIT: head(client)})
    assert answer.status_code == 400
    assert "/if-graph-commit" in answer.json()["error"]


def test_a_stored_read_knows_no_condition(client):
    answer = client.post(
        f"{G}/queries/adults/if-graph-commit",
        json={"params": {"min": 1}},
        headers={IF_GRAPH_COMMIT: head(client)},
    )
    assert answer.status_code == 400
