"""What a server reports of the condition of a graph and of the runs of pipelines."""

import json

import pytest

import omnigraph.graph as og
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.pipeline.runs.report import RunReport, store_report
from omnigraph.pipeline.runs.run import RunState, RunStore
from tests.support.serving import make_graph, serving

POLICY = """
version: 1
groups: { admins: [act-ada], readers: [act-bob], guests: [act-eve] }
protected_branches: [main]
rules:
  - { id: all, allow: { actors: { group: admins }, actions: [read, admin] } }
  - { id: main, allow: { actors: { group: readers }, actions: [read], branch_scope: protected } }
  - { id: people, allow: { actors: { group: guests }, actions: [read], types: [Person] } }
"""
TOKENS = {"act-ada": "token-ada", "act-bob": "token-bob", "act-eve": "token-eve"}
REJECTED = [
    {"rule": "range", "message": "age is 400", "type": "Person", "source": {"row": 2}},
    {"rule": "syntax", "message": "invalid JSON", "row": "{"},
]
FACTS = {"pipeline": "people", "file": "/data/p.yaml", "mode": "append", "merge_into": None}


def report_of(run, graph, **facts):
    counts = {"inserted": 1, "updated": 0, "deleted": 0, "bytes": 512}
    return RunReport(
        run=run.id,
        pipeline="people",
        file="p.yaml",
        graph=graph.uri,
        state="finished",
        branch=run.branch,
        mode="append",
        started_at=run.started_at.isoformat(),
        seconds=1.5,
        stages=[{"name": "stage", "seconds": 1.5}],
        sources=[{"name": "people", "kind": "csv", "files": 1, "rows": 2, "broken": 1}],
        types={"node:Person": {"given": 2, "accepted": 1, "rejected": {"range": 1}, **counts}},
        **facts,
    )


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A graph with a finished run, one whose rejects are elsewhere, and one on a branch."""
    folder = tmp_path_factory.mktemp("condition")
    graph = og.open(make_graph(folder / "g"))
    graph.load(b'{"type":"Person","data":{"name":"Ada","age":36}}\n')
    graph.branches.create("draft")
    objects, runs = graph._manifest.objects, RunStore(graph._manifest.objects)
    done = runs.begin("main", about=FACTS)
    place = f"{done.folder}/rejects"
    objects.put(f"{place}/part-0.ndjson", "".join(map(line, REJECTED)).encode())
    address = graph._manifest.location.child(place)
    store_report(objects, done, report_of(done, graph, rejects=address, examples=REJECTED[:1]))
    runs.end(done, RunState.FINISHED)
    other = runs.begin("main", about=FACTS)
    store_report(objects, other, report_of(other, graph, rejects=f"{folder}/aside/{other.id}"))
    runs.end(other, RunState.FINISHED)
    begun = runs.finish_stage(runs.begin("draft", about=FACTS), "stage", {})
    return graph, (done.id, other.id, begun.id)


def line(row):
    return json.dumps(row) + "\n"


@pytest.fixture(scope="module")
def server(graph, tmp_path_factory):
    folder = tmp_path_factory.mktemp("serving")
    (folder / "tokens.json").write_text(json.dumps(TOKENS))
    (folder / "policy.yaml").write_text(POLICY)
    words = (f"--graph=g={graph[0].uri}", f"--policy={folder / 'policy.yaml'}")
    environment = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(folder / "tokens.json")}
    with serving(*words, environment=environment) as found:
        yield found


def get(server, path, actor="act-ada", status=200, **params):
    with server.client(TOKENS[actor]) as client:
        answer = client.get(f"/graphs/g{path}", params=params)
    assert answer.status_code == status, answer.text
    return answer if status == 200 else answer.json()


def test_runs_are_listed_with_their_state_and_numbers_newest_first(server, graph):
    done, other, begun = graph[1]
    found = get(server, "/pipeline-runs").json()
    assert [run["id"] for run in found["runs"]] == [begun, other, done]
    assert [run["state"] for run in found["runs"]] == ["running", "finished", "finished"]
    assert found["runs"][0]["stages"] == ["stage"]
    assert found["runs"][0]["totals"] is None
    totals = {"given": 3, "accepted": 1, "rejected": 2, "bytes": 512}
    assert found["runs"][2]["totals"] == totals
    assert found["runs"][2]["seconds"] == 1.5
    assert not found["more"]
    first = get(server, "/pipeline-runs", limit=1).json()
    assert ([run["id"] for run in first["runs"]], first["more"]) == ([begun], True)
    assert get(server, "/pipeline-runs", limit=0, status=400)["problem"]["code"] == "limit_invalid"


def test_a_report_has_its_rejected_rows(server, graph):
    done, other, begun = graph[1]
    report = get(server, f"/pipeline-runs/{done}").json()
    assert report["types"]["node:Person"]["rejected"] == {"range": 1}
    assert report["examples"] == REJECTED[:1]
    assert report["next_steps"][0] == {
        "text": "Correct the rejected rows and run again.",
        "command": None,
    }
    lines = get(server, f"/pipeline-runs/{done}/rejects").text.splitlines()
    assert [json.loads(one) for one in lines] == REJECTED
    assert get(server, f"/pipeline-runs/{done}/rejects", limit=1).text == line(REJECTED[0])
    none = get(server, f"/pipeline-runs/{begun}", status=404)
    assert none["problem"]["code"] == "report_not_found"
    elsewhere = get(server, f"/pipeline-runs/{other}/rejects", status=404)
    assert elsewhere["problem"]["code"] == "rejects_not_found"
    assert f"aside/{other}" in elsewhere["error"]


@pytest.mark.parametrize("run", ["none", "..%2F..%2F__pipelines", "..%2F..%2F..%2Fetc"])
def test_an_unknown_run_is_not_a_path(server, run):
    for path in (f"/pipeline-runs/{run}", f"/pipeline-runs/{run}/rejects"):
        assert get(server, path, status=404)["problem"]["code"] == "run_not_found"


def test_runs_are_not_shown_to_an_actor_with_hidden_branches_or_types(server, graph):
    run = graph[1][0]
    for path in ("/pipeline-runs", f"/pipeline-runs/{run}", f"/pipeline-runs/{run}/rejects"):
        for actor in ("act-bob", "act-eve"):
            denied = get(server, path, actor, 403)
            assert denied["problem"]["code"] == "forbidden"
            assert "people" not in json.dumps(denied)


def test_the_condition_is_what_the_graph_reports(server, graph):
    graph = graph[0]
    status = get(server, "/status").json()
    assert status["types"] == [one.to_json() for one in graph.maintenance.status().types]
    people = next(t for t in status["types"] if t["type_key"] == "node:Person")
    assert (people["rows"], people["fragments"], status["branches"]) == (1, 1, 2)
    assert status["maintainer"]["running"] is False
    indexes = get(server, "/indexes").json()["indexes"]
    assert indexes == [index.to_json() for index in graph.indexes.status()]
    estimate = get(server, "/cleanup-estimate", keep=1).json()
    assert (estimate["dry_run"], estimate["keep_versions"], estimate["bytes_removed"]) == (
        True,
        1,
        0,
    )
    assert estimate["recent_files"] > 0
    assert get(server, "/cleanup-estimate", older_than_secs=10**18 - 1).json()["bytes_removed"] == 0
    wrong = get(server, "/cleanup-estimate", status=400)
    assert wrong["problem"]["code"] == "cleanup_policy_missing"
    report = get(server, "/verify").json()
    assert (report["ok"], report["branches"], report["problems"]) == (True, 2, [])
    assert "files" not in report
    deep = get(server, "/verify", deep="true").json()
    assert (deep["ok"], deep["files_without_checksum"]) == (True, 0)
    assert deep["files"] > 0


def test_only_indexes_are_shown_without_the_action_admin(server):
    for path in ("/status", "/cleanup-estimate?keep=1", "/verify"):
        assert get(server, path, "act-bob", 403)["problem"]["code"] == "forbidden"
    kinds = {index["type_key"] for index in get(server, "/indexes", "act-eve").json()["indexes"]}
    assert kinds == {"node:Person"}


def test_rejected_rows_are_read_without_spark(graph):
    graph, (done, other, _) = graph
    assert list(graph.pipeline.rejects(done)) == REJECTED
    with pytest.raises(NotFound, match="aside"):
        graph.pipeline.rejects(other)
    with pytest.raises(InvalidInput):
        graph.cleanup()
