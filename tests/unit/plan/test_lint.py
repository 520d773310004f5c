"""Linting query files: results per query, findings per file, and their wire form."""

import pytest

from omnigraph.lang import Code, report_for_text
from omnigraph.plan import lint_queries
from tests.support.plans import catalog

READ = "query ships() { match { $s: Ship } return { $s.label } }"
BROKEN = "query broken() { match { $s: Shp } return { $s.label } }"
HARDCODED = 'query note() { insert Note { text: "t" } }'


def lint(*texts, schema="harbour"):
    files = [
        report_for_text(text, f"file{number}.gq", Code.QUERY_UNREADABLE)
        for number, text in enumerate(texts, 1)
    ]
    return lint_queries(files, catalog(schema))


def wire(*texts, schema="harbour"):
    return [file.to_json() for file in lint(*texts, schema=schema)]


def brief(facts, *keys):
    return {key: facts.get(key) for key in keys}


def test_a_good_file_is_ok():
    [file] = wire(READ)
    assert file == {
        "status": "ok",
        "query_path": "file1.gq",
        "queries_processed": 1,
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "results": [
            {
                "name": "ships",
                "kind": "read",
                "status": "ok",
                "operation": {
                    "result": [{"name": "s.label", "kind": "string", "nullable": False}],
                    "reads": [{"kind": "node", "type_name": "Ship"}],
                    "writes": [],
                },
            }
        ],
        "findings": [],
    }


def test_an_empty_file_is_ok():
    [file] = wire("")
    assert brief(file, "status", "queries_processed", "results") == {
        "status": "ok",
        "queries_processed": 0,
        "results": [],
    }


def test_a_mutation_without_parameters_gets_a_warning():
    [file] = wire(HARDCODED)
    assert brief(file, "status", "errors", "warnings") == {
        "status": "ok",
        "errors": 0,
        "warnings": 1,
    }
    [result] = file["results"]
    assert brief(result, "name", "kind", "status", "warnings", "error") == {
        "name": "note",
        "kind": "mutation",
        "status": "ok",
        "warnings": ["mutation declares no params; hardcoded mutations are easy to miss"],
        "error": None,
    }
    assert result["operation"]["writes"] == [{"kind": "node", "type_name": "Note"}]


def test_a_query_with_mistakes_has_an_error_and_no_operation():
    [file] = wire(f"{BROKEN}\n{READ}")
    assert brief(file, "status", "queries_processed", "errors") == {
        "status": "error",
        "queries_processed": 2,
        "errors": 1,
    }
    broken, fine = file["results"]
    assert broken == {
        "name": "broken",
        "kind": "read",
        "status": "error",
        "error": "T1: unknown node type `Shp`",
        "diagnostics": [
            {
                "code": "T1",
                "name": "unknown_node_type",
                "severity": "error",
                "message": "unknown node type `Shp`",
                "hint": "did you mean `Ship`?",
                "file": "file1.gq",
                "span": {
                    "start": 29,
                    "end": 32,
                    "line": 1,
                    "column": 30,
                    "end_line": 1,
                    "end_column": 33,
                },
            }
        ],
    }
    assert fine["status"] == "ok"


def test_a_file_that_is_no_text_has_findings_and_no_results():
    [file] = wire(f"{READ}\nquery (")
    assert brief(file, "status", "queries_processed", "errors", "results") == {
        "status": "error",
        "queries_processed": 0,
        "errors": 1,
        "results": [],
    }
    [finding] = file["findings"]
    assert brief(finding, "severity", "code", "message") == {
        "severity": "error",
        "code": "Q000",
        "message": "expected a name after `query`, found `(`",
    }


def test_the_second_query_of_a_name_is_an_error():
    [file] = lint(f"{READ}\n{READ}")
    assert [(result.name, [str(d) for d in result.errors]) for result in file.results] == [
        ("ships", []),
        ("ships", ["Q003: another query of this file is called `ships`"]),
    ]
    assert file.results[1].operation is None
    assert not file.ok


def test_a_query_of_the_same_name_in_another_file_is_a_warning_there():
    first, second, third = wire(READ, READ, HARDCODED)
    assert (first["findings"], third["findings"]) == ([], [])
    [finding] = second["findings"]
    assert brief(finding, "severity", "code", "message", "query_names", "type_name") == {
        "severity": "warning",
        "code": "L102",
        "message": "query `ships` is also declared in file1.gq",
        "query_names": ["ships"],
        "type_name": None,
    }


def update(name, type_name, values, where):
    return (
        f"query {name}($t: String) {{ update {type_name} set {{ {values} }} where {where} = $t }}"
    )


def never_updated(*texts, schema="harbour"):
    return [
        brief(finding, "type_name", "property", "query_names")
        for file in wire(*texts, schema=schema)
        for finding in file["findings"]
        if finding["code"] == "L201"
    ]


def test_a_nullable_property_no_update_assigns_is_reported_with_the_updates_there_are():
    [file] = wire(update("b", "Note", "text: $t", "text") + update("a", "Note", "text: $t", "id"))
    [finding] = file["findings"]
    assert finding == {
        "code": "L201",
        "name": "never_updated",
        "severity": "warning",
        "message": "nullable property Note.score is never assigned by an update",
        "hint": None,
        "file": "file1.gq",
        "type_name": "Note",
        "property": "score",
        "query_names": ["a", "b"],
    }
    assert (file["status"], file["warnings"]) == ("ok", 1)


def test_properties_never_updated_are_sorted_by_type_and_name():
    found = never_updated(
        update("a", "Ship", "label: $t", "label") + update("b", "Port", "city: $t", "code")
    )
    assert [(facts["type_name"], facts["property"]) for facts in found] == [
        ("Port", "depth"),
        ("Port", "opened"),
        ("Ship", "built"),
        ("Ship", "draught"),
        ("Ship", "flags"),
    ]


NOBODY_UPDATES = {
    "a type without updates": READ,
    "a type that is only inserted": "query a($t: String) { insert Note { text: $t } }",
    "a type whose only update is refused": update("a", "Note", "txt: $t", "text"),
    "a property assigned by one of two updates": (
        update("a", "Note", "text: $t", "text") + update("b", "Note", "score: 1", "text")
    ),
    "a property assigned by one of two statements": (
        "query a($t: String) { update Note set { text: $t } where text = $t "
        "update Note set { score: 1 } where text = $t }"
    ),
}


@pytest.mark.parametrize("text", NOBODY_UPDATES.values(), ids=NOBODY_UPDATES)
def test_nothing_is_missed_in(text):
    assert never_updated(text) == []


def test_keys_required_properties_and_embed_targets_need_no_update():
    text = update("a", "Doc", "tags: [], marks: [], public: true, stars: 1, views: 1", "slug")
    missed = [facts["property"] for facts in never_updated(text, schema="archive")]
    assert missed == ["added", "body", "cover", "price"]


def test_an_update_in_another_file_counts():
    first = update("a", "Note", "text: $t", "text")
    second = update("b", "Note", "score: 1", "text")
    assert never_updated(first, second) == []


def test_what_no_file_updates_is_reported_after_the_last_one():
    first, last = lint(update("a", "Note", "text: $t", "text"), READ)
    assert first.findings == ()
    assert [(str(f.diagnostic.code), f.query_names) for f in last.findings] == [("L201", ("a",))]


def test_no_files_are_no_results():
    assert lint() == []
