"""Answers are cut by number and by bytes, and say how to go on."""

import pytest

from omnigraph.errors import OmniError
from omnigraph.mcp.pagination import (
    MAX_RESULT_BYTES,
    ListPage,
    PageRequest,
    encode_result,
    slice_page,
    with_page,
)

HALF = "x" * (MAX_RESULT_BYTES // 2)


@pytest.mark.parametrize(
    ("items", "page", "part"),
    [
        ([], PageRequest(), ListPage([])),
        ([1, 2, 3], PageRequest(), ListPage([1, 2, 3])),
        ([1, 2, 3], PageRequest(0, 3), ListPage([1, 2, 3])),
        ([1, 2, 3], PageRequest(0, 2), ListPage([1, 2], 2)),
        ([1, 2, 3], PageRequest(2, 2), ListPage([3])),
        ([1, 2, 3], PageRequest(9, 2), ListPage([])),
        ([HALF, HALF, 1], PageRequest(), ListPage([HALF], 1)),
        ([HALF * 3, 1], PageRequest(), ListPage([HALF * 3], 1)),
    ],
)
def test_a_part_ends_where_it_is_long_enough(items, page, part):
    assert slice_page(iter(items), page) == part


def test_what_follows_is_told_and_otherwise_nothing():
    assert with_page({"a": 1, "list": [1, 2]}, "list", PageRequest()) == {"a": 1, "list": [1, 2]}
    cut = with_page({"a": 1, "list": [1, 2]}, "list", PageRequest(0, 1), "_skip", " or not")
    hint = "`list` goes on: call again with _skip=1 or not"
    assert cut == {"a": 1, "list": [1], "more": {"next_skip": 1, "hint": hint}}


def test_what_is_too_large_in_one_piece_is_refused():
    assert encode_result({"a": HALF}) == f'{{"a":"{HALF}"}}'
    with pytest.raises(OmniError) as raised:
        encode_result({"a": HALF * 5})
    assert raised.value.code == "answer_too_large"
