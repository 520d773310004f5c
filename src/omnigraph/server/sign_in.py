"""Identify the caller of a request: a bearer token, or the cookie of a browser session."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from omnigraph.errors import Category, OmniError
from omnigraph.server.request import AppState, RequestContext, json_response
from omnigraph.server.responses import error_response
from omnigraph.server.settings import MAX_BODY_BYTES
from omnigraph.service import wire
from omnigraph.service.auth import Unauthorized
from omnigraph.service.operations import AnyOperation
from omnigraph.service.session import GraphService, ServiceSession
from omnigraph.service.sign_in import SESSION_SECONDS, BrowserSession

STUDIO_HEADER = "x-omnigraph-studio"
_COOKIE = "omnigraph_session"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_READS = ("GET", "HEAD")


def identify(
    app: AppState, service: GraphService, request: Request
) -> tuple[str | None, BrowserSession | None]:
    """Return the actor of a request, and the session if its cookie identified the actor.

    Raises:
        Unauthorized: the request has no token and no cookie, or one that is not valid.
        OmniError: the request has a cookie or needs none, may change something, and came from
            another site.
    """
    authorization = request.headers.get("authorization")
    session = None if authorization is not None else _session(app, service, request)
    if session is None:
        if not service.tokens:
            _refuse_other_sites(request)
        return service.identify(authorization), None
    if request.method not in _READS:
        check_same_site(request)
    return session.actor, session


def _session(app: AppState, service: GraphService, request: Request) -> BrowserSession | None:
    cookie = request.cookies.get(_cookie_name(request))
    if not service.tokens or cookie is None:
        return None
    return app.sessions.verify(service.tokens, cookie)


def check_same_site(request: Request) -> None:
    """Raise unless a page of this server sent the request: no other page can set both headers."""
    if not _is_same_origin(request) or request.headers.get(STUDIO_HEADER) != "1":
        raise OmniError(
            "a request with the cookie of a session needs the header `X-Omnigraph-Studio: 1` and "
            "the `Origin` of this server; programs send a bearer token instead",
            code="cross_site",
            category=Category.DENIED,
        )


def _refuse_other_sites(request: Request) -> None:
    """Raise if a page of another site sent a request that may change something.

    Browsers send some of these requests without asking the server first, and a server without
    tokens cannot distinguish them from requests of its users otherwise.
    """
    if request.method not in _READS and request.headers.get("sec-fetch-site") == "cross-site":
        message = "a server without tokens changes nothing for pages of other sites"
        raise OmniError(message, code="cross_site", category=Category.DENIED)


def _is_same_origin(request: Request) -> bool:
    try:
        origin = urlsplit(request.headers.get("origin", ""))
    except ValueError:
        return False
    schemes = ("https",) if request.url.scheme == "https" else ("http", "https")
    return origin.netloc == request.headers.get("host") and origin.scheme in schemes


# Handlers of the operations on sessions.


async def handle_sign_in(operation: AnyOperation, context: RequestContext) -> Response:
    """Set the cookie of a new session; on a server without tokens there is nothing to set."""
    check_same_site(context.request)
    body = await context.json(wire.SignInRequest, MAX_BODY_BYTES)
    service = context.service
    if not service.tokens:
        return _answer(operation, ServiceSession(service, None), body)
    cookie, session = context.app.sessions.create(service.tokens, body.token)
    response = _answer(operation, _service_session(service, session), body)
    _set_cookie(response, context.request, cookie, SESSION_SECONDS)
    return response


async def handle_session(operation: AnyOperation, context: RequestContext) -> Response:
    """Describe the caller, who was identified before."""
    session = _session(context.app, context.service, context.request)
    if session is None or "authorization" in context.request.headers:
        return _answer(operation, ServiceSession(context.service, context.actor), wire.NoRequest())
    return _answer(operation, _service_session(context.service, session), wire.NoRequest())


async def handle_sign_out(operation: AnyOperation, context: RequestContext) -> Response:
    """End the session of the cookie, if it is one, and remove the cookie."""
    check_same_site(context.request)
    try:
        session = _session(context.app, context.service, context.request)
    except Unauthorized:
        session = None
    if session is not None:
        context.app.sessions.ended.add(session)
    response = _answer(operation, ServiceSession(context.service, None), wire.NoRequest())
    _set_cookie(response, context.request, "", 0)
    return response


def _service_session(service: GraphService, session: BrowserSession) -> ServiceSession:
    return ServiceSession(service, session.actor, session.expires_at)


def _answer(operation: AnyOperation, session: ServiceSession, request: msgspec.Struct) -> Response:
    response = json_response(msgspec.json.encode(operation(session, request)))
    response.headers["Cache-Control"] = "no-store"
    return response


def _set_cookie(response: Response, request: Request, value: str, seconds: int) -> None:
    response.set_cookie(
        _cookie_name(request),
        value,
        max_age=seconds,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def _cookie_name(request: Request) -> str:
    """Return the name with the port: browsers share cookies among the ports of a host."""
    port = request.url.port
    return _COOKIE if port is None else f"{_COOKIE}_{port}"


# A local server is only for addresses of this machine.


class LoopbackHostMiddleware:
    """Refuses requests whose `Host` is not the address of a local server.

    A page of another site could resolve its own name to this machine, and would then count as a
    page of this server.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a request if it was sent to this server."""
        if scope["type"] == "http" and not _is_local(scope):
            message = "this server only accepts requests to 127.0.0.1 or localhost and its own port"
            refused = OmniError(message, code="host_unknown", category=Category.DENIED)
            await error_response(refused)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _is_local(scope: Scope) -> bool:
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    try:
        addresses = [urlsplit(f"//{host}") for host in hosts]
        ports = [address.port or 80 for address in addresses]
    except ValueError:
        return False
    names = [address.hostname for address in addresses]
    return len(hosts) == 1 and names[0] in _LOOPBACK and ports[0] == scope["server"][1]
