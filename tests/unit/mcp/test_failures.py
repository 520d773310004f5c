"""An agent reads what happened and what to do, and nothing of what is inside."""

import pytest

from omnigraph.errors import Category, InvalidInput, OmniError
from omnigraph.mcp.errors import MAX_LIST_ITEMS, describe_failure


@pytest.mark.parametrize("category", list(Category))
def test_every_category_has_an_advice(category):
    reported = describe_failure(OmniError("it broke", code="some_code", category=category))
    assert (reported["code"], reported["category"]) == ("some_code", str(category))
    assert reported["next"].endswith(".")


def test_long_lists_among_the_facts_are_cut():
    reported = describe_failure(
        InvalidInput("many", code="many", problems=list(range(MAX_LIST_ITEMS + 5)))
    )
    assert reported["details"]["problems"] == [*range(MAX_LIST_ITEMS), "and 5 more"]


def test_what_is_not_expected_is_not_shown():
    reported = describe_failure(ValueError("/secret/path"))
    assert (reported["code"], reported["category"]) == ("internal", "internal")
    assert "secret" not in str(reported)
