"""This module decides in which state a server runs, from what it was given."""

from __future__ import annotations

from enum import StrEnum

from omnigraph.errors import InvalidInput


class RuntimeState(StrEnum):
    """Who may do what, in general.

    Open: everybody everything, except what concerns the server itself. Default deny: whoever has a
    token may read. Policy enabled: what policies say; a graph without one is read by all tokens.
    """

    OPEN = "open"
    DEFAULT_DENY = "default_deny"
    POLICY_ENABLED = "policy_enabled"


def classify(*, tokens: bool, policies: bool, unauthenticated: bool) -> RuntimeState:
    """Return the state; refuse to start where nobody said that everything shall be open."""
    if policies and not tokens:
        message = (
            "there is a policy but no token, so nobody could be told from anybody: "
            "set OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
        )
        raise InvalidInput(message, code="tokens_missing")
    if policies:
        return RuntimeState.POLICY_ENABLED
    if tokens:
        return RuntimeState.DEFAULT_DENY
    if unauthenticated:
        return RuntimeState.OPEN
    message = (
        "there are neither tokens nor a policy: set OMNIGRAPH_SERVER_BEARER_TOKENS_FILE, "
        "or say --unauthenticated to serve everything to everybody"
    )
    raise InvalidInput(message, code="server_unprotected")
