"""This module puts routes, limits and what is served together into an application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import groupby

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from omnigraph.errors import Category, InvalidInput, OmniError
from omnigraph.server.agents import AgentRoutes
from omnigraph.server.asked import Asked, Front, json_response
from omnigraph.server.clients import read_networks
from omnigraph.server.endpoint import Endpoint
from omnigraph.server.envelope import Envelope, note
from omnigraph.server.failures import failure_response
from omnigraph.server.limits import STREAMS, WRITERS, Limits
from omnigraph.server.metrics import Metrics
from omnigraph.server.openapi import document
from omnigraph.server.routes import ENDPOINTS
from omnigraph.service.visit import Service

_ALWAYS = ("/healthz", "/readyz")
"""Routes that are there for agents alone, too."""
_GONE = (("POST", "/graphs"), ("DELETE", "/graphs"))
"""Routes there once were; they are answered like any other path that leads nowhere."""


def create_app(
    service: Service,
    limits: Limits | None = None,
    metrics: Metrics | None = None,
    *,
    agents_only: bool = False,
    trusted_proxies: Sequence[str] = (),
) -> Starlette:
    """Return the application that serves some graphs; with `agents_only`, to agents alone."""
    chosen, counted = limits or Limits(), metrics or Metrics()
    threads = ThreadPoolExecutor(chosen.threads, thread_name_prefix="omnigraph")
    writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="omnigraph-change")
    proxies = read_networks(trusted_proxies)
    front = Front(service, chosen, threads, writers, asyncio.Semaphore(STREAMS))
    agents = AgentRoutes(threads)
    shown = [e for e in ENDPOINTS if e.path in _ALWAYS or not agents_only]
    described = document(shown, authenticated=bool(service.tokens))

    async def openapi(_: Request) -> Response:
        return json_response(described)

    async def measured(_: Request) -> Response:
        return Response(counted.exposition(), media_type=counted.media_type)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with agents.agents.running():
            yield
        for pool in (threads, writers):
            pool.shutdown(wait=True)

    by_path = groupby(
        sorted([*shown, *agents.endpoints], key=_place), key=lambda endpoint: endpoint.path
    )
    routes = [_route(front, path, list(found)) for path, found in by_path]
    app = Starlette(
        routes=[*routes, Route("/openapi.json", openapi), Route("/metrics", measured)],
        middleware=[Middleware(Envelope, metrics=counted, seconds=chosen.send, proxies=proxies)],
        exception_handlers={HTTPException: _unrouted},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.front = front
    return app


def _place(endpoint: Endpoint) -> tuple[bool, str]:
    """Fixed paths go first: `/branches/merge` is no branch."""
    return "{branch}" in endpoint.path, endpoint.path


def _route(front: Front, path: str, endpoints: Sequence[Endpoint]) -> Route:
    by_method = {endpoint.method: endpoint for endpoint in endpoints}

    async def run(request: Request) -> Response:
        endpoint = by_method.get(request.method) or by_method["GET"]
        note(request, path)
        return await _answered(front, endpoint, request)

    return Route(path, run, methods=list(by_method))


async def _answered(front: Front, endpoint: Endpoint, request: Request) -> Response:
    try:
        async with asyncio.timeout(front.limits.deadline):
            return await _handled(front, endpoint, request)
    except TimeoutError:
        late = OmniError(
            f"there was no answer within {front.limits.deadline:g} s; a change may still happen",
            code="deadline",
            category=Category.UNAVAILABLE,
        )
        return failure_response(late, changes=endpoint.changes)
    except OmniError as error:
        return failure_response(error, changes=endpoint.changes)


async def _handled(front: Front, endpoint: Endpoint, request: Request) -> Response:
    service, actor = front.service, None
    if not endpoint.public:
        actor = service.identify(request.headers.get("authorization"))
        note(request, endpoint.path, actor)
    response = await endpoint.handle(Asked(front, request, service, actor))
    if endpoint.successor is not None:
        response.headers["Deprecation"] = "true"
        response.headers["Link"] = f'<{endpoint.successor}>; rel="successor-version"'
    return response


async def _unrouted(request: Request, error: Exception) -> Response:
    """Answer where no route is: with nothing, or with the methods there are."""
    assert isinstance(error, HTTPException), "nothing else is routed here"
    if (request.method, request.url.path) in _GONE:
        return Response(status_code=404)
    if error.status_code == 405:
        refused = InvalidInput("the path has no such method", code="method_not_allowed")
        return failure_response(refused, headers=error.headers)
    return Response(status_code=error.status_code, headers=error.headers)
