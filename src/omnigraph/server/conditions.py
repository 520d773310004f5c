"""This module reads the header by which a mutation says at which commit it expects a branch."""

from __future__ import annotations

from starlette.requests import Request

from omnigraph.errors import InvalidInput

IF_GRAPH_COMMIT = "Omnigraph-If-Graph-Commit"


def expected_commit(request: Request) -> str:
    """Return the commit a conditional mutation expects; raise when it is not said clearly."""
    given = request.headers.getlist(IF_GRAPH_COMMIT)
    if len(given) != 1:
        raise _invalid(f"send the header {IF_GRAPH_COMMIT} exactly once, with a commit id")
    text = given[0].strip()
    quoted = text.startswith('"') or text.endswith('"')
    if not text or quoted or "*" in text or "," in text or text.startswith("W/"):
        raise _invalid(f"{IF_GRAPH_COMMIT} is one commit id: no quotes, no list, no `*`, no `W/`")
    return text


def refuse_condition(request: Request, path: str) -> None:
    """Raise when the header is sent where it would not be looked at."""
    if IF_GRAPH_COMMIT in request.headers:
        raise _invalid(f"{IF_GRAPH_COMMIT} has no meaning here: send it to {path}")


def _invalid(message: str) -> InvalidInput:
    return InvalidInput(message, code="condition_invalid")
