"""Errors for agents: what went wrong, and what to do next."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any

import msgspec

from omnigraph.errors import Category, OmniError
from omnigraph.service.errors import describe_error

_log = logging.getLogger("omnigraph.mcp")
MAX_LIST_ITEMS = 20
"""Items of each list or object among the facts of an error that are shown."""
MAX_TEXT_CHARS = 2_000
"""Characters of each text of an error that are shown: it may echo an argument of any length."""
MAX_DETAILS_BYTES = 50_000
"""Bytes of JSON the facts of an error may have; more are left out."""
_BY_CATEGORY: Mapping[Category, str] = MappingProxyType(
    {
        Category.INVALID: "Nothing happened. Correct the arguments and call again; "
        "`schema_get` shows types and properties.",
        Category.NOT_FOUND: "Look up what there is: `branches_list`, `commits_list`, `schema_get`.",
        Category.DENIED: "You may not do this here. Try another branch, e.g. by `propose_change`, "
        "or ask an administrator.",
        Category.CONFLICT: "Nothing happened. Read the current state, and decide again.",
        Category.CONTENTION: "Nothing happened, others were faster. Call again.",
        Category.LIMIT: "Ask for less: fewer columns, a `limit`, a filter.",
        Category.UNAVAILABLE: "Call again later.",
        Category.OUTCOME_UNKNOWN: "It may have happened: look with `commits_list` before you call "
        "again.",
        Category.INTERNAL: "Do not repeat the call; report it to the operator of the server.",
    }
)
_BY_CODE: Mapping[str, str] = MappingProxyType(
    {
        "merge_conflict": "Nothing happened. `merge` with dry_run=true shows the conflicts, with "
        "`resolve` it decides them.",
        "proposal_empty": "Nothing happened. Check with `query` that the mutation matches "
        "something.",
        "too_many_requests": "Wait for calls that are under way, then call again.",
    }
)


def describe_failure(error: Exception) -> dict[str, Any]:
    """Return an error for an agent: code, message, what to do next, facts."""
    if not isinstance(error, OmniError):
        _log.error("a tool failed", exc_info=error)
    body = msgspec.to_builtins(describe_error(error).body)
    problem = body.pop("problem")
    message, _ = body.pop("error"), body.pop("code", None)
    category = Category(problem["category"])
    details = {name: fact for name, fact in problem.get("details", {}).items() if name not in body}
    facts = _truncate({**({"details": details} if details else {}), **body})
    if len(msgspec.json.encode(facts)) > MAX_DETAILS_BYTES:
        facts = {"details": f"left out: more than {MAX_DETAILS_BYTES:,} bytes"}
    return {
        "code": problem["code"],
        "category": str(category),
        "message": _truncate(message),
        "next": _BY_CODE.get(problem["code"], _BY_CATEGORY[category]),
        **facts,
    }


def _truncate(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Cut long texts, lists and objects, and report how much was left out."""
    rest = f"and {len(value) - MAX_LIST_ITEMS} more" if isinstance(value, dict | list) else ""
    if isinstance(value, dict):
        members = {
            _truncate(name): _truncate(member)
            for name, member in islice(value.items(), MAX_LIST_ITEMS)
        }
        return {**members, **({"…": rest} if len(value) > MAX_LIST_ITEMS else {})}
    if isinstance(value, list):
        return [
            *(_truncate(item) for item in value[:MAX_LIST_ITEMS]),
            *([rest] if len(value) > MAX_LIST_ITEMS else []),
        ]
    if isinstance(value, str) and len(value) > MAX_TEXT_CHARS:
        return f"{value[:MAX_TEXT_CHARS]}… ({len(value):,} characters)"
    return value
