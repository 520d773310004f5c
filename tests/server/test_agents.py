"""Agents at a server: who they are is said by tokens, what they get by policies."""

import json

import pytest

from tests.support.agents import agent, on_web
from tests.support.serving import ALL_PEOPLE, INSERT

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HEADERS = {"Accept": "application/json, text/event-stream"}
GUARDED = "/graphs/guarded/mcp"
CONVERSATION = {"create", "comment", "review", "check", "close"}
"""What the right to read allows to do to a proposal; it changes no data."""


def posted(server, path, message=PING, token="token-ada", **headers):
    with server.client(token) as client:
        return client.post(path, json=message, headers={**HEADERS, **headers})


def writing(tools):
    return {name for name, tool in tools.items() if not tool.annotations.read_only_hint}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agent_writes_as_whom_its_token_says(guarded_server, mode):
    url = f"{guarded_server.url}{GUARDED}"
    with agent(on_web(url, "token-ada", mode)) as ada:
        assert {"mutate", "merge", "schema_apply", "add_person", "adults"} <= set(ada.tools())
        done = ada.call("add_person", name=f"Agent-{mode}", age=3)
        assert (done["actor_id"], done["affected_nodes"]) == ("act-ada", 1)
        rows = ada.call("query", query=ALL_PEOPLE)["rows"]
        assert {"name": f"Agent-{mode}", "age": 3} in rows


def test_an_agent_is_offered_what_its_actor_may_do(guarded_server):
    with agent(on_web(f"{guarded_server.url}{GUARDED}", "token-bob")) as bob:
        tools = bob.tools()
        assert writing(tools) == {f"proposal_{word}" for word in CONVERSATION}
        assert {"query", "schema_get", "graphs_list"} <= set(tools)
        assert not {"adults", "add_person"} & set(tools)
        wanted = {"query": INSERT, "params": {"name": "Bob"}}
        assert bob.unknown("mutate", **wanted) == "unknown tool 'mutate'"
        assert bob.unknown("adults", min=1) == "unknown tool 'adults'"


def test_a_stranger_is_offered_only_what_needs_no_right(guarded_server):
    with agent(on_web(f"{guarded_server.url}{GUARDED}", "token-eve")) as eve:
        assert set(eve.tools()) == {"health"}
        assert eve.resources() == {}
        assert eve.unknown("query", query=ALL_PEOPLE) == "unknown tool 'query'"


def test_a_graph_without_policy_is_only_read(guarded_server):
    with agent(on_web(f"{guarded_server.url}/graphs/plain/mcp", "token-ada")) as ada:
        tools = ada.tools()
        assert writing(tools) == {f"proposal_{word}" for word in CONVERSATION}
        assert "query" in tools


def test_the_server_itself_has_tools_of_its_own(guarded_server):
    with agent(on_web(f"{guarded_server.url}/mcp", "token-bob")) as bob:
        assert set(bob.tools()) == {"health", "graphs_list"}
        graphs = bob.call("graphs_list")["graphs"]
        with guarded_server.client("token-bob") as client:
            assert client.get("/graphs").json() == {"graphs": graphs}
        assert list(bob.resources()) == ["omnigraph://graphs"]
        assert json.loads(bob.read("omnigraph://graphs")) == {"graphs": graphs}
    with agent(on_web(f"{guarded_server.url}/mcp", "token-ada")) as ada:
        assert set(ada.tools()) == {"health"}
        assert ada.resources() == {}
        assert ada.unknown("graphs_list") == "unknown tool 'graphs_list'"


@pytest.mark.parametrize("path", ["/mcp", GUARDED, "/graphs/nothing/mcp"])
@pytest.mark.parametrize("token", [None, "token-nobody"])
def test_without_a_token_nothing_is_reported(guarded_server, path, token):
    answer = posted(guarded_server, path, token=token)
    assert answer.status_code == 401
    assert answer.json()["code"] == "unauthorized"


def test_a_request_is_answered_by_one_json_and_nothing_is_kept(guarded_server):
    answer = posted(guarded_server, GUARDED)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert "mcp-session-id" not in answer.headers


def test_a_request_is_one_line_of_the_log(guarded_server):
    asked = "agents-log-1"
    assert posted(guarded_server, GUARDED, **{"X-Request-Id": asked}).status_code == 200
    posted(guarded_server, "/mcp", **{"X-Request-Id": "agents-log-2"})
    with guarded_server.client() as client:
        client.get("/healthz", headers={"X-Request-Id": "agents-log-3"})
    loggers = [json.loads(line)["logger"] for line in list(guarded_server.log) if asked in line]
    assert set(loggers) <= {"omnigraph.server", "omnigraph.policy"}


def test_an_unknown_method_is_reported_as_such(guarded_server):
    answer = posted(guarded_server, GUARDED, {**PING, "method": "tools/burn"})
    assert answer.json()["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("path", "status"), [("/graphs/nothing/mcp", 404), ("/graphs/no_id/mcp", 400)]
)
def test_a_graph_that_is_not_served_has_no_tools(guarded_server, path, status):
    assert posted(guarded_server, path).status_code == status


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_only_posts_are_taken(guarded_server, method):
    with guarded_server.client("token-ada") as client:
        answer = client.request(method, GUARDED)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {"Content-Type": "application/json"}, 400),
        (b"[]", {"Content-Type": "application/json"}, 400),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b" " * (32 * 1024 * 1024 + 1), {"Content-Type": "application/json"}, 413),
    ],
    ids=["no-json", "no-message", "other-type", "too-large"],
)
def test_what_is_no_message_is_refused(guarded_server, body, headers, status):
    with guarded_server.client("token-ada") as client:
        answer = client.post(GUARDED, content=body, headers={**HEADERS, **headers})
    assert answer.status_code == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://evil.example", 403),
        ("null", 403),
        ("http://[", 403),
        ("http://localhost:6274", 200),
        ("http://127.0.0.1", 200),
    ],
)
def test_pages_of_other_places_are_refused(guarded_server, origin, status):
    assert posted(guarded_server, GUARDED, Origin=origin).status_code == status
