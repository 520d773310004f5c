"""The commands that change graphs and write them out, driven from outside."""

import json
import re

import pyarrow.parquet as pq
import pytest

import omnigraph.graph as og
from omnigraph.storage.durability import Durability
from tests.support.program import HARBOUR, omnigraph

SCHEMA = HARBOUR / "schema.pg"
ADD_PORT = "query add($code: String, $city: String) { insert Port { code: $code, city: $city } }"


@pytest.fixture
def uri(tmp_path):
    address = str(tmp_path / "graph")
    assert omnigraph("init", address, "--schema", SCHEMA).code == 0
    return address


def head(uri):
    return json.loads(omnigraph("snapshot", uri, "--json").out)["graph_commit_id"]


def add_port(uri, code, *more):
    params = json.dumps({"code": code, "city": "x"})
    return omnigraph("mutate", "--store", uri, "-e", ADD_PORT, "--params", params, *more)


def test_mutation_says_what_it_changed(uri):
    ran = add_port(uri, "AAA", "--as", "act-ada")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "changed main via add: 1 nodes, 0 edges\nactor_id: act-ada\n"


def test_mutation_json_has_the_wire_shape(uri):
    before = head(uri)
    facts = json.loads(add_port(uri, "AAA", "--message", "first port", "--json").out)
    commit = facts.pop("commit")
    assert facts == {
        "branch": "main",
        "query_name": "add",
        "affected_nodes": 1,
        "affected_edges": 0,
        "actor_id": None,
    }
    assert commit.pop("created_at") > 0
    assert commit == {
        "graph_commit_id": head(uri),
        "graph_branch": None,
        "graph_manifest_version": 2,
        "parent_commit_id": before,
        "merged_parent_commit_id": None,
        "actor_id": None,
        "message": "first port",
        "operation": "mutation",
        "counts": {"node:Port": {"inserted": 1, "updated": 0, "deleted": 0}},
    }


def test_mutation_without_effect_makes_no_commit(uri):
    before = head(uri)
    ran = omnigraph(
        "mutate", "--store", uri, "-e", 'query m() { delete Port where code = "ZZZ" }', "--json"
    )
    facts = json.loads(ran.out)
    assert (ran.code, facts["affected_nodes"], facts["commit"]) == (0, 0, None)
    assert head(uri) == before


def test_mutation_and_parameters_may_be_files(uri, tmp_path):
    (tmp_path / "q.gq").write_text(ADD_PORT + '\nquery other() { insert Note { text: "n" } }')
    (tmp_path / "p.json").write_text('{"code": "BBB", "city": "Bergen"}')
    ran = omnigraph(
        "mutate",
        "add",
        "--uri",
        uri,
        "--query",
        tmp_path / "q.gq",
        "--params-file",
        tmp_path / "p.json",
    )
    assert (ran.code, ran.out) == (0, "changed main via add: 1 nodes, 0 edges\n")
    ran = omnigraph("mutate", "--uri", uri, "--query", tmp_path / "q.gq")
    assert ran.code == 1
    assert "the text holds 2 queries; say which one to run" in ran.err


def test_lost_race_has_an_exit_code_of_its_own(uri):
    before = head(uri)
    assert add_port(uri, "AAA", "--if-commit", before).code == 0
    ran = add_port(uri, "BBB", "--if-commit", before, "--json")
    assert ran.code == 4
    reported = json.loads(ran.out)
    assert reported["precondition_failure"] == {"expected": before, "actual": head(uri)}
    assert f"error[precondition_failed]: {reported['error']}\n" == ran.err
    assert ran.err.startswith("error[precondition_failed]: ")


def test_violations_are_all_reported_and_nothing_changes(uri):
    before = head(uri)
    ran = omnigraph(
        "mutate",
        "--store",
        uri,
        "-e",
        """query m() {
             insert Port { code: "ab", city: "x" }
             insert Ship { imo: 1, label: "A", kind: "tug", draught: 31.0 }
             insert CallsAt { from: "7", to: "AAA" }
           }""",
    )
    assert (ran.code, ran.out) == (1, "")
    shown = re.sub(r"'[0-9A-Z]{26}'", "'…'", ran.err)
    assert shown.splitlines() == [
        "error[validation_failed]: 4 violations; nothing was changed",
        "  @check violation on Port.code: value 'ab' does not match pattern '^[A-Z]{3}$'",
        "  @range violation on Ship.draught: value 31.0 > max 30.5",
        "  edge CallsAt '…': src '7' not found in Ship",
        "  edge CallsAt '…': dst 'AAA' not found in Port",
    ]
    assert head(uri) == before


