"""Checks of a snapshot: what each kind finds, with counts, rows and entities."""

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.commit.snapshot import apply_scope
from omnigraph.errors import OmniError
from omnigraph.policy.permissions import TypeGrant, TypeScope
from omnigraph.query.checks import (
    MAX_FINDINGS,
    AcceptedValuesCheck,
    CheckSeverity,
    ChecksFailed,
    FreshnessCheck,
    QueryCheck,
    RowCountCheck,
    StateCheck,
    run_checks,
)
from omnigraph.query.engine import Engine

SCHEMA = """
node Person { name: String @key  state: enum(a, b, c)?  seen: DateTime?  born: Date? }
edge Knows: Person -> Person { kind: String?  since: Date? }
"""
NOW = datetime(2024, 1, 10, tzinfo=UTC)
LONERS = """
query loners() { match { $p: Person  not { $p knows $q } } return { $p, $p.state } order { $p } }
query pairs() { match { $p: Person  $p knows $q } return { $p, $q, $q.name } }
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    graph = og.init(tmp_path_factory.mktemp("checks") / "g", SCHEMA)
    people = [
        {"name": "ada", "state": "a", "seen": "2024-01-01T00:00:00Z", "born": "1990-01-01"},
        {"name": "bo", "state": "c", "seen": "2024-01-09T12:30:00Z"},
        {"name": "cy"},
    ]
    graph.load({"Person": people, "Knows": [{"from": "ada", "to": "bo", "kind": "friend"}]})
    return graph


def check(graph, rule, severity=CheckSeverity.FAIL):
    engine = Engine(graph._manifest, may_write=False)
    [result] = run_checks(engine, graph.snapshot(), [StateCheck("it", rule, severity)], NOW)
    return result


def test_a_query_finds_the_rows_it_returns_with_their_entities(graph):
    found = check(graph, QueryCheck(LONERS, "loners"))
    assert (found.count, found.message) == (2, "query 'loners' returned 2 rows")
    assert found.rows == [{"p": "bo", "p.state": "c"}, {"p": "cy", "p.state": None}]
    assert found.entities == [
        {"kind": "node", "type": "Person", "id": "bo"},
        {"kind": "node", "type": "Person", "id": "cy"},
    ]
    pair = check(graph, QueryCheck(LONERS, "pairs"))
    assert [entity["id"] for entity in pair.entities] == ["ada", "bo"]
    none = "query q() { match { $p: Person { name: 'zed' } } return { $p } }"
    passed = check(graph, QueryCheck(none.replace("'", '"')))
    assert (passed.is_passed, passed.is_failed, passed.rows) == (True, False, [])


def test_a_row_without_an_optional_entity_leaves_those_of_others_with_their_rows(graph):
    text = "match { $p: Person  optional { $p knows $q } } return { $p, $q } order { $p }"
    found = check(graph, QueryCheck(text))
    assert [row["q"] for row in found.rows] == ["bo", None, None]
    ids = [[entity["id"] for entity in entities] for entities in found.row_entities]
    assert ids == [["ada", "bo"], ["bo"], ["cy"]]
    assert [entity["id"] for entity in found.entities] == ["ada", "bo", "bo", "cy"]


def test_findings_of_a_proposal_have_the_entities_of_their_rows(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.load({"Person": [{"name": "ada"}]})
    side = graph.branch("side", create=True)
    side.load({"Person": [{"name": "bo"}, {"name": "cy"}]})
    side.load({"Knows": [{"from": "bo", "to": "ada"}]})
    text = "match { $p: Person  optional { $p knows $q } } return { $p, $q } order { $p }"
    checks = [StateCheck("pairs", QueryCheck(text), CheckSeverity.WARN)]
    number = graph.proposals.create("side", title="More people").number
    [run] = graph.with_checks(checks).proposals.get(number).run_checks()
    found = [(one["row"]["p"], [e["id"] for e in one["entities"]]) for one in run.findings]
    assert found == [("ada", ["ada"]), ("bo", ["bo", "ada"]), ("cy", ["cy"])]


def test_entities_of_an_interface_have_their_own_types(tmp_path):
    schema = """
    interface Named { name: String }
    node Person implements Named { key: String @key  name: String }
    node Robot implements Named { key: String @key  name: String }
    edge Owns: Person -> Robot
    """
    graph = og.init(tmp_path / "g", schema)
    people = [{"key": "p", "name": "x"}, {"key": "both", "name": "x"}]
    robots = [{"key": "r", "name": "x"}, {"key": "both", "name": "y"}]
    graph.load({"Person": people, "Robot": robots, "Owns": [{"from": "p", "to": "r"}]})
    found = check(graph, QueryCheck('match { $x: Named { name: "x" } } return { $x }'))
    assert {row["x"] for row in found.rows} == {"p", "both", "r"}
    assert sorted((entity["type"], entity["id"]) for entity in found.entities) == [
        ("Person", "p"),
        ("Robot", "r"),
    ]
    owned = check(graph, QueryCheck("match { $y: Robot  $x: Named  $x owns $y } return { $x, $y }"))
    assert [(entity["type"], entity["id"]) for entity in owned.entities] == [
        ("Person", "p"),
        ("Robot", "r"),
    ]


@pytest.mark.parametrize(
    ("rule", "message", "count"),
    [
        (RowCountCheck("node:Person", 3, 3), "Person has 3 entities", 0),
        (RowCountCheck("node:Person", 4), "Person has 3 entities, fewer than 4", 1),
        (RowCountCheck("edge:Knows", None, 0), "Knows has 1 entity, more than 0", 1),
        (
            FreshnessCheck("node:Person", "seen", timedelta(hours=12)),
            "the newest Person.seen is 2024-01-09T12:30:00+00:00",
            0,
        ),
        (
            FreshnessCheck("node:Person", "seen", timedelta(hours=11)),
            "the newest Person.seen is 2024-01-09T12:30:00+00:00, older than 11h",
            1,
        ),
        (
            FreshnessCheck("node:Person", "born", timedelta(days=7)),
            "the newest Person.born is 1990-01-01, older than 7d",
            1,
        ),
        (FreshnessCheck("edge:Knows", "since", timedelta(days=7)), "Knows.since has no value", 1),
    ],
)
def test_counts_and_freshness_are_those_of_the_snapshot(graph, rule, message, count):
    found = check(graph, rule)
    assert (found.message, found.count, len(found.rows)) == (message, count, count)


def test_values_that_are_not_accepted_are_found_with_their_entities(graph):
    found = check(graph, AcceptedValuesCheck("node:Person", "state", pa.array(["a", "b"])))
    assert (found.count, found.rows) == (1, [{"id": "bo", "state": "c"}])
    assert found.entities == [{"kind": "node", "type": "Person", "id": "bo"}]
    edge = check(graph, AcceptedValuesCheck("edge:Knows", "kind", pa.array(["foe"])))
    assert [(e["kind"], e["type"]) for e in edge.entities] == [("edge", "Knows")]
    assert check(graph, AcceptedValuesCheck("edge:Knows", "kind", pa.array(["friend"]))).is_passed


def test_all_findings_are_counted_and_the_first_are_kept(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.load({"Person": [{"name": f"p{n:03}", "state": "c"} for n in range(50)]})
    rules = [
        AcceptedValuesCheck("node:Person", "state", pa.array(["a"])),
        QueryCheck(LONERS, "loners"),
    ]
    for found in (check(graph, rule) for rule in rules):
        assert (found.count, len(found.rows), len(found.entities)) == (50, *[MAX_FINDINGS] * 2)


def test_only_findings_of_severity_fail_prevent_a_publish(graph):
    rule = RowCountCheck("node:Person", 4)
    warning = check(graph, rule, CheckSeverity.WARN)
    failure = check(graph, rule)
    assert (warning.is_passed, warning.is_failed, failure.is_failed) == (False, False, True)
    error = ChecksFailed([warning, failure])
    assert (error.code, error.message) == (
        "checks_failed",
        "1 check failed, nothing was published: it: Person has 3 entities, fewer than 4",
    )
    assert error.details["checks"][1] == {
        "name": "it",
        "severity": "fail",
        "passed": False,
        "message": "Person has 3 entities, fewer than 4",
        "count": 1,
        "rows": [{"entities": 3}],
        "entities": [],
    }


@pytest.mark.parametrize(
    "rule",
    [
        QueryCheck("query q() { match { $p: Person  $p knows $q } return { $p } }"),
        RowCountCheck("edge:Knows", 0),
        AcceptedValuesCheck("edge:Knows", "kind", pa.array(["x"])),
        FreshnessCheck("node:Person", "born", timedelta(days=1)),
        AcceptedValuesCheck("node:Person", "born", pa.array([date(2024, 1, 1)])),
    ],
)
def test_what_the_actor_may_not_read_does_not_exist_for_a_check(graph, rule):
    scope = TypeScope.of([TypeGrant(frozenset({"Person"}), frozenset({("Person", "born")}))])
    shown = apply_scope(graph._manifest, graph.snapshot(), scope)
    engine = Engine(graph._manifest, may_write=False)
    with pytest.raises(OmniError) as refused:
        run_checks(engine, shown, [StateCheck("it", rule)], NOW)
    assert refused.value.category in ("not_found", "invalid")
    [seen] = run_checks(engine, shown, [StateCheck("it", RowCountCheck("node:Person", 4))], NOW)
    assert seen.rows == [{"entities": 3}]
