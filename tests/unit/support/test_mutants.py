"""Mutants: the same sample each time, of modules and tests that exist, stopped by CPU time."""

import ast

import pytest

from scripts import mutants


def test_modules_and_covering_tests_exist():
    paths = [
        *(
            f"{mutants.PACKAGE}/{m}"
            for subject in mutants.SUBJECTS.values()
            for m in subject.modules
        ),
        *(test for subject in mutants.SUBJECTS.values() for test in subject.tests),
    ]
    assert [path for path in paths if not (mutants.ROOT / path).exists()] == []


def run(folder, body, limit):
    folder.mkdir()
    test = folder / "test_it.py"
    test.write_text(f"def test_it():\n    {body}\n")
    return mutants.run_tests(folder, [str(test)], limit)


def test_tests_end_by_their_result_or_by_their_cpu_time(tmp_path):
    result, seconds, failed = run(tmp_path / "fails", "assert 1 + 1 == 3", limit=60)
    assert (result, failed.endswith("test_it.py::test_it")) == ("failed", True)
    assert 0 < seconds < 60
    result, seconds, failed = run(tmp_path / "computes", "while True: pass", limit=2)
    assert (result, failed) == ("timeout", "")
    assert 1 < seconds < 7


def test_tests_that_only_wait_are_killed_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "WALL_SECONDS", 0.5)
    result, seconds, _ = run(tmp_path / "waits", "import threading; threading.Event().wait()", 2)
    assert result == "timeout"
    assert seconds < 2


@pytest.mark.parametrize("subject", mutants.SUBJECTS)
def test_sample_is_the_same_each_time_and_changes_the_source(subject):
    sample = mutants.sample(subject, 10, seed=15)
    assert sample == mutants.sample(subject, 10, seed=15)
    assert len(set(sample)) == 10
    assert [mutant for mutant in sample if mutant.before == mutant.after] == []


@pytest.mark.parametrize(
    ("text", "kind", "before", "after"),
    [
        ("x = a < b", "comparison", "a < b", "a <= b"),
        ("x = a is None", "comparison", "a is None", "a is not None"),
        ("x = a and b", "and/or", "a and b", "a or b"),
        ("x = not a", "negation", "not a", "not not a"),
        ("if a: b", "negation", "a", "not a"),
        ("x = [a for a in b if a]", "negation", "a", "not a"),
        ("x = a - b", "arithmetic", "a - b", "a + b"),
        ("x = True", "constant", "True", "False"),
        ("x = 7", "constant", "7", "8"),
        ("x = 'word'", "constant", "'word'", "'word_'"),
        ("raise a", "removed", "raise a", "pass"),
        ("a.b = c", "removed", "a.b = c", "pass"),
    ],
)
def test_change(text, kind, before, after):
    found = [
        (change.kind, *mutants.mutate(text, number)[1:])
        for number, change in enumerate(mutants.changes(ast.parse(text)))
    ]
    assert (kind, before, after) in found


def test_text_for_people_and_annotations_are_left_alone():
    text = '"""Docstring."""\nx: "int"\ny = f"{a} word"\nz = "a sentence"\nimport b\n'
    assert mutants.changes(ast.parse(text)) == []


def test_a_mutant_that_is_not_killed_any_more_is_reported():
    mutant = {"module": "m", "kind": "k", "before": "a", "after": "b", "number": 1, "line": 1}
    before = {"source": {"m": "1"}, "outcomes": [{"mutant": mutant, "result": "killed"}]}
    moved = {**mutant, "line": 9}
    after = {"source": {"m": "1"}, "outcomes": [{"mutant": moved, "result": "survived"}]}
    assert list(mutants.lost(before, after)) == ["m k: a -> b was killed and survives now"]
    assert list(mutants.lost(before, before)) == []
    assert len(list(mutants.lost(before, {**before, "source": {"m": "2"}}))) == 1
