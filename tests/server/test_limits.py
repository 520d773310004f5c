"""What a caller may take: so many changes at once, so much time, so many streams."""

import contextlib
import threading

import pytest
from starlette.testclient import TestClient

from omnigraph.query.limits import PROCESS_MEMORY
from omnigraph.server.app import create_app
from omnigraph.server.settings import MAX_STREAMS, ServerLimits
from omnigraph.service.admission import AdmissionControl
from omnigraph.service.auth import AuthMode
from omnigraph.service.graph_registry import GraphSource, open_registry
from omnigraph.service.session import GraphService
from tests.support.serving import ALL_PEOPLE, INSERT, make_graph
from tests.support.wire_contract import validator

PAIRS = "query pairs() { match { $p: Person  $q: Person } return { $p.name, $q.name } }"
WAYS_TO_ASK = [
    ("query", "application/json"),
    ("query", "application/x-ndjson"),
    ("query", "application/vnd.apache.arrow.stream"),
    ("explain", "application/json"),
]
CHANGE = {"query": INSERT, "params": {"name": "Ada"}}


@contextlib.contextmanager
def asking(tmp_path, limits=None, **options):
    uri = make_graph(tmp_path / "g")
    registry = open_registry([GraphSource(id="g", uri=uri)])
    service = GraphService(registry=registry, state=AuthMode.OPEN, **options)
    app = create_app(service, limits)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client, service, app.state.app_state


def failed(answer, status):
    assert answer.status_code == status
    validator("ErrorOutput").validate(answer.json())
    return answer.json()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("mutate", CHANGE),
        ("load", {"data": ""}),
        ("branches", {"name": "b"}),
        ("branches/merge", {"source": "a", "target": "b"}),
        ("schema/apply", {"schema_source": "node {"}),
    ],
)
def test_an_actor_has_so_many_changes_under_way(tmp_path, path, body):
    with asking(tmp_path, admission=AdmissionControl(inflight_max=1)) as (client, service, _):
        with service.admission.admit(None, 1):
            refused = client.post(f"/graphs/g/{path}", json=body)
            assert client.post("/graphs/g/query", json={"query": ALL_PEOPLE}).status_code == 200
        assert failed(refused, 429)["code"] == "too_many_requests"
        assert refused.headers["retry-after"] == "60"
        assert client.post("/graphs/g/mutate", json=CHANGE).status_code == 200


def test_an_actor_has_so_many_bytes_under_way(tmp_path):
    with asking(tmp_path, admission=AdmissionControl(bytes_max=300)) as (client, _, _):
        assert client.post("/graphs/g/branches", json={"name": "b"}).status_code == 200
        failed(client.post("/graphs/g/load", json={"data": " " * 301}), 429)


@pytest.mark.parametrize(
    ("options", "resource"),
    [({"seconds": 1e-9}, "query_seconds"), ({"memory": 1}, "query_memory_bytes")],
)
def test_a_query_takes_only_what_it_may(tmp_path, options, resource):
    with asking(tmp_path, **options) as (client, _, _):
        client.post("/graphs/g/mutate", json=CHANGE)
        for path, accepted in WAYS_TO_ASK:
            asked = {"query": PAIRS, "analyze": True, "memory_bytes": 10**12}
            headers = {"Accept": accepted}
            reported = failed(client.post(f"/graphs/g/{path}", json=asked, headers=headers), 413)
            assert reported["resource_limit"]["resource"] == resource


def test_a_query_that_finds_the_memory_held_by_others_may_come_again(tmp_path, monkeypatch):
    monkeypatch.setattr(PROCESS_MEMORY, "used", PROCESS_MEMORY.limit)
    with asking(tmp_path) as (client, _, _):
        client.post("/graphs/g/mutate", json=CHANGE)
        for path, accepted in WAYS_TO_ASK:
            asked = {"query": PAIRS, "analyze": True}
            answer = client.post(f"/graphs/g/{path}", json=asked, headers={"Accept": accepted})
            reported = failed(answer, 429)
            assert reported["problem"]["code"] == "query_memory_busy"
            assert reported["resource_limit"]["resource"] == "query_memory_total_bytes"
            assert answer.headers["retry-after"] == "60"


