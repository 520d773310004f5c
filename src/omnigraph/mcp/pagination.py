"""Cut answers to a size for agents, with a hint how to read the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from omnigraph.errors import Category, OmniError
from omnigraph.service.operations.tool_arguments import DEFAULT_ITEMS

MAX_RESULT_BYTES = 100_000
"""Bytes of JSON an answer may have; some 25,000 tokens."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which part of a list is wanted."""

    skip: int = 0
    limit: int = DEFAULT_ITEMS


@dataclass(frozen=True, slots=True)
class ListPage:
    """Items of a list, and how many to leave out to see those that follow, if any do."""

    items: list[Any]
    next_skip: int | None = None


def slice_page(items: Iterable[Any], page: PageRequest) -> ListPage:
    """Return the part of a list that is wanted, as far as it fits an answer."""
    taken: list[Any] = []
    size = 0
    for item in islice(items, page.skip, None):
        size += len(msgspec.json.encode(item)) + 1
        if len(taken) == page.limit or (taken and size > MAX_RESULT_BYTES):
            return ListPage(taken, page.skip + len(taken))
        taken.append(item)
    return ListPage(taken)


def with_page(
    facts: dict[str, Any], member: str, page: PageRequest, skip: str = "skip", hint: str = ""
) -> dict[str, Any]:
    """Return an answer with a part of its list; `more` has how to read the rest.

    `skip` is what the argument is called by which one gets on.
    """
    part = slice_page(facts[member], page)
    cut = {**facts, member: part.items}
    if part.next_skip is None:
        return cut
    text = f"`{member}` goes on: call again with {skip}={part.next_skip}{hint}"
    return {**cut, "more": {"next_skip": part.next_skip, "hint": text}}


def encode_result(facts: object) -> str:
    """Return an answer as JSON; raise when it is too large in spite of everything."""
    text = msgspec.json.encode(facts)
    # What is around a list, and the one item that may be larger than all, is not counted above.
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
