"""`serve --cluster`: what was applied is served, broken graphs are set aside."""

import json

import httpx
import pytest

import omnigraph as og
from omnigraph.service import cluster
from omnigraph.service.cluster.store import ClusterStore
from omnigraph.storage import locate
from tests.support.agents import agent, on_web
from tests.support.clusters import PEOPLE_NEXT, edit, write_cluster
from tests.support.serving import serving

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