def test_a_count_beyond_64_bits_is_refused_with_its_own_code(tmp_path):
    people = ['{"type":"Person","data":{"name":"a"}}', '{"type":"Person","data":{"name":"b"}}']
    edges = [f'{{"edge":"Knows","from":"{a}","to":"{b}"}}' for a in "ab" for b in "ab"]
    steps = "  ".join(f"$n{hop} knows $n{hop + 1}" for hop in range(63))
    with asking(tmp_path) as (client, _, _):
        loaded = client.post("/graphs/g/load", json={"data": "\n".join([*people, *edges])})
        assert loaded.status_code == 200
        text = f"query q() {{ match {{ $n0: Person  {steps} }} return {{ count($n0) as n }} }}"
        reported = failed(client.post("/graphs/g/query", json={"query": text}), 413)
        assert reported["problem"]["code"] == "query_count_overflow"
        assert reported["resource_limit"]["resource"] == "query_count"
        fewer = text.replace("$n62 knows $n63", '$n62.name = "a"')
        answered = client.post("/graphs/g/query", json={"query": fewer})
        assert answered.json()["rows"] == [{"n": 2**62}]


def test_rows_that_do_not_fit_one_object_are_sent_as_they_come(tmp_path):
    with asking(tmp_path, memory=20_000) as (client, _, _):
        lines = "".join(f'{{"type":"Person","data":{{"name":"p{n}"}}}}\n' for n in range(200))
        assert client.post("/graphs/g/load", json={"data": lines}).status_code == 200
        asked = {"query": ALL_PEOPLE}
        reported = failed(client.post("/graphs/g/query", json=asked), 413)
        assert reported["resource_limit"]["resource"] == "query_memory_bytes"
        assert "application/x-ndjson" in reported["error"]
        accepted = {"Accept": "application/x-ndjson"}
        rows = client.post("/graphs/g/query", json=asked, headers=accepted).text.splitlines()
        assert len(rows) == 200


@pytest.mark.parametrize("limit", [{"memory_bytes": -1}, {"timeout_seconds": -0.5}])
def test_limits_below_nothing_are_refused(tmp_path, limit):
    with asking(tmp_path) as (client, _, _):
        for path, accepted in WAYS_TO_ASK:
            asked = {"query": PAIRS, "analyze": True, **limit}
            answer = client.post(f"/graphs/g/{path}", json=asked, headers={"Accept": accepted})
            assert failed(answer, 400)["problem"]["code"] == "query_limit_invalid"


def test_an_answer_that_does_not_come_in_time_is_given_up(tmp_path):
    limits = ServerLimits(threads=1, deadline=0.2)
    with asking(tmp_path, limits) as (client, _, front):
        done = threading.Event()
        for _ in range(2):
            front.scheduler.threads.submit(done.wait)
        late = client.post("/graphs/g/query", json={"query": ALL_PEOPLE})
        done.set()
        reported = failed(late, 503)
        assert "code" not in reported
        assert reported["problem"]["code"] == "deadline"


def test_so_many_streams_are_under_way(tmp_path):
    with asking(tmp_path) as (client, _, front):
        for _ in range(MAX_STREAMS):
            client.portal.call(front.streams.acquire)
        for path in ("export", "changes/baseline"):
            answer = client.post(f"/graphs/g/{path}", json={})
            assert answer.status_code == 413
            assert answer.json()["resource_limit"] == {
                "resource": "stream_export_transport_bytes",
                "limit": 2 * 1024 * 1024,
                "actual": 2 * 1024 * 1024 + 256 * 1024,
            }
        client.portal.call(_release, front.streams)
        for _ in range(3):
            assert client.post("/graphs/g/export", json={}).status_code == 200


async def _release(streams):
    streams.release()


def test_a_mistake_of_ours_is_reported_by_a_fixed_text(tmp_path, monkeypatch):
    def broken(_):
        raise RuntimeError("/secret/place")

    monkeypatch.setattr("omnigraph.graph.Schema.source", property(broken))
    with asking(tmp_path) as (client, _, _):
        answer = client.get("/graphs/g/schema")
        assert failed(answer, 500)["problem"] == {"code": "internal", "category": "internal"}
        assert "secret" not in answer.text
        assert client.get("/healthz").status_code == 200


def test_what_breaks_in_the_server_tells_no_paths(tmp_path):
    with asking(tmp_path) as (client, _, _):
        client.post("/graphs/g/mutate", json=CHANGE)
        for file in (tmp_path / "g" / "nodes").rglob("*.lance"):
            file.write_bytes(b"nonsense")
        for path, body in (("query", {"query": ALL_PEOPLE}), ("export", {})):
            answer = client.post(f"/graphs/g/{path}", json=body)
            reported = failed(answer, 500)
            assert reported["code"] == "internal"
            assert str(tmp_path) not in answer.text
            assert "nodes/" not in answer.text
            assert "Traceback" not in answer.text
