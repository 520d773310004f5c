"""Metrics on an address of their own, the audit log, limits of requests in time, the dashboard."""

import json
import re
import urllib.error
import urllib.request

import pytest

from omnigraph.errors import InvalidInput
from omnigraph.server.metrics_address import metrics_server, parse_address
from omnigraph.service.admission import MAX_RATE_VARIABLE, AdmissionControl, TooManyRequests
from tests.support.program import ROOT
from tests.support.serving import ALL_PEOPLE, INSERT, make_graph, serving
from tests.support.sockets import free_port

DASHBOARD = ROOT / "deploy" / "grafana-dashboard.json"
TYPE = re.compile(r"^# TYPE (\w+) (\w+)$", re.MULTILINE)
SUFFIXES = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("",), "gauge": ("",)}


def use(client, graph="people"):
    insert = {"query": INSERT, "params": {"name": "Ada", "age": 3}}
    assert client.post(f"/graphs/{graph}/mutate", json=insert).status_code == 200
    assert client.post(f"/graphs/{graph}/query", json={"query": ALL_PEOPLE}).status_code == 200


def sample(text, name, **labels):
    """Return the value of a sample."""
    for line in text.splitlines():
        if line.startswith((f"{name}{{", f"{name} ")):
            found = dict(re.findall(r'(\w+)="([^"]*)"', line))
            if labels.items() <= found.items():
                return float(line.rpartition(" ")[2])
    return None


@pytest.mark.parametrize("workers", [1, 2])
def test_metrics_have_an_address_of_their_own(tmp_path, workers):
    uri = make_graph(tmp_path / "g")
    port = free_port()
    with serving(
        f"--graph=people={uri}",
        "--unauthenticated",
        "--maintenance",
        f"--workers={workers}",
        f"--metrics-address=127.0.0.1:{port}",
    ) as server:
        with server.client() as client:
            use(client)
            assert client.get("/graphs/nope/branches").status_code == 404
            assert client.get("/metrics").status_code == 404
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/graphs")
    seconds = "omnigraph_operation_seconds_count"
    labels = {"graph": "people", "outcome": "ok"}
    operations = set(re.findall(r'_seconds_count{graph="people",operation="(\w+)"', text))
    assert len(operations) == 2
    assert all(sample(text, seconds, operation=name, **labels) == 1 for name in operations)
    assert "nope" not in text
    assert sample(text, "omnigraph_commits_total") == 1
    assert sample(text, "omnigraph_commit_groups_total") == 1
    assert sample(text, "omnigraph_commit_wait_seconds_count", reason="queue") == 1
    assert sample(text, "omnigraph_memory_bytes", kind="resident") > 10**7
    assert_dashboard_fits(text)


def assert_dashboard_fits(text):
    """Check that every metric and label of the dashboard is exposed."""
    exposed = {name + suffix for name, type_ in TYPE.findall(text) for suffix in SUFFIXES[type_]}
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    expressions = [t["expr"] for panel in board["panels"] for t in panel["targets"]]
    expressions += [v["query"] for v in board["templating"]["list"] if v["type"] == "query"]
    named = {name for e in expressions for name in re.findall(r"omnigraph_\w+", e)}
    assert len(named) > 10
    assert named - exposed == set()


def test_lookups_of_the_column_cache_are_counted(tmp_path):
    uri = make_graph(tmp_path / "g")
    name = "omnigraph_column_cache_lookups_total"
    with (
        serving(f"--graph=people={uri}", "--unauthenticated", "--no-maintenance") as server,
        server.client() as client,
    ):
        use(client)
        text = client.get("/metrics").text
        misses, hits = (sample(text, name, outcome=one) or 0 for one in ("miss", "hit"))
        assert misses > 0
        for _ in range(3):
            client.post("/graphs/people/query", json={"query": ALL_PEOPLE})
        text = client.get("/metrics").text
    assert (sample(text, name, outcome="miss"), sample(text, name, outcome="hit") > hits) == (
        misses,
        True,
    )
    assert sample(text, "omnigraph_memory_bytes", kind="topology_cache") == 0
    assert sample(text, "omnigraph_memory_bytes", kind="column_cache") > 0


def test_the_public_address_does_not_name_graphs(tmp_path):
    uri = make_graph(tmp_path / "g")
    with (
        serving(f"--graph=people={uri}", "--unauthenticated") as server,
        server.client() as client,
    ):
        use(client)
        text = client.get("/metrics").text
    assert 'graph="people"' not in text
    assert sample(text, "omnigraph_operation_seconds_count", graph="", outcome="ok") == 1


def test_addresses_that_cannot_be_listened_on_are_refused():
    for text in ("nonsense", "127.0.0.1:x"):
        with pytest.raises(InvalidInput, match="expected HOST:PORT"):
            parse_address(text)
    with (
        metrics_server("127.0.0.1:0", lambda: b"", "text/plain") as port,
        pytest.raises(InvalidInput, match=f"cannot listen on 127.0.0.1:{port} for metrics"),
        metrics_server(f"127.0.0.1:{port}", lambda: b"", "text/plain"),
    ):
        pass


def test_changes_and_decisions_go_to_the_audit_log(tmp_path):
    uri = make_graph(tmp_path / "g")
    log = tmp_path / "audit.ndjson"
    tokens = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"act-ada": "token-ada"})}
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\ngroups:\n  team: [act-ada]\nrules:\n"
        "  - {id: team-all, allow: {actors: {group: team}, actions: [read, change]}}\n",
        encoding="utf-8",
    )
    with (
        serving(
            f"--graph=people={uri}",
            f"--policy={policy}",
            f"--audit-log={log}",
            environment=tokens,
        ) as server,
        server.client("token-ada") as client,
    ):
        use(client)
        refused = client.post("/graphs/people/branches", json={"name": "b"})
        assert refused.status_code == 403
        request_id = refused.headers["x-request-id"]
        server.stop()
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    changes = [line for line in lines if line["logger"] == "omnigraph.audit"]
    assert [(c["status"], c["actor"], c["graph_id"]) for c in changes] == [
        (200, "act-ada", "people"),
        (403, "act-ada", "people"),
    ]
    decisions = [line for line in lines if line["logger"] == "omnigraph.policy"]
    denied = [d["action"] for d in decisions if not d["allowed"]]
    assert denied == ["branch_create"]
    assert changes[1]["request_id"] == request_id
    assert not [line for line in server.log if '"omnigraph.policy"' in line]


def test_requests_of_an_actor_are_limited_by_the_minute(tmp_path):
    uri = make_graph(tmp_path / "g")
    with (
        serving(
            f"--graph=people={uri}", "--unauthenticated", environment={MAX_RATE_VARIABLE: "3"}
        ) as server,
        server.client() as client,
    ):
        answers = [client.get("/graphs/people/branches") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert answers[3].json()["code"] == "too_many_requests"
        assert 1 <= int(answers[3].headers["retry-after"]) <= 20
        assert client.get("/healthz").status_code == 200


def test_an_allowance_is_refilled_by_time_and_separate_for_each_actor(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("omnigraph.service.admission.time.monotonic", lambda: now[0])
    admission = AdmissionControl(per_minute_max=2)
    for _ in range(2):
        admission.count_request("ada")
    with pytest.raises(TooManyRequests) as error:
        admission.count_request("ada")
    assert error.value.retry_after == 30
    admission.count_request("bo")
    now[0] += 30
    admission.count_request("ada")
    with pytest.raises(TooManyRequests):
        admission.count_request("ada")
    now[0] += 3600
    for _ in range(2):
        admission.count_request("ada")
    with pytest.raises(TooManyRequests):
        admission.count_request("ada")
