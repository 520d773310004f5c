"""Every route of the contract, once through, with the values it answers."""

import json

import pytest

import omnigraph as og
from tests.support.serving import ALL_PEOPLE, INSERT, UPDATE

G = "/graphs/routes"
SHIPS = """
node Person { name: String @key  age: I32?  score: F64?  born: Date?  seen: DateTime? }
node Doc { slug: String @key  title: String?  body: Blob? }
node Ship { name: String @key }
edge Knows: Person -> Person { since: Date? }
"""


@pytest.fixture(scope="module", autouse=True)
def people(open_server):
    lines = [
        {"type": "Person", "data": {"name": "Ada", "age": 36, "score": 1.5, "born": "1815-12-10"}},
        {"type": "Person", "data": {"name": "Bob", "seen": "2024-05-06T07:08:09.123Z"}},
        {"edge": "Knows", "from": "Ada", "to": "Bob", "data": {"since": "2020-01-02"}},
    ]
    data = "\n".join(json.dumps(line) for line in lines)
    with open_server.client() as client:
        done = client.post(f"{G}/load", json={"data": data})
        assert done.status_code == 200
        return done.json()


def rows(client, **target):
    answer = client.post(f"{G}/query", json={"query": ALL_PEOPLE, **target})
    assert answer.status_code == 200
    return answer.json()["rows"]


def test_health_tells_versions(client):
    answer = client.get("/healthz").json()
    assert answer == {"status": "ok", "version": og.__version__, "internal_schema_version": 2}


def test_health_is_reported_below_a_graph_too(client):
    assert client.get(f"{G}/healthz").json() == client.get("/healthz").json()
    assert client.get("/graphs/nothere/healthz").status_code == 404


def test_graphs_are_listed_to_nobody_without_a_policy_of_the_server(client):
    answer = client.get("/graphs")
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


def test_a_load_tells_what_it_did(people):
    assert {name: people[name] for name in ("branch", "base_branch", "branch_created", "mode")} == {
        "branch": "main",
        "base_branch": None,
        "branch_created": False,
        "mode": "merge",
    }
    assert people["nodes"] == [{"name": "Person", "entities_loaded": 2}]
    assert people["edges"] == [{"name": "Knows", "entities_loaded": 1}]
    assert people["total_entities"] == 3
    assert people["actor_id"] is None
    assert people["uri"].endswith("/routes")
    assert people["commit"]["graph_branch"] is None


def test_rows_have_the_values_of_every_type(client):
    query = """
    query all() {
      match { $p: Person }
      return { $p.name as n, $p.age as a, $p.score as s, $p.born as b, $p.seen as t }
      order { n }
    }
    """
    answer = client.post(f"{G}/query", json={"query": query}).json()
    assert answer["query_name"] == "all"
    assert answer["target"] == {"branch": "main", "snapshot": None}
    assert answer["columns"] == ["n", "a", "s", "b", "t"]
    assert answer["row_count"] == 2
    assert answer["rows"] == [
        {"n": "Ada", "a": 36, "s": 1.5, "b": "1815-12-10", "t": None},
        {"n": "Bob", "a": None, "s": None, "b": None, "t": "2024-05-06T07:08:09.123Z"},
    ]


def test_the_older_read_answers_without_a_commit_and_says_that_it_is_old(client):
    answer = client.post(f"{G}/read", json={"query_source": ALL_PEOPLE, "query_name": "people"})
    assert answer.json() == {
        "query_name": "people",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 2,
        "columns": ["name", "age"],
        "rows": [{"name": "Ada", "age": 36}, {"name": "Bob", "age": None}],
    }
    assert answer.headers["Deprecation"] == "true"
    assert answer.headers["Link"] == '<query>; rel="successor-version"'


@pytest.mark.parametrize(
    ("path", "body", "link"),
    [
        ("change", {"query_source": INSERT, "query_name": "add"}, "<mutate>"),
        ("ingest", {"data": ""}, "<load>"),
    ],
)
def test_older_writes_say_what_to_call_instead(client, path, body, link):
    made = client.post(f"{G}/branches", json={"name": f"old-{path}"})
    assert made.status_code == 200
    answer = client.post(
        f"{G}/{path}", json={**body, "branch": f"old-{path}", "params": {"name": "Zoe"}}
    )
    assert answer.status_code == 200
    assert answer.headers["Deprecation"] == "true"
    assert answer.headers["Link"] == f'{link}; rel="successor-version"'
    refused = client.post(f"{G}/{path}", json={"query": "nonsense", "data": "nonsense"})
    assert refused.status_code == 400
    assert "Deprecation" not in refused.headers


