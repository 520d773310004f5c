"""`omnigraph fmt`, driven from outside."""

import json

import pytest

from tests.support.program import omnigraph

UGLY = "node A{x:I32 // one\n}\nedge   E:A->A"
TIDY = "node A {\n  x: I32 // one\n}\n\nedge E: A -> A\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "sub" / "ugly.pg").write_text(UGLY)
    (tmp_path / ".hidden" / "ugly.pg").write_text(UGLY)
    (tmp_path / "tidy.pg").write_text(TIDY)
    (tmp_path / "q.gq").write_text("query q(){match{$a:A}return{$a}}")
    (tmp_path / "notes.txt").write_text("leave me")
    return tmp_path


def test_files_are_rewritten_in_place(folder):
    ran = omnigraph("fmt", ".", cwd=folder)
    assert (ran.code, ran.out) == (0, "formatted q.gq\nformatted sub/ugly.pg\n")
    assert ran.err == "3 files checked, 2 changed\n"
    assert (folder / "sub" / "ugly.pg").read_text() == TIDY
    assert (folder / "q.gq").read_text() == (
        "query q() {\n  match {\n    $a: A\n  }\n  return { $a }\n}\n"
    )
    assert (folder / ".hidden" / "ugly.pg").read_text() == UGLY


def test_a_second_run_changes_nothing(folder):
    omnigraph("fmt", ".", cwd=folder)
    before = (folder / "q.gq").stat().st_mtime_ns
    ran = omnigraph("fmt", ".", cwd=folder)
    assert (ran.code, ran.out, ran.err) == (0, "", "3 files checked, 0 changed\n")
    assert (folder / "q.gq").stat().st_mtime_ns == before


def test_check_reports_and_writes_nothing(folder):
    ran = omnigraph("fmt", "--check", "sub", "tidy.pg", cwd=folder)
    assert (ran.code, ran.out) == (1, "would format sub/ugly.pg\n")
    assert (folder / "sub" / "ugly.pg").read_text() == UGLY


def test_check_of_tidy_files_succeeds(folder):
    assert omnigraph("fmt", "--check", "tidy.pg", cwd=folder).code == 0


def test_a_file_that_cannot_be_read_is_left_alone_and_the_others_are_formatted(folder):
    (folder / "broken.pg").write_text("node A {")
    ran = omnigraph("fmt", ".", cwd=folder)
    assert ran.code == 1
    assert "error[S000]: the body of `A` is not closed" in ran.err
    assert (folder / "broken.pg").read_text() == "node A {"
    assert (folder / "sub" / "ugly.pg").read_text() == TIDY


def test_mode_of_the_file_is_kept(folder):
    path = folder / "sub" / "ugly.pg"
    path.chmod(0o640)
    omnigraph("fmt", path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_json_says_what_happened(folder):
    (folder / "broken.pg").write_text("node A {")
    ran = omnigraph("fmt", "--check", "--json", ".", cwd=folder)
    facts = json.loads(ran.out)
    assert (facts["checked"], facts["changed"], facts["written"]) == (
        4,
        ["q.gq", "sub/ugly.pg"],
        False,
    )
    assert [d["code"] for d in facts["diagnostics"]] == ["S000"]


def test_windows_line_ends_and_byte_order_mark_become_plain(tmp_path):
    path = tmp_path / "a.pg"
    path.write_bytes(b"\xef\xbb\xbfnode A {\r\n  x: I32\r\n}\r\n")
    assert omnigraph("fmt", path).code == 0
    assert path.read_bytes() == b"node A {\n  x: I32\n}\n"
