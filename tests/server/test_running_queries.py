"""Running queries of a server: listed and cancelled in any of its processes, slow ones logged."""

import json
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest

import omnigraph as og
import omnigraph.graph as embedded
from tests.support.program import omnigraph
from tests.support.serving import PATIENCE, make_graph, serving

RING = 400
LONG = """
query longest($from: String) {
  match { $a: Person  $b: Person  $a.name != $from  $a.name != "hidden text" }
  return { $a.name as a, path_length($a, <knows>, $b) as n }
  order { n desc }
  limit 1
}
"""
POLICY = """
version: 1
groups: { users: [ada, bob], admins: [eve] }
rules:
  - { id: read, allow: { actors: { group: users }, actions: [read] } }
  - { id: all, allow: { actors: { group: admins }, actions: [read, admin] } }
"""
TOKENS = {"ada": "token-ada", "bob": "token-bob", "eve": "token-eve", "zoe": "token-zoe"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Two processes that serve a graph with a policy and one without."""
    folder = tmp_path_factory.mktemp("running")
    uris = {name: make_graph(folder / name) for name in ("g", "plain")}
    lines = [{"type": "Person", "data": {"name": f"p{n}"}} for n in range(RING)]
    lines += [{"edge": "Knows", "from": f"p{n}", "to": f"p{(n + 1) % RING}"} for n in range(RING)]
    for uri in uris.values():
        embedded.open(uri).load("\n".join(map(json.dumps, lines)).encode())
    (folder / "tokens.json").write_text(json.dumps(TOKENS))
    (folder / "policy.yaml").write_text(POLICY)
    arguments = [
        *(f"--graph={name}={uri}" for name, uri in uris.items()),
        f"--policy=g={folder / 'policy.yaml'}",
        *("--workers=2", "--query-timeout=600", "--slow-query=0.5", "--threads=2"),
    ]
    environment = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(folder / "tokens.json")}
    with serving(*arguments, environment=environment) as found:
        yield found


def listed(server, actor, graph="g"):
    with server.client(TOKENS[actor]) as client:
        answer = client.get(f"/graphs/{graph}/running")
    assert answer.status_code == 200, answer.text
    return answer.json()["queries"]


@contextmanager
def running(server, actor="ada", graph="g"):
    """Send a query that takes minutes; yield what is listed of it, and its answer."""
    answers = []

    def send():
        with server.client(TOKENS[actor]) as client:
            body = {"query": LONG, "params": {"from": "nobody"}}
            answers.append(client.post(f"/graphs/{graph}/query", json=body))

    thread = threading.Thread(target=send)
    before = {query["query_id"] for query in listed(server, actor, graph)}
    thread.start()
    new = []
    end = time.monotonic() + PATIENCE
    while not new and time.monotonic() < end:
        new = [q for q in listed(server, actor, graph) if q["query_id"] not in before]
    try:
        yield new[0], answers
    finally:
        with server.client(TOKENS[actor]) as client:
            client.delete(f"/graphs/{graph}/running/{new[0]['query_id']}")
        thread.join(PATIENCE)


def answering(server, number):
    """Return which process answered a request."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for line in list(server.log):
            if f'"running-{number}"' in line and '"status"' in line:
                return json.loads(line)["process"]
        time.sleep(0.01)
    raise AssertionError("the request was not logged")


def test_a_query_is_listed_and_cancelled_by_a_process_that_does_not_run_it(server):
    with running(server) as (query, answers), ExitStack() as stack:
        assert (query["query_name"], query["actor_id"]) == ("longest", "ada")
        assert "hidden text" not in json.dumps(query)
        seen, number = {}, 0
        while len(seen) < 2:  # a new connection goes to either process by chance
            number += 1
            client = stack.enter_context(server.client(TOKENS["ada"]))
            headers = {"X-Request-Id": f"running-{number}"}
            [found] = client.get("/graphs/g/running", headers=headers).json()["queries"]
            assert found["query_id"] == query["query_id"]
            seen.setdefault(answering(server, number), client)
        assert query["process_id"] in seen
        [other] = [client for process, client in seen.items() if process != query["process_id"]]
        cancelled = other.delete(f"/graphs/g/running/{query['query_id']}")
        assert (cancelled.status_code, cancelled.json()["query_id"]) == (200, query["query_id"])
        end = time.monotonic() + PATIENCE
        while not answers and time.monotonic() < end:
            time.sleep(0.01)
        [answer] = answers
        assert (answer.status_code, answer.json()["problem"]["code"]) == (503, "query_cancelled")
    assert listed(server, "ada") == []
    with server.client(TOKENS["ada"]) as client:
        gone = client.delete(f"/graphs/g/running/{query['query_id']}")
    assert (gone.status_code, gone.json()["problem"]["code"]) == (404, "running_query_not_found")


@pytest.mark.parametrize(("graph", "admin"), [("g", "eve"), ("plain", None)])
def test_other_actors_see_and_cancel_it_only_as_admins(server, graph, admin):
    with running(server, graph=graph) as (query, answers):
        path = f"/graphs/{graph}/running/{query['query_id']}"
        assert listed(server, "bob", graph) == []
        with server.client(TOKENS["bob"]) as client:
            assert client.delete(path).status_code == 404
        assert answers == []
        if admin is not None:
            assert [found["query_id"] for found in listed(server, admin, graph)] == [
                query["query_id"]
            ]
            with server.client(TOKENS[admin]) as client:
                assert client.delete(path).status_code == 200
    assert [answer.status_code for answer in answers] == [503]


def test_who_may_not_read_may_not_list(server):
    with server.client(TOKENS["zoe"]) as client:
        assert client.get("/graphs/g/running").status_code == 403
        assert client.delete("/graphs/g/running/x").status_code == 403
    with server.client() as client:
        assert client.get("/graphs/g/running").status_code == 401


def test_queries_are_listed_while_all_threads_are_busy(server):
    with running(server) as (one, _), running(server, "bob") as (_, _), running(server) as (two, _):
        queries = [query["query_id"] for query in listed(server, "ada")]
        assert queries == [one["query_id"], two["query_id"]]


def test_the_client_and_the_command_list_and_cancel(server):
    with running(server) as (query, answers):
        with og.connect(server.url, token=TOKENS["ada"], graph="g") as graph:
            [found] = graph.running_queries()
            assert (found.id, found.actor, found.name) == (query["query_id"], "ada", "longest")
            assert found.process_id == query["process_id"]
            assert found.seconds > 0
        words = ("--server", server.url, "--graph", "g")
        environment = {"OMNIGRAPH_BEARER_TOKEN": TOKENS["ada"]}
        shown = command(environment, "running", "list", *words, "--json")
        assert [q["query_id"] for q in json.loads(shown.out)["queries"]] == [query["query_id"]]
        assert (
            f"{query['query_id']}\tlongest\t" in command(environment, "running", "list", *words).out
        )
        done = command(environment, "running", "cancel", query["query_id"], *words)
        assert (done.code, done.out) == (0, f"cancelled {query['query_id']}\n")
    assert [answer.status_code for answer in answers] == [503]
    assert command(environment, "running", "list", *words).out == "no queries are running\n"
    gone = command(environment, "running", "cancel", query["query_id"], *words)
    assert "error[running_query_not_found]" in gone.err


def command(environment, *words):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        return omnigraph(*words)


def test_the_command_needs_a_server(tmp_path):
    uri = make_graph(tmp_path / "g")
    ran = omnigraph("running", "list", "--store", uri)
    assert ran.code == 1
    assert "`running list` needs a server: pass --server NAME|URL" in ran.err


def test_a_slow_query_is_logged_with_its_plan_and_request(server):
    with running(server, "bob") as (query, _):
        time.sleep(0.6)
    with server.client(TOKENS["bob"]) as client:
        quick = 'query quick() { match { $p: Person { name: "p1" } } return { $p.name } }'
        assert client.post("/graphs/g/query", json={"query": quick}).status_code == 200
    records = [json.loads(line) for line in list(server.log) if '"omnigraph.slow_query"' in line]
    assert {record["query"] for record in records} == {"longest"}
    record = next(record for record in records if record["actor"] == "bob")
    assert record["digest"] == query["query_digest"]
    assert record["milliseconds"] > 500
    assert record["graph_id"] == "g"
    assert record["request_id"] is not None
    assert record["read_commit"] == query["graph_commit_id"]
    assert "$a.name != ?" in record["plan"]
    assert "$a.name != $from" in record["plan"]
    assert not any(word in json.dumps(record) for word in ("nobody", "hidden text"))
