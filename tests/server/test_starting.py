"""A server starts, says where, answers and ends; or says why it does not start."""

import json

import pytest

from tests.support.program import omnigraph
from tests.support.serving import ALL_PEOPLE, INSERT, make_graph, serving


def test_a_graph_served_by_one_command_is_read_and_written(tmp_path):
    uri = make_graph(tmp_path / "g")
    with serving("--graph", f"demo={uri}", "--unauthenticated") as server:
        with server.client() as client:
            assert client.get("/healthz").json()["status"] == "ok"
            change = {"query": INSERT, "params": {"name": "Ada", "age": 36}}
            done = client.post("/graphs/demo/mutate", json=change)
            assert done.json()["affected_nodes"] == 1
            found = client.post("/graphs/demo/query", json={"query": ALL_PEOPLE}).json()
        assert found["rows"] == [{"name": "Ada", "age": 36}]
        assert found["graph_commit_id"] == done.json()["commit"]["graph_commit_id"]
        assert server.stop() == 0
    lines = [json.loads(line) for line in server.log]
    told = [(line["method"], line["route"], line["status"]) for line in lines if "route" in line]
    assert told == [
        ("GET", "/healthz", 200),
        ("POST", "/graphs/{graph_id}/mutate", 200),
        ("POST", "/graphs/{graph_id}/query", 200),
    ]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--graph", "demo={uri}"], "server_unprotected"),
        (["--graph", "demo={uri}", "--policy", "{policy}"], "tokens_missing"),
        (["--unauthenticated"], "no_graphs"),
        (["--graph", "a_b={uri}", "--unauthenticated"], "graph_id_invalid"),
        (["--graph", "graphs={uri}", "--unauthenticated"], "graph_id_invalid"),
        (["--graph", "demo={uri}x", "--unauthenticated"], "graphs_not_served"),
        (["--graph", "demo={uri}", "--unauthenticated", "--tls-key", "k"], "tls_incomplete"),
    ],
)
def test_a_server_that_must_not_start_says_why(tmp_path, arguments, code):
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ngroups: {all: [act-ada]}\n")
    uri = make_graph(tmp_path / "g") if "graphs_not_served" not in code else tmp_path / "none"
    given = [text.format(uri=uri, policy=policy) for text in arguments]
    ran = omnigraph("serve", "--bind", "127.0.0.1:0", *given)
    assert ran.code == 1
    assert f"error[{code}]" in ran.err
    assert "OMNIGRAPH_LISTEN_ADDR" not in ran.out
