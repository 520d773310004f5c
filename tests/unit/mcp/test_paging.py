"""Answers are cut by number and by bytes, and say how to go on."""

import pytest

from omnigraph.errors import OmniError
from omnigraph.mcp.paging import ANSWER_BYTES, Page, Part, encoded, paged, part_of

HALF = "x" * (ANSWER_BYTES // 2)


@pytest.mark.parametrize(
    ("items", "page", "part"),
    [
        ([], Page(), Part([])),
        ([1, 2, 3], Page(), Part([1, 2, 3])),
        ([1, 2, 3], Page(0, 3), Part([1, 2, 3])),
        ([1, 2, 3], Page(0, 2), Part([1, 2], 2)),
        ([1, 2, 3], Page(2, 2), Part([3])),
        ([1, 2, 3], Page(9, 2), Part([])),
        ([HALF, HALF, 1], Page(), Part([HALF], 1)),
        ([HALF * 3, 1], Page(), Part([HALF * 3], 1)),
    ],
)
def test_a_part_ends_where_it_is_long_enough(items, page, part):
    assert part_of(iter(items), page) == part


def test_what_follows_is_told_and_otherwise_nothing():
    assert paged({"a": 1, "list": [1, 2]}, "list", Page()) == {"a": 1, "list": [1, 2]}
    cut = paged({"a": 1, "list": [1, 2]}, "list", Page(0, 1), "_skip", " or not")
    hint = "`list` goes on: call again with _skip=1 or not"
    assert cut == {"a": 1, "list": [1], "more": {"next_skip": 1, "hint": hint}}


def test_what_is_too_large_in_one_piece_is_refused():
    assert encoded({"a": HALF}) == f'{{"a":"{HALF}"}}'
    with pytest.raises(OmniError) as raised:
        encoded({"a": HALF * 5})
    assert raised.value.code == "answer_too_large"
