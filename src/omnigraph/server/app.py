"""The ASGI application: routes, middleware, limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from omnigraph.errors import Category, InvalidInput, OmniError
from omnigraph.server.handlers import operation_routes
from omnigraph.server.mcp_routes import McpRoutes
from omnigraph.server.metrics import ServerMetrics
from omnigraph.server.middleware import (
    RequestMiddleware,
    parse_networks,
    record_operation,
    record_route,
)
from omnigraph.server.openapi import build_openapi
from omnigraph.server.read_scheduler import ReadScheduler
from omnigraph.server.request import (
    AppState,
    RequestContext,
    decode_path_parameter,
    json_response,
)
from omnigraph.server.responses import error_response
from omnigraph.server.routes import HttpRoute
from omnigraph.server.settings import MAX_STREAMS, WRITER_THREADS, ServerLimits
from omnigraph.server.sign_in import LoopbackHostMiddleware, identify
from omnigraph.server.studio_files import BUILT, StudioFiles
from omnigraph.service.operations import OPERATIONS, AnyOperation
from omnigraph.service.session import GraphService
from omnigraph.service.sign_in import BrowserSessions, session_key

_HEALTH_PATHS = ("/healthz", "/readyz")
"""Routes that are there for agents alone, too."""
_REMOVED_ROUTES = (("POST", "/graphs"), ("DELETE", "/graphs"))
"""Routes there once were; they are answered like any other path that leads nowhere."""


def create_app(  # noqa: PLR0913 - one for each part of a server
    service: GraphService,
    limits: ServerLimits | None = None,
    metrics: ServerMetrics | None = None,
    *,
    agents_only: bool = False,
    trusted_proxies: Sequence[str] = (),
    operations: Sequence[AnyOperation] = OPERATIONS,
    shows_metrics: bool = True,
    sessions: BrowserSessions | None = None,
    studio: Path = BUILT,
) -> Starlette:
    """Return the application that serves some graphs; with `agents_only`, to agents alone.

    `studio` is the folder of the built Studio.
    """
    chosen, counted = limits or ServerLimits(), metrics or ServerMetrics()
    scheduler = ReadScheduler(chosen.threads, service.admission.reads_max, counted)
    writers = ThreadPoolExecutor(WRITER_THREADS, thread_name_prefix="omnigraph-change")
    proxies = parse_networks(trusted_proxies)
    state = AppState(
        service,
        chosen,
        scheduler,
        writers,
        asyncio.Semaphore(MAX_STREAMS),
        sessions or BrowserSessions(session_key({})),
    )
    agents = McpRoutes(scheduler, operations)
    shown = [o for o in operations if o.path in _HEALTH_PATHS or not agents_only]
    described = build_openapi(shown, authenticated=bool(service.tokens))

    async def openapi(_: Request) -> Response:
        return json_response(described)

    async def measured(_: Request) -> Response:
        return Response(counted.exposition(), media_type=counted.media_type)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with agents.agents.running():
            yield
        for pool in (scheduler.threads, writers):
            pool.shutdown(wait=True)

    routes = sorted([*operation_routes(shown), *agents.routes], key=_route_order)
    by_path = groupby(routes, key=lambda route: route.path)
    app = Starlette(
        routes=[
            *(_route(state, path, list(group)) for path, group in by_path),
            Route("/openapi.json", openapi),
            *([Route("/metrics", measured)] if shows_metrics else []),
            *([] if agents_only else StudioFiles(studio).routes),
        ],
        middleware=[
            Middleware(RequestMiddleware, metrics=counted, seconds=chosen.send, proxies=proxies),
            *([Middleware(LoopbackHostMiddleware)] if service.local else []),
        ],
        exception_handlers={HTTPException: _route_not_found},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.app_state = state
    return app


def _route_order(route: HttpRoute) -> tuple[bool, str]:
    """Fixed paths go first: `/branches/merge` is not a branch."""
    return "{branch}" in route.path, route.path


def _route(state: AppState, path: str, routes: Sequence[HttpRoute]) -> Route:
    by_method = {route.method: route for route in routes}

    async def run(request: Request) -> Response:
        route = by_method.get(request.method) or by_method["GET"]
        record_route(request, path)
        return await _respond(state, route, request)

    return Route(path, run, methods=list(by_method))


async def _respond(state: AppState, route: HttpRoute, request: Request) -> Response:
    try:
        async with asyncio.timeout(state.limits.deadline):
            return await _handle(state, route, request)
    except TimeoutError:
        late = OmniError(
            f"there was no answer within {state.limits.deadline:g} s; a change may still happen",
            code="deadline",
            category=Category.UNAVAILABLE,
        )
        return error_response(late, changes=route.change_errors)
    except OmniError as error:
        return error_response(error, changes=route.change_errors)


async def _handle(state: AppState, route: HttpRoute, request: Request) -> Response:
    service, actor = state.service, None
    graph = decode_path_parameter(request.path_params.get("graph_id", ""))
    served = graph if graph in service.registry.graphs else None
    record_operation(request, route.operation, served, writes=route.writes)
    if not route.public:
        actor, _ = identify(state, service, request)
        record_route(request, route.path, actor)
        service.admission.count_request(actor)
    response = await route.handle(RequestContext(state, request, service, actor))
    if route.successor is not None:
        response.headers["Deprecation"] = "true"
        response.headers["Link"] = f'<{route.successor}>; rel="successor-version"'
    return response


async def _route_not_found(request: Request, error: Exception) -> Response:
    """Answer where no route is: with nothing, or with the methods there are."""
    assert isinstance(error, HTTPException), "nothing else is routed here"
    if (request.method, request.url.path) in _REMOVED_ROUTES:
        return Response(status_code=404)
    if error.status_code == 405:
        refused = InvalidInput("the path has no such method", code="method_not_allowed")
        return error_response(refused, headers=error.headers)
    return Response(status_code=error.status_code, headers=error.headers)
