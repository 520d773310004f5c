"""Answers are cut by number and by bytes, and say how to go on."""

import pytest

from omnigraph.errors import OmniError
from omnigraph.mcp.pagination import (
    MAX_RESULT_BYTES,
    ListPage,
    encode_result,
    slice_page,
    with_page,
)
from omnigraph.service.operations.tool_arguments import PagedArguments

HALF = "x" * (MAX_RESULT_BYTES // 2)


@pytest.mark.parametrize(
    ("items", "page", "part"),
    [
        ([], PagedArguments(), ListPage([])),
        ([1, 2, 3], PagedArguments(), ListPage([1, 2, 3])),
        ([1, 2, 3], PagedArguments(skip=0, limit=3), ListPage([1, 2, 3])),
        ([1, 2, 3], PagedArguments(skip=0, limit=2), ListPage([1, 2], 2)),
        ([1, 2, 3], PagedArguments(skip=2, limit=2), ListPage([3])),
        ([1, 2, 3], PagedArguments(skip=9, limit=2), ListPage([])),
        ([HALF, HALF, 1], PagedArguments(), ListPage([HALF], 1)),
        ([HALF * 3, 1], PagedArguments(), ListPage([HALF * 3], 1)),
    ],
)
def test_a_part_ends_where_it_is_long_enough(items, page, part):
    assert slice_page(iter(items), page) == part


def test_what_follows_is_reported_and_otherwise_nothing():
    assert with_page({"a": 1, "list": [1, 2]}, "list", PagedArguments()) == {"a": 1, "list": [1, 2]}
    cut = with_page(
        {"a": 1, "list": [1, 2]}, "list", PagedArguments(skip=0, limit=1), "_skip", " or not"
    )
    hint = "`list` goes on: call again with _skip=1 or not"
    assert cut == {"a": 1, "list": [1], "more": {"next_skip": 1, "hint": hint}}


def test_what_is_too_large_in_one_piece_is_refused():
    assert encode_result({"a": HALF}) == f'{{"a":"{HALF}"}}'
    with pytest.raises(OmniError) as raised:
        encode_result({"a": HALF * 5})
    assert raised.value.code == "answer_too_large"
