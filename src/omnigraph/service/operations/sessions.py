"""Operations on the session of a browser, whose cookies the handlers of the server set."""

from __future__ import annotations

from omnigraph.policy.permissions import PolicyAction
from omnigraph.service import wire
from omnigraph.service.operations.access import ANYONE
from omnigraph.service.operations.operation import operation
from omnigraph.service.session import ServiceSession


@operation(
    name="signIn",
    method="POST",
    path="/session",
    tag="sessions",
    summary="Exchange a token for the cookie of a session",
    errors=(400, 401, 403, 413, 415, 422),
    access=ANYONE,
    public=True,
    extension=True,
    handler="sign_in",
    example={"token": "…"},
)
def sign_in(session: ServiceSession, _: wire.SignInRequest) -> wire.SessionOutput:
    """Start a session of 12 hours, which ends earlier when the token is removed or replaced.

    For pages of the server itself, which send `X-Omnigraph-Studio: 1` and their `Origin`.
    """
    return describe_session(session)


@operation(
    name="getSession",
    path="/session",
    tag="sessions",
    summary="Return the signed-in actor",
    access=ANYONE,
    extension=True,
    handler="session",
)
def get_session(session: ServiceSession, _: wire.NoRequest) -> wire.SessionOutput:
    """Return the actor of the cookie or of the bearer token; null on a server without tokens."""
    return describe_session(session)


@operation(
    name="listSessionGraphs",
    path="/session/graphs",
    tag="sessions",
    summary="List the graphs that the caller may read",
    access=ANYONE,
    extension=True,
    immediate=True,
)
def session_graphs(session: ServiceSession, _: wire.NoRequest) -> wire.SessionGraphsOutput:
    """Return the IDs of the graphs of which the caller may read at least one branch, sorted.

    Unlike the list of all graphs it needs no permission on the server.
    """
    service = session.service
    names = sorted(service.registry.graphs)
    readable = (service.session(name, session.actor) for name in names)
    return wire.SessionGraphsOutput(
        graphs=[one.registered.id for one in readable if one.may_somewhere(PolicyAction.READ)]
    )


@operation(
    name="signOut",
    method="DELETE",
    path="/session",
    tag="sessions",
    summary="End the session of the cookie",
    errors=(403,),
    access=ANYONE,
    public=True,
    extension=True,
    handler="sign_out",
)
def sign_out(session: ServiceSession, _: wire.NoRequest) -> wire.SessionOutput:
    """End a session in all processes of the server; without one nothing happens."""
    return describe_session(session)


def describe_session(session: ServiceSession) -> wire.SessionOutput:
    """Return who the caller is."""
    ends = session.expires_at
    return wire.SessionOutput(
        actor=session.actor,
        sign_in=bool(session.service.tokens),
        local=session.service.local,
        expires_at=None if ends is None else ends * 1_000_000,
    )
