"""Which `@check` patterns are legal."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.types import pattern_problem


@pytest.mark.parametrize(
    "pattern", ["", "^[A-Z]{3}$", r"\d+", "(?i)abc", "(?P<name>x)", r"\p{Greek}", "é|日本", "a\nb"]
)
def test_a_pattern_the_validator_can_run_has_no_problem(pattern):
    assert pattern_problem(pattern) is None
    assert pc.match_substring_regex(pa.array([None], pa.string()), pattern).to_pylist() == [None]


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "missing ): ("),
        ("[a", "missing ]: [a"),
        ("*", "no argument for repetition operator: *"),
        ("a{2,1}", "invalid repetition size: {2,1}"),
        (r"\q", r"invalid escape sequence: \q"),
        ("(?=x)", "invalid perl operator: (?="),
        (r"(a)\1", r"invalid escape sequence: \1"),
    ],
)
def test_a_pattern_the_validator_cannot_run_is_explained(pattern, problem):
    assert pattern_problem(pattern) == problem
