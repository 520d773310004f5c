"""Nothing the registries know is missing from the case files."""

import ast
import inspect
import json
import re
import sys
from collections.abc import Iterator
from typing import get_args

import pytest

from omnigraph.catalog import migration_planner
from omnigraph.catalog.migration_steps import MigrationStep, UnsupportedChange
from omnigraph.lang import Code
from omnigraph.plan import FUNCTIONS
from tests.support.case_runs import run
from tests.support.cases import ROOT, Case, parse_cases

CASES = [
    case
    for path in sorted(ROOT.glob("*/*.case"))
    for case in parse_cases(path.read_text(encoding="utf-8")).cases
]
EXAMPLES = range(1, 53)

NOT_BY_TEXT = {"_rename_step", "plan_migration"}
"""Functions whose refusal no two texts lead to; the unit tests build schemas that do."""

BY_SPARK = {Code.PIPELINE_SOURCE_UNREADABLE, Code.PIPELINE_EXPRESSION}
"""Codes that only a running Spark can tell; the tests of mapping do."""


def bodies(word: str) -> Iterator[str]:
    return (section.body for case in CASES for section in case.all(word))


STEPS = [
    json.loads(line) for body in bodies("steps") if body != "none" for line in body.split("\n")
]
EXPECTED = re.findall(r"^(?:error|warning|info) (\S+) \S+(.*)$", "\n".join(bodies("expect")), re.M)
PLANS = "\n".join(bodies("plan"))


def test_every_code_has_a_case():
    reported = {code for code, _ in EXPECTED} | {step.get("code") for step in STEPS}
    assert set(Code) - reported == BY_SPARK


def test_every_kind_of_step_has_a_case():
    assert {step["kind"] for step in STEPS} == {step.kind for step in get_args(MigrationStep)}


def test_every_example_of_the_specification_has_a_case():
    numbers = [re.match(r"E(\d+) ", case.title) for case in CASES]
    assert {int(number[1]) for number in numbers if number} == set(EXAMPLES)


def test_a_code_at_the_start_of_a_title_is_what_comes_out():
    titled = [(case, case.title.split(" ")[0]) for case in CASES]
    about = [(case, code) for case, code in titled if code in set(Code)]
    assert [case.title for case, code in about if not gives(case, code)] == []


def gives(case: Case, code: str) -> bool:
    text = "\n".join(section.body for word in ("expect", "steps") for section in case.all(word))
    return re.search(rf'^\w+ {code} |"code": "{code}"', text, re.M) is not None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_accepted_in_one_case_and_refused_in_another(name):
    assert f"{name}(" in PLANS
    assert any(f"{name}()" in message for _, message in EXPECTED)


def test_every_refusal_of_the_planner_has_a_case(monkeypatch):
    modules = (migration_planner,)
    places = {place: owner for module in modules for place, owner in refusals(module)}
    reached = set()

    def refuse(*args, **kwargs):
        caller = sys._getframe(1)
        reached.add((caller.f_globals["__name__"], caller.f_lineno))
        return UnsupportedChange(*args, **kwargs)

    for module in modules:
        monkeypatch.setattr(module, "UnsupportedChange", refuse)
    for case in filter(is_migration, CASES):
        run(case)
    assert {owner for place, owner in places.items() if place not in reached} == NOT_BY_TEXT


def is_migration(case: Case) -> bool:
    return case.one("from") is not None


def refusals(module) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield the lines of a module that refuse a change, each with the function it stands in."""
    for function in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if (
                    isinstance(node, ast.Call)
                    and getattr(node.func, "id", "") == "UnsupportedChange"
                ):
                    yield (module.__name__, node.lineno), function.name