@pytest.mark.parametrize(
    ("arguments", "code", "reported"),
    [
        ((), 2, "no query given: pass either --query FILE or -e TEXT"),
        (("-e", "query q() {", "--query", "x.gq"), 2, "no query given"),
        (("-e", ADD_PORT, "--params", "{}", "--params-file", "x"), 2, "mutually exclusive"),
        (
            ("-e", ADD_PORT, "--params", "[1]"),
            1,
            "error[params_invalid]: invalid parameters: expected a JSON object",
        ),
        (
            ("-e", ADD_PORT, "--params", "{"),
            1,
            "error[params_invalid]: invalid parameters: not valid JSON",
        ),
        (("-e", ADD_PORT), 1, "parameter 'code' not provided"),
        (("--query", "nowhere.gq"), 1, "error[file_not_found]"),
        (("-e", "query q() { match { $p: Port } return { $p } }"), 1, "query 'q' reads"),
        (("-e", ADD_PORT, "--branch", "nope"), 1, "branch 'nope' does not exist"),
    ],
)
def test_mutation_that_cannot_be_run_has_a_reason(uri, arguments, code, reported):
    ran = omnigraph("mutate", "--store", uri, *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert reported in ran.err


def test_load_of_edges_without_a_key_is_noted_on_standard_error(uri, tmp_path):
    add_port(uri, "AAA")
    file = tmp_path / "routes.ndjson"
    file.write_text('{"edge": "Route", "from": "AAA", "to": "AAA", "data": {"nm": 1}}\n')
    data = ("load", uri, "--data", file, "--mode", "merge")
    assert "note:" not in omnigraph(*data).err
    again = omnigraph(*data, "--json")
    [note] = json.loads(again.out)["notes"]
    assert note == (
        "edge Route has no key and no ids were given, so a repeated load adds the same edges "
        "again; declare `@key(src, dst)` on the type to merge them"
    )
    assert again.err.splitlines()[-1] == f"note: {note}"


def test_export_writes_lines_edges_first(uri):
    add_port(uri, "BBB")
    add_port(uri, "AAA")
    omnigraph(
        "mutate",
        "--store",
        uri,
        "-e",
        'query m() { insert Route { from: "AAA", to: "BBB", nm: 5 } }',
    )
    ran = omnigraph("export", uri)
    edge, *nodes = [json.loads(line) for line in ran.out.splitlines()]
    assert list(edge) == ["edge", "from", "to", "data"]
    id_ = edge["data"].pop("id")
    assert len(id_) == 26
    assert edge == {"edge": "Route", "from": "AAA", "to": "BBB", "data": {"nm": 5}}
    assert nodes == [
        {
            "type": "Port",
            "data": {"id": code, "city": "x", "code": code, "depth": None, "opened": None},
        }
        for code in ("AAA", "BBB")
    ]
    assert omnigraph("export", uri, "--type", "Ship").out == ""
    assert "unknown type 'Shp'" in omnigraph("export", uri, "--type", "Shp").err


def test_export_writes_parquet_files(uri, tmp_path):
    add_port(uri, "AAA")
    ran = omnigraph("export", uri, "--parquet", tmp_path / "out", "--type", "Port", "--json")
    assert json.loads(ran.out)["entities"] == {"node:Port": 1}
    rows = pq.read_table(tmp_path / "out" / "node-Port.parquet").to_pylist()
    assert rows == [{"id": "AAA", "city": "x", "code": "AAA", "depth": None, "opened": None}]
    ran = omnigraph("export", uri, "--parquet", tmp_path / "out")
    assert (ran.code, "is not empty" in ran.err) == (1, True)


def test_blobs_are_put_and_got(tmp_path):
    uri = str(tmp_path / "g")
    (tmp_path / "s.pg").write_text("node File { name: String @key  body: Blob? }")
    (tmp_path / "in.bin").write_bytes(b"hello")
    omnigraph("init", uri, "--schema", tmp_path / "s.pg")
    add = 'query m() { insert File { name: "a" } }'
    assert omnigraph("mutate", "--store", uri, "-e", add).code == 0
    which = ("node", "File", "a", "body")
    ran = omnigraph("blob", "get", "--uri", uri, *which)
    assert (ran.code, ran.err) == (1, "error[blob_not_found]: node File 'a' has no File.body\n")
    ran = omnigraph("blob", "put", "--uri", uri, *which, tmp_path / "in.bin")
    assert (ran.code, ran.out) == (0, "wrote 5 bytes to File.body of a\n")
    assert omnigraph("blob", "get", "--uri", uri, *which).out == "hello"
    assert (
        omnigraph("blob", "get", "--uri", uri, *which, "--offset", "1", "--length", "99").out
        == "ello"
    )
    omnigraph("blob", "get", "--uri", uri, *which, "--out", tmp_path / "out.bin")
    assert (tmp_path / "out.bin").read_bytes() == b"hello"
    facts = json.loads(omnigraph("blob", "stat", "--uri", uri, *which, "--json").out)
    assert facts["selector"] == {"entity": "node", "type": "File", "id": "a", "property": "body"}
    assert (facts["kind"], facts["size"]) == ("managed", 5)
    assert facts["target"] == {"branch": "main", "resolved_snapshot": head(uri)}
    assert "size: 5\n" in omnigraph("blob", "stat", "--uri", uri, *which).out
    ran = omnigraph("blob", "clear", "--uri", uri, *which)
    assert (ran.code, ran.out) == (0, "cleared File.body of a\n")
    assert omnigraph("blob", "stat", "--uri", uri, *which).code == 1
    ran = omnigraph("blob", "clear", "--uri", uri, "node", "File", "b", "body", "--json")
    assert (ran.code, "entity_not_found" in ran.err + ran.out) == (1, True)


def test_schema_of_a_graph_is_shown_planned_and_linted_against(uri):
    assert omnigraph("schema", "show", uri).out == SCHEMA.read_text()
    assert json.loads(omnigraph("schema", "show", uri, "--json").out) == {
        "schema_source": SCHEMA.read_text()
    }
    ran = omnigraph("schema", "plan", uri, "--schema", HARBOUR / "schema-next.pg")
    files = omnigraph("schema", "plan", "--from", SCHEMA, "--to", HARBOUR / "schema-next.pg")
    assert ran.out.splitlines()[0] == f"schema plan for {uri}"
    assert ran.out.splitlines()[1:] == files.out.splitlines()[1:]
    ran = omnigraph("lint", uri, "--query", HARBOUR / "queries.gq", "--json")
    assert json.loads(ran.out)["schema_source"] == {"kind": "graph", "uri": uri}
    assert ran.code == 0
    assert omnigraph("lint", "--store", uri, "--query", HARBOUR / "mistakes.gq").code == 1


@pytest.mark.parametrize("durability", [level.value for level in Durability])
def test_load_syncs_its_commit_as_the_option_says(uri, tmp_path, durability):
    data = tmp_path / "ports.ndjson"
    data.write_text(json.dumps({"type": "Port", "data": {"code": "AAA", "city": "x"}}))
    ran = omnigraph(
        "load", uri, "--data", data, "--mode", "merge", "--durability", durability, "--quiet"
    )
    assert ran.code == 0, ran.err
    marked = og.open(uri, mode="ro")._manifest.main.state().head.relaxed
    assert marked == (durability == "relaxed")


def test_unknown_durability_is_refused(uri, tmp_path):
    ran = omnigraph("load", uri, "--data", tmp_path, "--mode", "merge", "--durability", "some")
    assert ran.code == 2
    assert "'some' is not one of 'full', 'relaxed'" in ran.err


def test_a_load_merges_by_default_as_in_python(uri):
    line = '{"type":"Port","data":{"code":"AAR","city":"%s"}}\n'
    for city in ("Aarhus", "Risskov"):
        ran = omnigraph("load", uri, "--data", "-", typed=line % city)
        assert (ran.code, "on branch main with merge: 1 entities" in ran.out) == (0, True), ran.err
    rows = json.loads(
        omnigraph("query", uri, "-e", "match { $p: Port } return { $p.city }", "--json").out
    )["rows"]
    assert rows == [{"p.city": "Risskov"}]


def test_a_table_without_its_type_is_answered_with_the_line_that_works(uri, tmp_path):
    (tmp_path / "ports.csv").write_text("code,city\nAAR,Aarhus\n")
    ran = omnigraph("load", uri, "--data", "ports.csv", "--mode", "append", cwd=tmp_path)
    assert ran.code == 1
    corrected = f"omnigraph load {uri} --mode append --node TYPE=ports.csv"
    assert f"ports.csv is a table: give the type of its rows, e.g. `{corrected}`" in ran.err
    words = corrected.replace("TYPE", "Port").split()[1:]
    assert omnigraph(*words, cwd=tmp_path).code == 0
    ran = omnigraph("init", "h", "ports.csv", cwd=tmp_path)
    assert (ran.code, "files are given with --from FILE" in ran.err) == (2, True)
    ran = omnigraph("load", uri, "ports.csv", cwd=tmp_path)
    assert (ran.code, "files are given with --data FILE or --node TYPE=FILE" in ran.err) == (
        2,
        True,
    )
