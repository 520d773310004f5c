"""A query that would take too much time or memory fails with the operator that would."""

import numpy as np
import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.catalog import TypeKind
from omnigraph.errors import InvalidInput
from omnigraph.plan.expressions import Direction, Hops
from omnigraph.query.engine import QuerySettings
from omnigraph.query.expansion import EdgeExpansion, ExpandMode
from omnigraph.query.limits import QueryBudget, QueryLimit

SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person
"""
PEOPLE = 300


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    made = og.init(tmp_path_factory.mktemp("limits") / "g", SCHEMA)
    names = [f"p{number:03d}" for number in range(PEOPLE)]
    ends = [(a, b) for a in names[:40] for b in names[:40]]
    made.load(
        {
            "Person": pa.table({"name": names}),
            "Knows": pa.table({"from": [a for a, _ in ends], "to": [b for _, b in ends]}),
        }
    )
    return made


def run(graph, body, **settings):
    text = f"query q() {{ match {{ {body} }}"
    return graph._engine.run(graph.snapshot(), text, {}, None, QuerySettings(**settings))


HUNGRY = {
    "Expand": "$a: Person  $a knows $b  $b knows $c } return { $a.name as a, $c.name as c }",
    "Cross": "$a: Person  $b: Person } return { $a.name as a, $b.name as b }",
}


@pytest.mark.parametrize("mode", ExpandMode)
@pytest.mark.parametrize("operator", HUNGRY)
def test_rows_that_would_not_fit_are_refused_by_the_operator_that_makes_them(graph, operator, mode):
    with pytest.raises(QueryLimit) as refused:
        run(graph, HUNGRY[operator], memory=100_000, expand=mode)
    assert refused.value.code == "query_memory"
    assert refused.value.details == {"operator": operator, "limit": 100_000}
    assert len(run(graph, HUNGRY[operator], expand=mode)) > 0


def test_bounded_searches_are_refused_when_they_would_not_fit(graph):
    body = "$a: Person  $a knows{1,4} $b } return { $a.name as a, $b.name as b }"
    with pytest.raises(QueryLimit, match="Expand would make"):
        run(graph, body, memory=10_000)


def test_counting_needs_no_memory_for_what_is_counted(graph):
    body = "$a: Person  $a knows $b  $b knows $c } return { count($a) as n }"
    assert run(graph, body, memory=100_000).rows == [{"n": 40**3}]


def test_rows_of_which_no_value_is_needed_are_counted_in_any_memory(graph):
    three = "$a: Person  $b: Person  $c: Person }"
    for memory in (10_000_000, 1_000):
        assert run(graph, f"{three} return {{ count($a) as n }}", memory=memory).rows == [
            {"n": PEOPLE**3}
        ]
    values = "return { max($a.name) as x, max($b.name) as y, max($c.name) as z }"
    with pytest.raises(QueryLimit, match="Cross would make 90,000 rows"):
        run(graph, f"{three} {values}", memory=1_000)


LONG_VALUES = {
    "Project": "return { $a.name as a, $b.name as b }",
    "Aggregate": "return { $a.name as a, $b.name as b, count($a) as n }",
}


@pytest.mark.parametrize("operator", LONG_VALUES)
def test_values_that_would_not_fit_are_refused_before_they_are_made(tmp_path, operator):
    made = og.init(tmp_path / "long", SCHEMA)
    made.load({"Person": pa.table({"name": [f"{n:01000d}" for n in range(PEOPLE)]})})
    body = f"$a: Person  $b: Person }} {LONG_VALUES[operator]}"
    with pytest.raises(QueryLimit, match=f"{operator} would make 1[0-9,]+ bytes"):
        run(made, body, memory=10_000_000)


def test_memory_the_machine_does_not_have_is_reported_alike(graph, monkeypatch):
    def broken(*_):
        raise MemoryError

    monkeypatch.setattr("omnigraph.query.executor.Frame.take", broken)
    with pytest.raises(QueryLimit, match="more memory than there is"):
        run(graph, HUNGRY["Cross"])


def test_time_that_is_up_is_reported_with_the_operator(graph):
    with pytest.raises(QueryLimit, match="it was at") as refused:
        run(graph, HUNGRY["Expand"], timeout=0.0)
    assert refused.value.code == "query_timeout"
    assert refused.value.details == {"operator": "Expand", "limit": 0.0}


@pytest.mark.parametrize("limit", [{"timeout": -1.0}, {"timeout": float("nan")}, {"memory": -1}])
def test_limits_below_nothing_are_refused(graph, limit):
    [name] = limit
    with pytest.raises(InvalidInput, match=f"the {name} of a query is a number from 0 up"):
        run(graph, HUNGRY["Expand"], **limit)


WORK = {
    "one hop": lambda walk, every: walk.reach(every, Hops(1, 1)),
    "a search": lambda walk, every: walk.reach(every, Hops(1, 3)),
    "a search from few": lambda walk, every: walk.reach(every[:3], Hops(1, 3)),
    "checks": lambda walk, every: walk.connects(every, every, Hops(1, 1)),
    "neighbours in common": lambda walk, every: walk.common(every, walk, every),
}


@pytest.mark.parametrize("name", WORK)
def test_long_work_looks_at_the_clock(graph, name):
    snapshot, store = graph.snapshot(), graph._engine.store
    person = store.table(snapshot, TypeKind.NODE, "Person")
    walk = EdgeExpansion(
        edge=store.table(snapshot, TypeKind.EDGE, "Knows"),
        src=person,
        dst=person,
        direction=Direction.OUT,
        topologies=graph._engine.topologies,
        budget=QueryBudget(0.0),
        mode=ExpandMode.TOPOLOGY,
    )
    with pytest.raises(QueryLimit, match="Expand") as refused:
        WORK[name](walk, np.arange(PEOPLE))
    assert refused.value.code == "query_timeout"


def test_making_arrays_looks_at_the_clock(graph):
    fresh = og.open(graph.uri, mode="ro")
    store, snapshot = fresh._engine.store, fresh.snapshot()
    person = store.table(snapshot, TypeKind.NODE, "Person")
    ends = (store.table(snapshot, TypeKind.EDGE, "Knows"), person, person)
    with pytest.raises(QueryLimit):
        fresh._engine.topologies.get(ends, lambda: QueryBudget(0.0).check("Expand"))
    assert fresh._engine.topologies.built == 0
    found = fresh._engine.topologies.get(ends, lambda: None)
    assert found.out.counts(np.arange(PEOPLE)).sum() == 1600
