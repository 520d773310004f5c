"""Running queries of a process: who sees them, who may cancel them, and which are logged."""

import logging
import threading
import time
from contextlib import contextmanager

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import NotFound
from omnigraph.query.limits import QueryCancelled
from omnigraph.query.running import RUNNING_QUERIES, hide_literals

SCHEMA = "node P { name: String @key  age: I32? }\nedge K: P -> P"
LONG = """query long($first: String) {
  match { $a: P  $b: P  $c: P { name: $first }  ($a.name = $b.name or $b.name = "secret") }
  return { count($a) as n }
}"""
STREAMED = "query all() { match { $a: P  $b: P } return { $a.name, $b.name } }"
POLICY = """
version: 1
groups: { users: [act-ada, act-bo], admins: [act-eve], some: [act-cy], others: [act-di] }
protected_branches: [main]
rules:
  - { id: main, allow: { actors: { group: some }, actions: [read], branch_scope: protected } }
  - { id: more, allow: { actors: { group: others }, actions: [change] } }
  - { id: read, allow: { actors: { group: users }, actions: [read] } }
  - { id: all, allow: { actors: { group: admins }, actions: [read, admin] } }
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    graph = og.init(tmp_path_factory.mktemp("running") / "g", SCHEMA)
    names = [f"p{number}" for number in range(4_000)]
    graph.load({"P": pa.table({"name": names}), "K": [{"from": "p1", "to": "p2"}]})
    return graph


@contextmanager
def running(graph):
    """Run a query until it is cancelled; yield it, and what it raised."""
    before = {query.id for query in RUNNING_QUERIES.here(graph.uri)}
    raised = []

    def run():
        try:
            graph.query(LONG, {"first": "p1"}, memory=10**12, timeout=120)
        except QueryCancelled as error:
            raised.append(error.code)

    thread = threading.Thread(target=run)
    thread.start()
    while not (new := [q for q in RUNNING_QUERIES.here(graph.uri) if q.id not in before]):
        time.sleep(0.01)
    try:
        yield new[0], raised
    finally:
        RUNNING_QUERIES.cancel(new[0].id, graph.uri)
        thread.join()


def test_a_query_is_listed_while_it_runs_and_can_be_cancelled(graph):
    assert graph.running_queries() == []
    with running(graph.as_actor("ann")) as (query, raised):
        [found] = graph.running_queries()
        assert (found.id, found.name, found.actor) == (query.id, "long", "ann")
        assert (found.commit_id, found.graph) == (graph.snapshot().commit_id, graph.uri)
        assert "secret" not in str(found.to_json())
        assert "p1" not in str(found.to_json())
        graph.branch("main").cancel_query(query.id)
        begun = time.monotonic()
        while graph.running_queries():
            assert time.monotonic() - begun < 10, "it stops at its next check"
            time.sleep(0.01)
    assert raised == ["query_cancelled"]
    with pytest.raises(NotFound, match="it may have ended") as error:
        graph.cancel_query(query.id)
    assert error.value.code == "running_query_not_found"


def test_equal_texts_have_equal_digests(graph):
    with running(graph) as (one, _), running(graph) as (other, _):
        assert one.digest == other.digest
        assert [query.id for query in graph.running_queries()] == [one.id, other.id]


def test_an_actor_sees_and_cancels_its_own_queries_and_an_admin_all(graph):
    ada = og.open(graph.uri, policy=POLICY, actor="act-ada")
    bo, eve = ada.as_actor("act-bo"), ada.as_actor("act-eve")
    with running(ada) as (query, raised):
        assert [found.id for found in ada.running_queries()] == [query.id]
        assert bo.running_queries() == []
        with pytest.raises(NotFound):
            bo.cancel_query(query.id)
        assert raised == []
        assert [found.actor for found in eve.running_queries()] == ["act-ada"]
        eve.cancel_query(query.id)
    assert raised == ["query_cancelled"]
    with running(bo) as (query, raised):
        bo.cancel_query(query.id)
    assert raised == ["query_cancelled"]


def test_an_actor_that_may_read_nothing_lists_and_cancels_nothing(graph):
    guarded = og.open(graph.uri, policy=POLICY)
    for actor in ("act-di", "act-stranger", " "):
        stranger = guarded.as_actor(actor)
        for call in (stranger.running_queries, lambda: stranger.cancel_query("x")):  # noqa: B023
            with pytest.raises(og.PolicyDenied):
                call()
    with pytest.raises(og.PolicyDenied, match="no actor is given"):
        guarded.running_queries()
    with running(guarded.as_actor("act-cy")) as (query, _):
        found = guarded.as_actor("act-cy").running_queries()
    assert [found.id for found in found] == [query.id], "it may read one branch only"


def test_queries_of_another_graph_are_not_listed(graph, tmp_path):
    other = og.init(tmp_path / "other", SCHEMA)
    with running(graph) as (query, _):
        assert other.running_queries() == []
        with pytest.raises(NotFound):
            other.cancel_query(query.id)


def test_a_stream_runs_until_it_is_read_or_closed(graph):
    stream = graph.stream(STREAMED, memory=10**12)
    [found] = graph.running_queries()
    assert found.name == "all"
    parts = stream.parts()
    next(parts)
    graph.cancel_query(found.id)
    with pytest.raises(QueryCancelled, match="it was at Stream"):
        next(parts)
    assert graph.running_queries() == []
    stream = graph.stream(STREAMED, memory=10**12)
    assert len(graph.running_queries()) == 1
    del stream
    assert graph.running_queries() == []


def test_a_failed_query_runs_no_more(graph):
    with pytest.raises(og.QueryError):
        graph.query("query q() { match { $a: Nope } return { $a } }")
    with pytest.raises(og.OmniError):
        graph.query(STREAMED, timeout=0)
    assert graph.running_queries() == []


# --- slow queries ------------------------------------------------------------------------------


@pytest.fixture
def slow(caplog):
    """Log every query that takes no time at all or longer; give what captures the records."""
    RUNNING_QUERIES.slow_seconds = 0.0
    try:
        with caplog.at_level(logging.WARNING, logger="omnigraph.slow_query"):
            yield caplog
    finally:
        RUNNING_QUERIES.slow_seconds = None


def test_a_slow_query_is_logged_with_its_plan_and_without_values(graph, slow):
    text = "query of_age($name: String) { match { $p: P { name: $name }  $p.age > 1234 } "
    text += "return { $p.name } limit 5 }"
    graph.as_actor("ann").query(text, {"name": "secret value"})
    [record] = slow.records
    assert (record.query, record.actor) == ("of_age", "ann")
    assert record.read_commit == graph.snapshot().commit_id
    assert record.milliseconds >= 0
    assert "$p.name = $name" in record.plan
    assert "$p.age > ?" in record.plan
    assert "secret" not in str(record.__dict__)
    assert "1234" not in str(record.__dict__)


def test_analyses_and_cancelled_queries_are_logged_too(graph, slow):
    graph.analyze("kcore", ["K"])
    assert [(r.query, r.plan) for r in slow.records] == [("kcore", "Analyze kcore over K of P")]
    with running(graph):
        pass
    assert slow.records[1].query == "long"


def test_a_quick_query_is_not_logged(graph, slow):
    RUNNING_QUERIES.slow_seconds = 60.0
    graph.analyze("kcore", ["K"])
    assert slow.records == []


@pytest.mark.parametrize(
    ("plan", "shown"),
    [
        ('Filter $p.name = "a \\" 7"', "Filter $p.name = ?"),
        ('Filter $p.day in [date("2024-01-01"), date("2025-01-01")]', "[date(?), date(?)]"),
        ("Scan $p2: P2 where $p2.x1 >= -1.5e+7 and $p2.y = 3", "$p2: P2 where $p2.x1 >= ? and"),
        ("Filter nearest($p.v, [0.5, -1])", "nearest($p.v, [?, ?])"),
        ("Expand $a -[Knows{1,3}]-> $b: P", "Expand $a -[Knows{1,3}]-> $b: P"),
        ("Slice limit 10", "Slice limit ?"),
    ],
)
def test_plans_are_logged_without_literals(plan, shown):
    assert shown in hide_literals(plan)
    assert not any(value in hide_literals(plan) for value in ("2024", "1.5", '" 7'))
