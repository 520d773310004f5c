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


def test_a_schema_and_a_pipeline_are_proposed_for_files(tmp_path):
    (tmp_path / "people.csv").write_text("name,age\nada,36\nbo,\n")
    (tmp_path / "knows.csv").write_text("from,to\nada,bo\n")
    (tmp_path / "odd.csv").write_text("from,to\nada,zed\n")
    files = [f"--from={name}.csv" for name in ("people", "knows", "odd")]
    ran = omnigraph("pipeline", "init", *files, "--out", "crm", cwd=tmp_path)
    assert (ran.code, ran.out.splitlines()[0]) == (
        0,
        "wrote crm/schema.pg (1 node type, 1 edge type) and crm/pipeline.yaml",
    )
    assert ran.err.startswith("note: odd.csv is not loaded: `to`: 1 of 1 different values")
    checked = omnigraph(
        *("pipeline", "validate", "crm/pipeline.yaml", "--schema", "crm/schema.pg"), cwd=tmp_path
    )
    assert (checked.code, checked.err) == (0, "")
    before = (tmp_path / "crm/schema.pg").read_bytes()
    (tmp_path / "people.csv").write_text("name,age\nada,36\nbo,x\n")
    again = omnigraph("pipeline", "init", *files, "--out", "crm", cwd=tmp_path)
    assert (again.code, "error[already_exists]: crm/schema.pg and" in again.err) == (1, True)
    assert (tmp_path / "crm/schema.pg").read_bytes() == before
    forced = omnigraph(
        *("pipeline", "init", *files, "--out", "crm", "--force", "--json"), cwd=tmp_path
    )
    report = json.loads(forced.out)
    assert (report["schema"], report["pipeline"]) == ("crm/schema.pg", "crm/pipeline.yaml")
    assert [type_["name"] for type_ in report["types"]] == ["Person", "Knows"]
    assert report["types"][0]["properties"][1]["type"] == "String"
    assert report["undecided"][0]["file"] == "odd.csv"
    assert b"age: String\n" in (tmp_path / "crm/schema.pg").read_bytes()


def test_sources_and_types_are_listed_as_a_part_and_at_a_target(uri, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(
        f"version: 1\ngraph: ./nowhere\nvariables: {{F: a}}\ntargets: {{prod: {{graph: {uri}}}}}\n"
        "sources: {a: {csv: '${F}.csv'}, b: {sql: select * from a}}\n"
        "nodes: {Topic: {source: a}, Article: {source: b}}\nedges: {About: {source: b}}\n"
    )
    ran = omnigraph("pipeline", "ls", path, "--target", "prod", "--select", "Topic+")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "pipeline p: sources\n"
        "  source  kind  reads\n"
        "  a       csv\n"
        "  b       sql   a\n"
        "types\n"
        "  type        source  endpoints\n"
        "  node Topic  a\n"
        "  edge About  b       Topic\n"
    )
    schema = ("--schema", LIBRARY / "schema.pg", "--exclude", "source:b", "--json")
    listed = json.loads(omnigraph("pipeline", "ls", path, *schema).out)
    assert listed["types"] == [{"type": "node:Topic", "reads": ["a"], "needs": []}]
    assert omnigraph("pipeline", "run", path, "--target", "dev").code == 3
    assert omnigraph("pipeline", "resume", "01X", "--uri", uri).code == 1
    unknown = omnigraph("pipeline", "ls", path, "--target", "prod", "--select", "Topik")
    assert (unknown.code, "error[selection_invalid]" in unknown.err) == (1, True)
    elsewhere = omnigraph("pipeline", "validate", path, "--target", "dev")
    assert (elsewhere.code, "target 'dev' is not declared" in elsewhere.err) == (1, True)
