"""Which tests `make test` keeps in one process, and which begin first."""

import re

import pytest

from tests.support.distribution import APART, ELSEWHERE, SPARK, rank, scope_of
from tests.support.program import ROOT


@pytest.mark.parametrize(
    ("nodeid", "scope"),
    [
        ("tests/pipeline/test_streams.py::test_a", "tests/pipeline"),
        ("tests/pipeline/test_writing.py::test_a[x::y/z]", "tests/pipeline"),
        ("tests/pipeline/test_clusters.py::test_a", "tests/pipeline/test_clusters.py"),
        ("tests/substrate/test_spark_source.py::test_a", "tests/pipeline"),
        ("tests/unit/pipeline/test_spec.py::test_a[b::c]", "tests/unit/pipeline/test_spec.py"),
    ],
)
def test_tests_on_the_shared_session_stay_together(nodeid, scope):
    assert scope_of(nodeid) == scope


def test_modules_that_the_groups_name_exist():
    assert [file for file in (*APART, *ELSEWHERE) if not (ROOT / file).exists()] == []


def test_modules_that_use_the_session_are_in_its_group():
    uses = re.compile(
        r"\b(spark|quick|default_settings)\b[,)]|usefixtures\(\"(spark|quick|default)"
    )
    names = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if any(
            uses.search(line)
            for line in path.read_text(encoding="utf-8").splitlines()
            if line.startswith(("def test_", "pytestmark"))
        )
    ]
    assert len(names) > 20
    assert [name for name in names if scope_of(f"{name}::test") != SPARK] == []


def test_long_modules_begin_first():
    files = [
        "tests/unit/query/test_a.py",
        "tests/server/test_a.py",
        "tests/cases/test_a.py",
        "tests/pipeline/test_clusters.py",
        "tests/pipeline/test_streams.py",
    ]
    assert sorted(files, key=lambda file: rank(f"{file}::test")) == [
        "tests/pipeline/test_streams.py",
        "tests/pipeline/test_clusters.py",
        "tests/server/test_a.py",
        "tests/unit/query/test_a.py",
        "tests/cases/test_a.py",
    ]