def test_a_branch_is_made_changed_looked_at_merged_and_deleted(client):
    made = client.post(f"{G}/branches", json={"name": "review/x", "from": None})
    assert made.json() | {"uri": ""} == {
        "uri": "",
        "from": "main",
        "name": "review/x",
        "actor_id": None,
    }
    assert client.post(f"{G}/branches", json={"name": "review/x"}).status_code == 409
    assert "review/x" in client.get(f"{G}/branches").json()["branches"]
    change = {"query": INSERT, "params": {"name": "Cleo", "age": 41}, "branch": "review/x"}
    done = client.post(f"{G}/mutate", json=change).json()
    assert done["commit"]["graph_branch"] == "review/x"
    assert [row["name"] for row in rows(client, branch="review/x")] == ["Ada", "Bob", "Cleo"]
    assert [row["name"] for row in rows(client)] == ["Ada", "Bob"]
    shown = client.get(f"{G}/snapshot", params={"branch": "review/x"}).json()
    assert shown["graph_branch"] == "review/x"
    counts = [(d["entity_kind"], d["type_name"], d["entity_count"]) for d in shown["datasets"]]
    assert counts == [("edge", "Knows", 1), ("node", "Doc", 0), ("node", "Person", 3)]
    merge = {"source": "review/x", "target": "main", "delete_branch": True}
    merged = client.post(f"{G}/branches/merge", json=merge).json()
    assert merged["outcome"] == "fast_forward"
    assert merged["branch_deleted"] is True
    assert "branch_delete_error" not in merged
    assert [row["name"] for row in rows(client)] == ["Ada", "Bob", "Cleo"]
    gone = client.delete(f"{G}/branches/review%2Fx")
    assert (gone.status_code, gone.json()["code"]) == (404, "not_found")
    client.post(f"{G}/branches", json={"name": "a/b"})
    deleted = client.delete(f"{G}/branches/a%2Fb")
    assert (deleted.status_code, deleted.json()["name"]) == (200, "a/b")
    kept = client.post(f"{G}/branches/merge", json={"source": "main", "target": "main"})
    assert kept.status_code == 400


def test_conflicts_of_a_merge_are_listed_and_change_nothing(client):
    client.post(f"{G}/branches", json={"name": "left"})
    client.post(f"{G}/branches", json={"name": "right"})
    for branch, age in (("left", 50), ("right", 60)):
        change = {"query": UPDATE, "params": {"name": "Ada", "age": age}, "branch": branch}
        assert client.post(f"{G}/mutate", json=change).status_code == 200
    refused = client.post(f"{G}/branches/merge", json={"source": "left", "target": "right"})
    assert refused.status_code == 409
    body = refused.json()
    assert body["code"] == "conflict"
    [conflict] = body["merge_conflicts"]
    assert conflict == {
        "entity_kind": "node",
        "type_name": "Person",
        "entity_id": "Ada",
        "kind": "divergent_update",
        "message": "divergent update for id 'Ada': both changed age",
    }
    assert body["problem"]["code"] == "merge_conflict"
    assert {"name": "Ada", "age": 60} in rows(client, branch="right")


def test_history_is_listed_newest_first_and_commits_are_found(client):
    commits = client.get(f"{G}/commits").json()["commits"]
    versions = [commit["graph_manifest_version"] for commit in commits]
    assert versions == sorted(versions, reverse=True)
    one = client.get(f"{G}/commits/{commits[0]['graph_commit_id']}").json()
    assert one == commits[0]
    assert one["created_at"] > 1_500_000_000_000_000
    unknown = client.get(f"{G}/commits/01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    past = client.post(
        f"{G}/query", json={"query": ALL_PEOPLE, "snapshot": commits[-1]["graph_commit_id"]}
    ).json()
    assert past["rows"] == []
    assert past["target"] == {"branch": None, "snapshot": commits[-1]["graph_commit_id"]}


def test_lines_are_loaded_strictly_and_exported_again(client):
    line = '{"type":"Doc","data":{"slug":"a","title":"A"}}\n'
    done = client.post(
        f"{G}/load/ndjson?branch=docs&from=main&mode=append",
        content=line,
        headers={"Content-Type": "application/x-ndjson; charset=utf-8"},
    )
    assert done.status_code == 200
    assert "uri" not in done.json()
    assert (done.json()["branch_created"], done.json()["base_branch"]) == (True, "main")
    sent = client.post(f"{G}/export", json={"branch": " docs ", "type_names": ["Doc"]})
    assert sent.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    assert sent.text.endswith("\n")
    entity = {"id": "a", "slug": "a", "title": "A", "body": None}
    assert json.loads(sent.text) == {"type": "Doc", "data": entity}
    again = client.post(
        f"{G}/load/ndjson?branch=docs&mode=append",
        content=line,
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert again.status_code == 409
    assert again.json()["key_conflict"] == {
        "entity_kind": "node",
        "type_name": "Doc",
        "entity_id": "a",
    }


def test_a_schema_is_shown_and_changed(client):
    assert "node Person" in client.get(f"{G}/schema").json()["schema_source"]
    done = client.post(f"{G}/schema/apply", json={"schema_source": SHIPS}).json()
    assert (done["supported"], done["applied"], done["step_count"]) == (True, True, 1)
    assert done["steps"] == [{"kind": "add_type", "type_kind": "node", "name": "Ship"}]
    refused = client.post(f"{G}/schema/apply", json={"schema_source": "node {"})
    assert (refused.status_code, refused.json()["code"]) == (400, "bad_request")


def test_a_mutation_that_changes_nothing_makes_no_commit(client):
    change = {"query": UPDATE, "params": {"name": "Nobody", "age": 1}}
    done = client.post(f"{G}/mutate", json=change).json()
    assert (done["affected_nodes"], done["commit"]) == (0, None)
