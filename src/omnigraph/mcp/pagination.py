"""Cut answers to a size for agents, with a hint how to read the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from omnigraph.errors import Category, OmniError
from omnigraph.service.operations.tool_arguments import PagedArguments

MAX_RESULT_BYTES = 100_000
"""Bytes of JSON an answer may have; some 25,000 tokens."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """Items of a list, and the number of items to skip for the next page, if there is one."""

    items: list[Any]
    next_skip: int | None = None


def slice_page(items: Iterable[Any], page: PagedArguments) -> ListPage:
    """Return the requested page of a list, as far as it fits an answer."""
    taken: list[Any] = []
    size = 0
    for item in islice(items, page.skip, None):
        size += len(msgspec.json.encode(item)) + 1
        if len(taken) == page.limit or (taken and size > MAX_RESULT_BYTES):
            return ListPage(taken, page.skip + len(taken))
        taken.append(item)
    return ListPage(taken)


def with_page(
    facts: dict[str, Any], member: str, page: PagedArguments, skip: str = "skip", hint: str = ""
) -> dict[str, Any]:
    """Return an answer with a page of its list; `more` describes how to read the rest.

    `skip` is the name of the argument that selects the next page.
    """
    part = slice_page(facts[member], page)
    cut = {**facts, member: part.items}
    if part.next_skip is None:
        return cut
    text = f"`{member}` goes on: call again with {skip}={part.next_skip}{hint}"
    return {**cut, "more": {"next_skip": part.next_skip, "hint": text}}


def encode_result(facts: object) -> str:
    """Return an answer as JSON; raise if it is too large."""
    text = msgspec.json.encode(facts)
    # Members besides the list, and a single large item, are not counted by `slice_page`.
    if len(text) > 2 * MAX_RESULT_BYTES:
        raise OmniError(
            f"the answer has {len(text):,} bytes, more than an agent can take in",
            code="answer_too_large",
            category=Category.LIMIT,
            details={
                "resource": "answer_bytes",
                "limit": 2 * MAX_RESULT_BYTES,
                "actual": len(text),
            },
        )
    return text.decode()
