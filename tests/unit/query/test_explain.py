"""How a query is answered, reported before and after."""

import pytest

import omnigraph as og

QUERY = """query q($kind: String) {
  match { $s: Ship { kind: $kind }  $s callsAt $p  not { $p route $_ } }
  return { $p.code, count($s) as ships }
  order { ships desc }
  limit 5
}"""


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", "samples/harbour/schema.pg")
    graph.load("samples/harbour/data.ndjson")
    return graph


def test_every_operator_is_reported_with_a_guess(graph):
    reported = graph.explain(QUERY)
    assert [(step.depth, step.operator.split()[0]) for step in reported.steps] == [
        (0, "Slice"),
        (1, "Sort"),
        (2, "Aggregate"),
        (3, "AntiJoin"),
        (4, "Expand"),
        (5, "Scan"),
        (4, "Expand"),
        (5, "OuterRow"),
    ]
    assert all(step.estimated_rows >= 1 and step.actual is None for step in reported.steps)
    assert str(reported).splitlines()[5].strip() == "Scan $s: Ship where $s.kind = $kind  (~1 rows)"


def test_analysis_tells_what_happened(graph):
    reported = graph.explain(QUERY, {"kind": "ferry"}, analyze=True)
    rows = {
        step.operator.split(" -")[0]: step.actual.rows for step in reported.steps if step.actual
    }
    assert rows["Scan $s: Ship where $s.kind = $kind"] == 1
    assert rows["Expand $s"] == 2
    assert rows["AntiJoin"] == 0
    assert reported.to_json()["steps"][5]["rows"] == 1
    assert all(step.actual.seconds > 0 for step in reported.steps if step.actual)


def test_parameters_are_asked_for_only_when_it_is_run(graph):
    graph.explain(QUERY)
    with pytest.raises(og.QueryError, match="parameter 'kind' not provided"):
        graph.explain(QUERY, analyze=True)


def test_guess_follows_the_size_of_types_and_edges(graph):
    all_ships = graph.explain("query q() { match { $s: Ship } return { $s } }")
    assert [step.estimated_rows for step in all_ships.steps] == [3, 3]
    calls = graph.explain("query q() { match { $s: Ship  $s callsAt $p } return { $s } }")
    assert calls.steps[1].estimated_rows == 3


def test_mutation_is_not_explained(graph):
    with pytest.raises(og.OmniError, match="changes data"):
        graph.explain('query m() { delete Note where text = "x" }')
