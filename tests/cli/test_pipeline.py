"""The commands of pipelines that need no Spark, driven from outside."""

import json

import pytest

from tests.support.program import ROOT, omnigraph

LIBRARY = ROOT / "samples" / "library"
FILE = "samples/library/pipeline.yaml"


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    address = str(tmp_path_factory.mktemp("library") / "graph")
    assert omnigraph("init", address, "--schema", LIBRARY / "schema.pg").code == 0
    return address


def test_a_valid_file_is_reported_with_what_was_not_checked(uri):
    ran = omnigraph("pipeline", "validate", FILE, "--uri", uri)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        f"{FILE} is valid (3 sources, 3 types; expressions and these sources not checked: "
        'topics (columns of JSON), about (query); run "plan" to open them)\n'
    )
    ran = omnigraph("pipeline", "validate", FILE, "--uri", uri, "--json")
    assert list(json.loads(ran.out)["unchecked_sources"]) == ["topics", "about"]


def test_a_file_can_be_held_against_a_schema_alone(tmp_path):
    ran = omnigraph("pipeline", "validate", FILE, "--schema", "samples/harbour/schema.pg")
    assert (ran.code, ran.out) == (1, "")
    assert f"error[Y301]: the graph has no node type `Topic`\n  --> {FILE}:17:3" in ran.err


def test_errors_have_line_and_column_also_as_json(uri, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("version: 1\nsources: {a: {csv: x}}\nnodes: {Topik: {source: b}}\n")
    ran = omnigraph("pipeline", "validate", path, "--uri", uri, "--json")
    reported = json.loads(ran.out)["error"]["details"]["diagnostics"]
    assert ran.code == 1
    assert [(d["code"], d["span"]["line"], d["span"]["column"]) for d in reported] == [
        ("Y201", 3, 25)
    ]


def test_the_graph_may_be_named_by_the_file_and_variables_from_outside(uri, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(
        f"version: 1\ngraph: {uri}\nvariables: {{F: null}}\n"
        "sources: {a: {csv: '${F}'}}\nnodes: {Topic: {source: a}}\n"
    )
    (tmp_path / "a.csv").write_text("name\n")
    ran = omnigraph("pipeline", "validate", path, "--set", "F=a.csv")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        f'{path} is valid (1 source, 1 type; expressions not checked, run "plan" to check them)\n'
    )
    assert "does not exist" in omnigraph("pipeline", "validate", path, "--set", "F=b.csv").err
    missing = omnigraph("pipeline", "validate", path)
    assert (missing.code, "error[Y106]" in missing.err) == (1, True)
    assert omnigraph("pipeline", "validate", path, "--set", "F").code == 2


def test_a_graph_without_runs_says_so(uri):
    assert (
        omnigraph("pipeline", "status", "--uri", uri).out
        == "no pipeline has run on this graph yet\n"
    )
    assert json.loads(omnigraph("pipeline", "status", "--uri", uri, "--json").out) == {"runs": []}
    for command in (("report",), ("report", "01X"), ("abort", "01X"), ("resume", "01X")):
        ran = omnigraph("pipeline", *command, "--uri", uri)
        assert (ran.code, "error[run_not_found]" in ran.err) == (1, True), command
