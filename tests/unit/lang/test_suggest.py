"""Suggestions of the name that was probably meant."""

import time

import pytest

from omnigraph.lang import did_you_mean
from omnigraph.lang.diagnostics import nearest_name

EDGES = ("WorksAt", "Knows", "CallsAt")


@pytest.mark.parametrize(
    ("wrong", "known", "nearest"),
    [
        ("worksAt", EDGES, "WorksAt"),
        ("WORKSAT", EDGES, "WorksAt"),
        ("wroksAt", EDGES, "WorksAt"),
        ("know", EDGES, "Knows"),
        ("zebra", EDGES, None),
        ("", EDGES, None),
        ("x", (), None),
        ("draught", ("draughty", "dra"), "draughty"),
        ("code", ("Code", "CODE"), "CODE"),
    ],
)
def test_nearest_name_ignores_case_and_refuses_the_far_fetched(wrong, known, nearest):
    assert nearest_name(wrong, known) == nearest


@pytest.mark.parametrize(
    ("known", "hint"),
    [
        (EDGES, "did you mean `Knows`?"),
        (("Aa", "Bb"), "known names: `Aa`, `Bb`"),
        (tuple("ABCDEF"), "known names: `A`, `B`, `C`, `D`, `E`, `F`"),
        (tuple("ABCDEFGH"), "known names: `A`, `B`, `C`, `D`, `E`, `F` and 2 more"),
        ((), None),
    ],
)
def test_hint_names_the_nearest_or_lists_a_few(known, hint):
    assert did_you_mean("knows", known) == hint


def test_hint_writes_names_as_they_are_written_there():
    assert did_you_mean("citys", ["city"], prefix="$x.") == "did you mean `$x.city`?"
    assert did_you_mean("zzz", ["a", "b"], prefix="$") == "known names: `$a`, `$b`"


def test_monstrous_names_cost_nothing():
    before = time.process_time()
    assert nearest_name("a" * 1_000_000, EDGES) is None
    assert nearest_name("knows", [*EDGES, "k" * 1_000_000]) == "Knows"
    assert time.process_time() - before < 2
