"""What counts as the same answer."""

import pytest

from tests.support.agreement import disagreement, same_value
from tests.support.reference import Answer, Inexact


def answer(values, *, keys=None, limit=None, offset=0):
    return Answer(
        columns=("x",),
        complete=[{"x": value} for value in values],
        keys=[() for _ in values] if keys is None else [(key,) for key in keys],
        ordered=keys is not None,
        limit=limit,
        offset=offset,
    )


def agrees(expected, values):
    return disagreement(expected, ["x"], [{"x": value} for value in values]) is None


def test_without_an_order_rows_may_stand_anywhere():
    assert agrees(answer("aab"), "aba")
    assert not agrees(answer("aab"), "abb")
    assert not agrees(answer("aab"), "aa")
    assert not agrees(answer(""), "a")


def test_with_an_order_only_equal_keys_may_change_places():
    assert agrees(answer("abc", keys=[1, 1, 2]), "bac")
    assert not agrees(answer("abc", keys=[1, 1, 2]), "acb")


def test_a_cut_may_keep_any_of_the_rows_it_goes_through():
    cut = answer("abcd", keys=[1, 2, 2, 3], limit=2)
    assert agrees(cut, "ab")
    assert agrees(cut, "ac")
    assert not agrees(cut, "bc")
    assert not agrees(cut, "ad")
    assert agrees(answer("abcd", keys=[1, 2, 2, 3], limit=2, offset=2), "cd")
    assert agrees(answer("abcd", keys=[1, 2, 2, 3], limit=2, offset=2), "bd")
    assert not agrees(answer("abcd", keys=[1, 2, 2, 3], limit=2, offset=2), "dc")
    assert agrees(answer("abc", limit=2), "ca")
    assert not agrees(answer("abc", limit=2), "cc")


def test_columns_have_their_names_and_order():
    reported = disagreement(answer("a"), ["y"], [{"y": "a"}])
    assert reported == "columns ['y'], not ['x']"


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (1, True), (1, "1"), (None, 0), ([], None)])
def test_values_are_compared_by_their_json_form(one, other):
    assert same_value(one, one)
    assert not same_value(one, other)


def test_both_zeros_are_equal():
    assert same_value(0.0, -0.0)
    assert same_value([-0.0], [0.0])
    assert not same_value(-0.05, 0.05)


def test_a_sum_or_score_may_differ_by_its_slack():
    assert same_value(Inexact(1.0, 1e-6), 1.0000001)
    assert not same_value(Inexact(1.0, 1e-6), 1.001)
    assert not same_value(Inexact(1.0, 1e-6), 1)
    assert not same_value(Inexact(1.0, 1e-6), None)


def test_rows_may_change_places_when_their_scores_are_close():
    close = [Inexact(1.0, 1e-6), Inexact(1.0000001, 1e-6), Inexact(2.0, 1e-6)]
    assert agrees(answer("abc", keys=close), "bac")
    assert not agrees(answer("abc", keys=close), "acb")


def test_equal_scores_are_ties_but_equal_sums_may_differ():
    scores = [Inexact(1.0, 1e-6)] * 2
    keys = [(score, place) for place, score in enumerate(scores)]
    exact = Answer(columns=("x",), complete=[{"x": "a"}, {"x": "b"}], keys=keys, ordered=True)
    assert not agrees(exact, "ba")
    noisy = [(Inexact(1.0, 1e-6, noisy=True), place) for place in range(2)]
    sums = Answer(columns=("x",), complete=[{"x": "a"}, {"x": "b"}], keys=noisy, ordered=True)
    assert agrees(sums, "ba")
