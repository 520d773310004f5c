"""The sample of mutants: the same each time, of modules and tests that exist."""

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
