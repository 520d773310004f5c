"""`serve --cluster`: what was applied is served, broken graphs are set aside."""

import json
import threading

import httpx
import pytest

import omnigraph as og
from omnigraph.service import cluster
from omnigraph.service.cluster.store import ClusterStore
from omnigraph.storage import locate
from tests.support.agents import agent, on_web
from tests.support.clusters import PEOPLE_NEXT, edit, write_cluster
from tests.support.serving import PATIENCE, serving

TOKENS = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"act-ada": "t-ada", "act-x": "t-x"})}


@pytest.fixture
def folder(tmp_path):
    found = write_cluster(tmp_path / "config")
    edit(found, "[read]", "[read, change]", file="readers.yaml")
    edit(
        found,
        "rules:",
        "rules:\n  - id: run\n    allow: { actors: { group: staff }, actions: [invoke_query] }",
        file="readers.yaml",
    )
    assert cluster.import_state(found).ok
    assert cluster.apply(found).ok
    return found


def test_applied_cluster_is_served_with_queries_and_policies(folder):
    with serving(f"--cluster={folder}", environment=TOKENS) as server:
        people = og.connect(server.url, token="t-ada", graph="people")
        assert [one["name"] for one in people.queries()] == ["add", "names"]
        assert people.invoke("add", {"name": "Ada"}).affected_nodes == 1
        answer = people.invoke("names")
        assert (answer.name, answer.rows) == ("names", [{"p.name": "Ada"}])
        assert answer.graph_commit_id == people.snapshot().commit_id
        with pytest.raises(og.NotFound, match="branch 'typo' does not exist"):
            people.invoke("add", {"name": "Bob"}, branch="typo")
        assert people.branches.list() == ["main"]
        listed = og.connect(server.url, token="t-ada", graph="ports")
        assert listed.snapshot().branch == "main"
        with pytest.raises(og.OmniError) as caught:
            people.schema.apply(PEOPLE_NEXT)
        assert (caught.value.category, caught.value.code) == ("denied", "forbidden")
        stranger = og.connect(server.url, token="t-x", graph="people")
        with pytest.raises(og.NotFound):
            stranger.invoke("names")
        answer = httpx.get(f"{server.url}/graphs", headers={"Authorization": "Bearer t-ada"})
        assert [one["graph_id"] for one in answer.json()["graphs"]] == ["people", "ports"]
        for graph in (people, listed, stranger):
            graph.close()


def test_graph_that_is_being_changed_is_set_aside(folder):
    store = ClusterStore(locate(folder))
    record = {
        "schema_version": 1,
        "operation_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "started_at": "2026-01-01T00:00:00.000+00:00",
        "actor": None,
        "kind": "schema_apply",
        "graph_id": "ports",
        "graph_uri": store.graph_uri("ports"),
    }
    store.put_record("__cluster/recoveries", record["operation_id"], record)
    with serving(f"--cluster=file://{folder}", environment=TOKENS) as server:
        with pytest.raises(og.NotFound):
            og.connect(server.url, token="t-ada", graph="ports").snapshot()
        people = og.connect(server.url, token="t-ada", graph="people")
        assert people.snapshot().branch == "main"
        people.close()
    with (
        pytest.raises(AssertionError, match="cluster_recovery_pending"),
        serving(f"--cluster={folder}", "--require-all-graphs", environment=TOKENS),
    ):
        pass


def test_cluster_that_was_not_applied_is_not_served(tmp_path):
    folder = write_cluster(tmp_path / "config")
    with (
        pytest.raises(AssertionError, match="cluster_state_missing"),
        serving(f"--cluster={folder}", environment=TOKENS),
    ):
        pass


def test_applied_cluster_is_offered_to_agents(folder):
    with serving(f"--cluster={folder}", environment=TOKENS) as server:
        with agent(on_web(f"{server.url}/graphs/people/mcp", "t-ada")) as ada:
            assert {"add", "names", "query", "mutate"} <= set(ada.tools())
            assert ada.call("add", name="Ada")["affected_nodes"] == 1
            assert ada.call("names")["rows"] == [{"p.name": "Ada"}]
            assert "schema_apply" not in ada.tools()
        with agent(on_web(f"{server.url}/mcp", "t-ada")) as ada:
            assert [one["graph_id"] for one in ada.call("graphs_list")["graphs"]] == [
                "people",
                "ports",
            ]
        with agent(on_web(f"{server.url}/graphs/people/mcp", "t-x")) as stranger:
            assert stranger.unknown("names") == "unknown tool 'names'"
            assert not {"add", "query", "mutate"} & set(stranger.tools())
        with agent(on_web(f"{server.url}/graphs/ports/mcp", "t-ada")) as ada:
            assert not {"add", "names", "mutate"} & set(ada.tools())
            assert (
                ada.call("query", query="query q() { match { $p: Port } return { $p.code } }")[
                    "rows"
                ]
                == []
            )


def ready(server):
    with server.client() as client:
        answer = client.get("/readyz").json()
    return answer.get("cluster_revision"), answer.get("cluster_revision_refused")


def until(server, expected):
    """Wait until a server serves a revision, or reports one that it refuses."""
    pause = threading.Event()
    for _ in range(int(PATIENCE * 10)):
        if ready(server) == expected:
            return
        pause.wait(0.1)
    raise AssertionError(f"{ready(server)}\n{''.join(server.log)}")


def test_newly_applied_revision_is_served_without_a_restart(folder):
    with serving(f"--cluster={folder}", environment=TOKENS) as server:
        assert ready(server) == (2, None)
        people = og.connect(server.url, token="t-ada", graph="people")
        assert people.invoke("add", {"name": "Ada"}).affected_nodes == 1
        (folder / "people.pg").write_text(PEOPLE_NEXT)
        (folder / "queries/towns.gq").write_text(
            "query towns() { match { $p: Person } return { $p.name, $p.town } }\n"
        )
        edit(folder, "[act-ada]", "[act-ada, act-x]", file="readers.yaml")
        edit(folder, "  ports:", "  quays:\n    schema: ports.pg\n  ports:")
        assert cluster.apply(folder).ok
        until(server, (3, None))
        assert people.invoke("towns").rows == [{"p.name": "Ada", "p.town": None}]
        stranger = og.connect(server.url, token="t-x", graph="people")
        assert stranger.invoke("names").rows == [{"p.name": "Ada"}]
        quays = og.connect(server.url, token="t-ada", graph="quays")
        assert quays.snapshot().branch == "main"
        for graph in (people, stranger, quays):
            graph.close()


def test_revision_that_cannot_be_served_leaves_the_old_one_serving(folder):
    store = ClusterStore(locate(folder))
    with serving(f"--cluster={folder}", environment=TOKENS) as server:
        people = og.connect(server.url, token="t-ada", graph="people")
        digest = store.read().state.resources["query.people.names"].digest
        path = store.payload_path("query.people.names", digest)
        content = store.objects.get(path)
        store.objects.delete([path])
        edit(folder, "[read, change]", "[read]", file="readers.yaml")
        assert cluster.apply(folder).ok
        until(server, (2, 3))
        assert people.invoke("add", {"name": "Ada"}).affected_nodes == 1
        assert any("catalog_payload_missing" in line for line in server.log)
        assert any("revision 3 cannot be served" in line for line in server.log)
        store.objects.put(path, content)
        until(server, (3, None))
        with pytest.raises(og.OmniError) as caught:
            people.mutate('query m() { insert Person { name: "Bo" } }')
        assert caught.value.code == "forbidden"
        assert [row["p.name"] for row in people.invoke("names").rows] == ["Ada"]
        people.close()
