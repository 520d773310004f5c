"""Runs every case file. With UPDATE_CASES=1 outcomes that differ are rewritten, for review."""

import os

import pytest

from tests.support.case_runs import checked
from tests.support.cases import ROOT, Case, CaseError, Section, parse_cases

FILES = sorted(ROOT.glob("*/*.case"))
CASES = [
    pytest.param(case, id=f"{path.parent.name}/{path.stem}: {case.title}")
    for path in FILES
    for case in parse_cases(path.read_text(encoding="utf-8")).cases
]


@pytest.mark.parametrize("case", CASES)
def test_case_comes_out_as_it_says(case):
    assert str(case) == str(checked(case))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_case_file_is_written_in_the_one_way(path):
    text = path.read_text(encoding="utf-8")
    file = parse_cases(text)
    if os.environ.get("UPDATE_CASES"):
        file = type(file)(file.comments, tuple(map(checked, file.cases)))
        path.write_text(str(file), encoding="utf-8")
    assert text == str(file)


def test_every_folder_of_cases_holds_some():
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert {path.parent.name for path in FILES} == folders - {"schemas", "data"}


FINISHED = "=== title\n--- schema\nnode A { }\n--- expect\nok\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the file holds no case"),
        ("# only a comment\n", "the file holds no case"),
        (f"stray words\n{FINISHED}", "only `# comments` stand above"),
        (f"{FINISHED}\n{FINISHED}", "two cases are called `title`"),
        ("=== \n--- schema\n--- expect\nok\n", "is not followed by `--- section`"),
        ("=== title\nstray words\n--- schema\n", "is not followed by `--- section`"),
        ("=== title\n--- schema\nnode A { }\n", "is not finished"),
        ("=== title\n--- query\n--- expect\nok\n", "is not finished"),
        ("=== title\n--- schema\n--- schema\n--- expect\nok\n", "has a section twice"),
        ("=== title\n--- shema\n--- expect\nok\n", "has unknown sections ['shema']"),
    ],
)
def test_a_case_file_that_is_not_one_is_refused(text, complaint):
    with pytest.raises(CaseError) as refused:
        parse_cases(text)
    assert complaint in str(refused.value)


READ = "query q() { match { $s: Ship } return { $s.lable } }"
Reported = "error T6 1:44 node type Ship has no property `lable`\n  help: did you mean `label`?"
RIGHT = "query q() { match { $s: Ship } return { $s.label } }"


def case(outcome, body, *given, schema="harbour"):
    return Case("title", (Section("schema", schema, ""), *given, Section(outcome, "", body)))


@pytest.mark.parametrize(
    "body",
    [Reported, "error T6 1:44\n  help: label", "error T6 1:44 no property\n  help: did you mean"],
)
def test_diagnostics_are_expected_by_place_and_parts_of_their_words(body):
    good = case("expect", body, Section("query", "", READ))
    assert checked(good) == good


@pytest.mark.parametrize(
    "body",
    [
        "ok",
        "error T7 1:44",
        "warning T6 1:44",
        "error T6 1:45",
        "error T6 -",
        "error T6 1:44 no such words",
        "error T6 1:44\n  help: no such hint",
        Reported.split("\n")[0],
        "error T6 1:44\nerror T6 1:44",
    ],
)
def test_other_diagnostics_than_expected_are_put_right(body):
    wrong = case("expect", body, Section("query", "", READ))
    assert checked(wrong) == case("expect", Reported, Section("query", "", READ))


@pytest.mark.parametrize(
    ("outcome", "body", "given"),
    [
        ("plan", "Project s.label\n  Scan $s: Ship ", [Section("query", "", RIGHT)]),
        ("operation", '{"result": []}', [Section("query", "", RIGHT)]),
        ("steps", '{"kind": "add_type"}', [Section("from", "harbour", "")]),
        ("id", "8", [Section("row", "Ship", '{"imo": 7}')]),
        ("values", '{"a": 1}', [Section("query", "", RIGHT), Section("params", "", '{"a": 1.0}')]),
    ],
)
def test_any_other_outcome_is_put_right_and_stays_so(outcome, body, given):
    wrong = case(outcome, body, *given)
    right = checked(wrong)
    assert right != wrong
    assert checked(right) == right


@pytest.mark.parametrize("outcome", ["plan", "operation", "values", "steps", "id"])
def test_an_outcome_that_nothing_gives_does_not_agree(outcome):
    [section] = checked(case(outcome, "none")).all(outcome)
    assert section.body.startswith("nothing: ")


def test_diagnostics_that_were_not_expected_are_added():
    found = checked(case("plan", "x", Section("query", "", READ))).one("expect")
    assert found == Section("expect", "", Reported)


@pytest.mark.parametrize("body", ["oops", "error T6", "error T6 1:44 x\n  note: y"])
def test_an_expectation_that_is_none_is_refused(body):
    with pytest.raises(CaseError, match="is no diagnostic"):
        checked(case("expect", body, Section("query", "", READ)))


def test_a_migration_starts_at_a_schema():
    with pytest.raises(CaseError, match="the schema of `--- from` is refused: S000"):
        checked(case("steps", "none", Section("from", "", "node")))
