"""This module answers what changed; its query strings are taken exactly."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from starlette.responses import Response

from omnigraph.errors import InvalidInput
from omnigraph.server.request import RequestContext
from omnigraph.server.streaming import stream_ndjson
from omnigraph.service import operations, wire

MANY = ("kind", "type", "op")
OF_COMMIT = ("page_token", "limit")
OF_BRANCH = ("branch", "cursor", "start", *OF_COMMIT)


async def commit_changes(asked: RequestContext) -> Response:
    """Tell what a commit changed."""
    visit, commit_id = asked.visit, asked.path("commit_id")
    wanted = _asked(asked, OF_COMMIT)
    return await asked.answer(lambda: operations.commit_changes(visit, commit_id, wanted))


async def poll(asked: RequestContext) -> Response:
    """Tell what changed on a branch."""
    visit, wanted = asked.visit, _asked(asked, OF_BRANCH)
    return await asked.answer(lambda: operations.poll_changes(visit, wanted))


async def baseline(asked: RequestContext) -> Response:
    """Send a whole state."""
    visit = asked.visit
    try:
        request = await asked.json(wire.ChangeBaselineRequest)
    except InvalidInput as error:
        if error.code == "body_invalid":
            raise InvalidInput(error.message, code="baseline_invalid") from error
        raise
    return await stream_ndjson(asked, lambda: operations.baseline(visit, request))


def _asked(asked: RequestContext, single: Sequence[str]) -> wire.ChangesQuery:
    given = asked.request.query_params
    for name in given:
        if name not in (*single, *MANY):
            known = ", ".join((*single, *MANY))
            message = f"unknown parameter `{name[:64]}`; there are {known}"
            raise InvalidInput(message, code="parameter_unknown")
    facts: dict[str, object] = {name: given.getlist(name) for name in MANY}
    facts |= {name: asked.one(name) for name in single}
    return msgspec.convert({**facts, "limit": _limit(asked.one("limit"))}, wire.ChangesQuery)


def _limit(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InvalidInput("`limit` is a positive number", code="limit_invalid")
    return int(text)
