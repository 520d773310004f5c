"""A server starts, says where, answers and ends; or says why it does not start."""

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import InvalidInput, OmniError
from omnigraph.server.run import bind_socket
from omnigraph.server.serve import check_settings
from omnigraph.server.service_loader import build_service
from omnigraph.server.settings import ServerSettings
from tests.support.program import omnigraph
from tests.support.serving import ALL_PEOPLE, INSERT, make_graph, serving


def test_a_graph_served_by_one_command_is_read_and_written(tmp_path):
    uri = make_graph(tmp_path / "g")
    with serving("--graph", f"demo={uri}", "--unauthenticated", preloaded=False) as server:
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
    reported = [
        (line["method"], line["route"], line["status"]) for line in lines if "route" in line
    ]
    assert reported == [
        ("GET", "/healthz", 200),
        ("POST", "/graphs/{graph_id}/mutate", 200),
        ("POST", "/graphs/{graph_id}/query", 200),
    ]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, "server_unprotected"),
        ({"policies": {"": "policy.yaml"}}, "tokens_missing"),
        ({"policies": {"": "nowhere.yaml"}}, "tokens_missing"),
        ({"graphs": {}, "unauthenticated": True}, "no_graphs"),
        ({"graphs": {"a_b": "g"}, "unauthenticated": True}, "graph_id_invalid"),
        ({"graphs": {"graphs": "g"}, "unauthenticated": True}, "graph_id_invalid"),
        ({"graphs": {"g": "nowhere"}, "unauthenticated": True}, "graphs_not_served"),
        ({"queries": {"": "nowhere"}, "unauthenticated": True}, "graphs_not_served"),
        ({"key": "key.pem"}, "tls_incomplete"),
        ({"certificate": "cert.pem"}, "tls_incomplete"),
        ({"certificate": "nowhere.pem", "key": "key.pem"}, "tls_invalid"),
        ({"certificate": "policy.yaml", "key": "policy.yaml"}, "tls_invalid"),
    ],
)
def test_a_server_that_must_not_start_says_why(tmp_path, monkeypatch, given, code):
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text("version: 1\ngroups: {all: [act-ada]}\n")
    settings = ServerSettings(**{"graphs": {"g": make_graph(tmp_path / "g")}, **given})
    with pytest.raises(OmniError) as caught:
        started(settings)
    assert caught.value.code == code


def test_the_only_graph_of_an_open_server_is_found_without_its_name(tmp_path):
    graphs = [f"--graph={name}={make_graph(tmp_path / name)}" for name in ("one", "two")]
    with serving(graphs[0], "--unauthenticated") as server, og.connect(server.url) as graph:
        assert graph.uri == f"{server.url}/graphs/one"
        assert graph.query(ALL_PEOPLE).rows == []
    with serving(*graphs, "--unauthenticated") as server:
        with pytest.raises(og.InvalidInput, match="name one with `graph`") as caught:
            og.connect(server.url)
        assert caught.value.code == "graph_ambiguous"


@pytest.mark.parametrize("durability", ["full", "relaxed"])
def test_served_graphs_have_the_durability_of_the_server(tmp_path, durability):
    graphs = {"g": make_graph(tmp_path / "g")}
    settings = ServerSettings(graphs=graphs, unauthenticated=True, durability=durability)
    graph = started(settings).registry.graphs["g"].graph
    assert graph._manifest.location.durability == durability


def started(settings):
    check_settings(settings)
    return build_service(settings, {})


@pytest.mark.parametrize(
    ("arguments", "code"), [([], "graphs_not_served"), (["--workers=2"], "workers_failed")]
)
def test_processes_that_cannot_serve_end(tmp_path, arguments, code):
    graph = f"--graph=g={tmp_path / 'nowhere'}"
    ran = omnigraph("serve", "--bind=127.0.0.1:0", "--unauthenticated", graph, *arguments)
    assert (ran.code, ran.out) == (1, "")
    assert f"error[{code}]" in ran.err
    assert "[graph_not_found] g" in ran.err
    assert "Traceback" not in ran.err


def test_a_container_says_by_its_environment_what_to_serve_and_where(tmp_path, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_CLUSTER", str(tmp_path / "nowhere"))
    monkeypatch.setenv("OMNIGRAPH_BIND", "127.0.0.1:0")
    ran = omnigraph("serve", "--unauthenticated")
    assert (ran.code, "nowhere" in ran.err) == (1, True)
    graph = f"--graph=g={tmp_path / 'graph'}"
    named = omnigraph("serve", "--unauthenticated", graph)
    assert "[graph_not_found] g" in named.err, "what the command line names comes first"
    monkeypatch.setenv("OMNIGRAPH_BIND", "no address")
    ran = omnigraph("serve", "--unauthenticated")
    assert (ran.code, "expected HOST:PORT" in ran.err) == (2, True)


def test_an_address_that_is_taken_is_reported(open_server, tmp_path):
    host, port = open_server.address
    with pytest.raises(InvalidInput, match="cannot listen on"):
        bind_socket(ServerSettings(host=host, port=port))
