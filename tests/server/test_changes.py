"""Changes: of a commit, of a branch since a cursor, and the baseline to begin with."""

import json

import pytest

from tests.support.serving import INSERT, UPDATE

G = "/graphs/changes"


@pytest.fixture(scope="module", autouse=True)
def commits(open_server):
    with open_server.client() as client:
        done = []
        for query, params in (
            (INSERT, {"name": "Ada", "age": 36}),
            (INSERT, {"name": "Bob", "age": 40}),
            (UPDATE, {"name": "Ada", "age": 37}),
        ):
            answer = client.post(f"{G}/mutate", json={"query": query, "params": params})
            done.append(answer.json()["commit"]["graph_commit_id"])
        return done


def test_a_commit_tells_what_it_changed(client, commits):
    answer = client.get(f"{G}/commits/{commits[2]}/changes").json()
    assert answer["cause"]["graph_commit_id"] == commits[2]
    assert answer["cause"]["parent_commit_id"] == commits[1]
    assert answer["cause"]["authored_branch"] == "main"
    [change] = answer["changes"]
    assert (change["kind"], change["type"]["name"], change["op"]) == ("node", "Person", "update")
    assert change["before"]["properties"]["age"] == 36
    assert change["after"]["properties"]["age"] == 37
    assert "next_page_token" not in answer


def test_the_feed_is_read_page_by_page_and_goes_on_from_its_cursor(client, commits):
    seen, parameters = [], {"start": "beginning", "limit": 1}
    while True:
        page = client.get(f"{G}/changes", params=parameters).json()
        seen += [(b["cause"]["graph_commit_id"], len(b["changes"])) for b in page["blocks"]]
        if "cursor" in page:
            if page["caught_up"]:
                break
            parameters = {"cursor": page["cursor"], "limit": 1}
        else:
            parameters = {"page_token": page["next_page_token"], "limit": 1}
    assert [commit for commit, count in seen if count] == commits
    idle = client.get(f"{G}/changes", params={"cursor": page["cursor"]}).json()
    assert (idle["blocks"], idle["caught_up"]) == ([], True)
    now = client.get(f"{G}/changes").json()
    assert (now["blocks"], now["caught_up"]) == ([], True)
    only = {"start": f"after:{commits[0]}", "op": "update", "type": "Person", "kind": "node"}
    page = client.get(f"{G}/changes", params=only).json()
    assert [b["cause"]["graph_commit_id"] for b in page["blocks"] if b["changes"]] == [commits[2]]


def test_a_baseline_ends_with_the_cursor_that_goes_on(client, commits):
    sent = client.post(f"{G}/changes/baseline", json={"type": ["Person"]})
    assert sent.headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in sent.text.splitlines()]
    assert [line["data"]["name"] for line in lines[:-1]] == ["Ada", "Bob"]
    assert lines[-1]["baseline"]["snapshot_commit_id"] == commits[2]
    cursor = lines[-1]["baseline"]["resume_cursor"]
    page = client.get(f"{G}/changes", params={"cursor": cursor, "type": "Person"}).json()
    assert (page["blocks"], page["caught_up"]) == ([], True)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("nope=1", 400),
        ("limit=0", 400),
        ("limit=-1", 400),
        ("limit=x", 400),
        ("limit=8193", 413),
        ("limit=1&limit=2", 400),
        ("branch=main&branch=main", 400),
        ("cursor=x&start=now", 400),
        ("cursor=x", 400),
        ("start=yesterday", 400),
        ("kind=vertex", 400),
        ("op=upsert", 400),
        ("type=Nope", 404),
        ("branch=nope", 404),
        ("start=after:01ARZ3NDEKTSV4RRFFQ69G5FAV", 404),
    ],
)
def test_a_reader_that_asks_wrongly_is_reported(client, query, status):
    answer = client.get(f"{G}/changes?{query}")
    assert answer.status_code == status
    if query == "cursor=x":
        assert answer.json()["error"].startswith("change cursor rejected: ")
    if status == 413:
        assert answer.json()["resource_limit"] == {
            "resource": "commit_changes_page_changes",
            "limit": 8192,
            "actual": 8193,
        }


def test_the_first_commit_has_nothing_to_compare_with(client):
    first = client.get(f"{G}/commits").json()["commits"][-1]["graph_commit_id"]
    answer = client.get(f"{G}/commits/{first}/changes")
    assert answer.status_code == 409
    assert answer.json()["change_diff_refusal"] == {
        "reason": "parentless_commit",
        "graph_commit_id": first,
    }


@pytest.mark.parametrize(("query", "status"), [("start=now", 400), ("branch=main", 400)])
def test_a_commit_has_no_branch_and_no_start(client, commits, query, status):
    assert client.get(f"{G}/commits/{commits[0]}/changes?{query}").status_code == status


def test_an_unknown_commit_is_not_found(client):
    answer = client.get(f"{G}/commits/01ARZ3NDEKTSV4RRFFQ69G5FAV/changes")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
