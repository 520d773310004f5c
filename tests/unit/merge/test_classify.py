"""Every combination of an entity being absent, unchanged or changed on three sides."""

from itertools import product

import numpy as np
import pytest

from omnigraph.merge.conflict_rules import MergeVerdict, ThreeWayComparison, classify_rows

VALUES = (None, "A", "B", "C")


def expected(base, source, target):
    """Say what becomes of an entity, case by case."""
    if source == target:
        return MergeVerdict.KEEP_TARGET
    if source == base:
        return MergeVerdict.KEEP_TARGET
    if target == base:
        return MergeVerdict.TAKE_SOURCE
    if base is None:
        return MergeVerdict.DIVERGENT_INSERT
    if source is None or target is None:
        return MergeVerdict.DELETE_VS_UPDATE
    return MergeVerdict.DIVERGENT_UPDATE


def sides(*cases):
    def column(test):
        return np.array([test(*case) for case in cases], np.bool_)

    return ThreeWayComparison(
        in_base=column(lambda b, s, t: b is not None),
        in_source=column(lambda b, s, t: s is not None),
        in_target=column(lambda b, s, t: t is not None),
        source_is_base=column(lambda b, s, t: s == b),
        target_is_base=column(lambda b, s, t: t == b),
        source_is_target=column(lambda b, s, t: s == t),
    )


@pytest.mark.parametrize(("base", "source", "target"), list(product(VALUES, repeat=3)))
def test_one_entity(base, source, target):
    assert classify_rows(sides((base, source, target))).tolist() == [expected(base, source, target)]


def test_all_at_once():
    cases = list(product(VALUES, repeat=3))
    assert classify_rows(sides(*cases)).tolist() == [expected(*case) for case in cases]


def test_every_verdict_comes_up():
    assert {expected(*case) for case in product(VALUES, repeat=3)} == set(MergeVerdict)
