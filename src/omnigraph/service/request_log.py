"""What every log line of one request carries: its id, its graph, its client, the commit."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class RequestLog:
    """Fields of one request; the commit is the one that was read, or that a change made."""

    request_id: str
    client_address: str | None = None
    graph_id: str | None = None
    commit_id: str | None = None


current_request: ContextVar[RequestLog | None] = ContextVar("current_request", default=None)
"""The request on whose behalf code runs, also in threads that copy the context."""


def log_commit(commit_id: str) -> None:
    """Note which commit the current request is about."""
    request = current_request.get()
    if request is not None:
        request.commit_id = commit_id


def log_commit_of(answer: object) -> None:
    """Note the commit of a change, if its answer (a body, or its members) has one."""
    commit = _member(answer, "commit")
    commit_id = None if commit is None else _member(commit, "graph_commit_id")
    if isinstance(commit_id, str):
        log_commit(commit_id)


def _member(body: object, name: str) -> object:
    return body.get(name) if isinstance(body, dict) else getattr(body, name, None)
