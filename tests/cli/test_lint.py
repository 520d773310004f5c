"""`omnigraph lint`, driven from outside."""

import json

import pytest

from tests.support.program import HARBOUR, omnigraph, omnigraph_on_terminal

SCHEMA = HARBOUR / "schema.pg"
QUERIES = HARBOUR / "queries.gq"


def lint(*arguments, **options):
    return omnigraph("lint", "--schema", SCHEMA, *arguments, **options)


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_good_queries_are_listed_and_exit_is_zero(write):
    path = write("one.gq", "query ports() { match { $p: Port } return { $p.code } }")
    ran = lint("--query", path)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "OK    query `ports` (read)\nINFO  Lint complete: 1 query processed, 0 errors, 0 warnings\n"
    )


def test_warnings_alone_do_not_fail(write):
    path = write("warn.gq", 'query m() { insert Note { text: "t" } }')
    ran = lint("--query", path)
    assert ran.code == 0
    assert "WARN  query `m` (mutation)" in ran.out
    assert "mutation declares no params; hardcoded mutations are easy to miss" in ran.out


def test_errors_show_place_and_hint_and_exit_is_one(write):
    path = write("bad.gq", "query q() {\n  match { $s: Shp }\n  return { $s }\n}\n")
    ran = lint("--query", path)
    assert ran.code == 1
    assert ran.out == (
        "ERROR query `q` (read)\n"
        "error[T1]: unknown node type `Shp`\n"
        f"  --> {path}:2:15\n"
        "   |\n"
        "2  |   match { $s: Shp }\n"
        "   |               ^^^\n"
        "   = help: did you mean `Ship`?\n\n"
        "INFO  Lint complete: 1 query processed, 1 error, 0 warnings\n"
    )


def test_json_of_one_file_has_the_contracted_shape(write):
    path = write(
        "some.gq",
        "query r($c: String) { match { $p: Port { code: $c } } return { $p, $p.depth } }\n"
        "query bad() { match { $p: Prt } return { $p } }\n",
    )
    ran = lint("--query", path, "--json")
    report = json.loads(ran.out)
    diagnostics = report["results"][1].pop("diagnostics")
    assert ran.code == 1
    assert report == {
        "schema_source": {"kind": "file", "path": str(SCHEMA)},
        "status": "error",
        "query_path": str(path),
        "queries_processed": 2,
        "errors": 1,
        "warnings": 0,
        "infos": 0,
        "results": [
            {
                "name": "r",
                "kind": "read",
                "status": "ok",
                "operation": {
                    "result": [
                        {"name": "p", "kind": "string", "nullable": False},
                        {"name": "p.depth", "kind": "float", "nullable": True},
                    ],
                    "reads": [{"kind": "node", "type_name": "Port"}],
                    "writes": [],
                },
            },
            {
                "name": "bad",
                "kind": "read",
                "status": "error",
                "error": "T1: unknown node type `Prt`",
            },
        ],
        "findings": [],
    }
    assert [(d["code"], d["span"]["line"], d["span"]["column"]) for d in diagnostics] == [
        ("T1", 2, 27)
    ]


def test_a_syntax_error_is_one_finding_and_no_result(write):
    path = write("broken.gq", "query q() { match { $p: Port } }")
    report = json.loads(lint("--query", path, "--json").out)
    assert (report["status"], report["errors"], report["results"]) == ("error", 1, [])
    [finding] = report["findings"]
    assert (finding["severity"], finding["code"]) == ("error", "Q000")
    assert finding["message"] == "expected `return` after the match block, found `}`"


def test_a_folder_is_searched_and_reports_are_added_up():
    ran = lint("--query", HARBOUR, "--json")
    report = json.loads(ran.out)
    assert ran.code == 1
    assert [file["query_path"].rsplit("/", 1)[1] for file in report["files"]] == [
        "mistakes.gq",
        "queries.gq",
    ]
    assert (report["errors"], report["queries_processed"]) == (8, 13)


def test_the_same_query_name_in_two_files_is_doubted(write):
    text = "query same() { match { $p: Port } return { $p.code } }"
    first, second = write("a.gq", text), write("b.gq", text)
    ran = lint("--query", first, "--query", second)
    assert ran.code == 0
    assert f"warning[L102]: query `same` is also declared in {first}" in ran.out


def test_update_coverage_counts_all_files_together(write):
    first = write("a.gq", 'query a($i: I32?) { update Note set { score: $i } where text = "x" }')
    second = write(
        "b.gq", 'query b($d: DateTime?) { update Note set { written: $d } where id = "x" }'
    )
    assert "L201" not in lint("--query", first, "--query", second).out
    alone = json.loads(lint("--query", first, "--json").out)
    assert alone["findings"] == [
        {
            "code": "L201",
            "name": "never_updated",
            "severity": "warning",
            "message": "nullable property Note.written is never assigned by an update",
            "hint": None,
            "file": str(first),
            "type_name": "Note",
            "property": "written",
            "query_names": ["a"],
        }
    ]


def test_a_broken_schema_is_reported_first(write):
    schema = write("bad.pg", "node A { x: I32? @key }")
    ran = omnigraph("lint", "--schema", schema, "--query", QUERIES)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error[S203]: key property A.x cannot be nullable\n")


def test_a_broken_schema_is_reported_as_json(write):
    schema = write("bad.pg", "node A { x: I32? @key }")
    ran = omnigraph("lint", "--schema", schema, "--query", QUERIES, "--json")
    reported = json.loads(ran.out)
    assert ran.code == 1
    assert (reported["status"], reported["error"]["code"]) == ("error", "S203")
    assert reported["error"]["details"]["diagnostics"][0]["span"]["column"] == 10


@pytest.mark.parametrize(
    ("arguments", "code", "fragment"),
    [
        (["--query", "nowhere.gq"], 1, "error[file_not_found]: cannot read nowhere.gq"),
        ([], 2, "no query files given: pass --query with a file or folder"),
        (["--query", "docs/adr"], 1, "error[file_not_found]: no *.gq file below docs/adr"),
        (["--quary", "x"], 2, "No such option"),
    ],
)
def test_wrong_usage_is_explained(arguments, code, fragment):
    ran = lint(*arguments)
    assert ran.code == code
    assert fragment in ran.err
    assert "Traceback" not in ran.err


def test_bytes_that_are_no_text_are_a_finding_with_their_place(tmp_path):
    path = tmp_path / "latin.gq"
    path.write_bytes("// ok\n// größe".encode("latin-1"))
    ran = lint("--query", path)
    assert ran.code == 1
    assert "error[Q001]: byte 0xf6 is not valid UTF-8" in ran.out
    assert f"{path}:2:6" in ran.out


def test_colours_appear_on_a_terminal_only(write):
    path = write("bad.gq", "query q() { match { $s: Shp } return { $s } }")
    arguments = ("lint", "--schema", SCHEMA, "--query", path)
    assert "\x1b[31m\x1b[1mERROR" in omnigraph_on_terminal(*arguments)
    assert "\x1b" not in omnigraph(*arguments).out
