"""Wrap every request: its id, its time, its line in the log, its place in counters."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, TypeAlias

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from ulid import ULID

from omnigraph.errors import InvalidInput, install_command
from omnigraph.policy import log_decisions_once
from omnigraph.server.logs import AUDIT_LOGGER, has_audit_log
from omnigraph.server.metrics import ServerMetrics
from omnigraph.server.request import decode_path, decode_path_parameter
from omnigraph.server.responses import error_response
from omnigraph.service.session import RequestLog, current_request
from omnigraph.version import __version__

# ----------------------------------------------------------------------
# The address of a client, also behind proxies that are configured as trusted.


TrustedNetwork: TypeAlias = IPv4Network | IPv6Network
_FORWARDED = b"x-forwarded-for"
_FORWARDED_PROTO = b"x-forwarded-proto"


def parse_networks(texts: Iterable[str]) -> tuple[TrustedNetwork, ...]:
    """Return addresses and networks of trusted proxies; raise InvalidInput for anything else."""
    networks = []
    for text in texts:
        try:
            networks.append(ip_network(text.strip(), strict=False))
        except ValueError as error:
            message = (
                f"'{text}' is not an IP address or network of a trusted proxy; "
                "use e.g. 10.0.0.0/8 or 127.0.0.1"
            )
            raise InvalidInput(message, code="trusted_proxy_invalid") from error
    return tuple(networks)


def client_address(scope: Scope, trusted: Sequence[TrustedNetwork]) -> str | None:
    """Return the address a request comes from.

    `X-Forwarded-For` is read from its end as long as the addresses are trusted proxies: everything
    before the first other address was written by the client and proves nothing.
    """
    peer = scope.get("client")
    if peer is None:
        return None
    address = str(peer[0])
    for hop in reversed(_forwarded_addresses(scope)):
        if not _is_trusted(address, trusted) or _parse_address(hop) is None:
            break
        address = hop
    return address


def _apply_forwarded_scheme(scope: Scope, trusted: Sequence[TrustedNetwork]) -> None:
    """Use the scheme of the client's connection to a trusted proxy."""
    peer = scope.get("client")
    if peer is not None and _is_trusted(str(peer[0]), trusted):
        values = [value for name, value in scope["headers"] if name == _FORWARDED_PROTO]
        if values in ([b"http"], [b"https"]):
            scope["scheme"] = values[0].decode()


def _forwarded_addresses(scope: Scope) -> list[str]:
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == _FORWARDED]
    return [hop.strip() for value in values for hop in value.split(",")]


def _is_trusted(text: str, trusted: Sequence[TrustedNetwork]) -> bool:
    address = _parse_address(text)
    return address is not None and any(address in network for network in trusted)


def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


REQUEST_ID = "x-request-id"
_NO_SNIFF = (b"x-content-type-options", b"nosniff")
_log = logging.getLogger("omnigraph.server")
_audit = logging.getLogger(AUDIT_LOGGER)
_REQUEST_ID_PATTERN = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_ROUTE_FIELDS = "omnigraph.notes"
MAX_LOGGED_GRAPH_ID = 64
"""Characters of a graph ID in the log; a client may send any text."""


def record_route(request: Request, path: str, actor: str | None = None) -> None:
    """Remember the route, the graph and the actor of a request for the log."""
    request.scope[_ROUTE_FIELDS] |= {"route": path, "actor": actor}
    current, graph_id = current_request.get(), request.path_params.get("graph_id")
    if current is not None and graph_id is not None:
        current.graph_id = decode_path_parameter(graph_id)[:MAX_LOGGED_GRAPH_ID]


def record_operation(request: Request, operation: str, graph: str | None, *, writes: bool) -> None:
    """Remember the operation for metrics and the audit log; `graph` is one that is served."""
    facts = {"operation": operation, "graph": graph, "writes": writes}
    request.scope[_ROUTE_FIELDS] |= facts


class RequestMiddleware:
    """The outermost part of the application."""

    def __init__(
        self,
        app: ASGIApp,
        metrics: ServerMetrics,
        seconds: float,
        proxies: Sequence[TrustedNetwork],
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._seconds = seconds
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        _apply_forwarded_scheme(scope, self._proxies)
        log = RequestLog(_request_id(scope), client_address(scope, self._proxies))
        request = _RequestLifecycle(self._app, self._metrics, self._seconds, scope, log)
        await request.run(receive, send)


class _RequestLifecycle:
    """One request."""

    def __init__(
        self, app: ASGIApp, metrics: ServerMetrics, seconds: float, scope: Scope, log: RequestLog
    ) -> None:
        self._app, self._metrics, self._seconds, self._scope = app, metrics, seconds, scope
        self._begun = time.monotonic()
        self._status: int | None = None
        self._log, self._id = log, log.request_id
        self._notes: dict[str, Any] = {"route": "unknown", "actor": None}
        scope[_ROUTE_FIELDS] = self._notes

    async def run(self, receive: Receive, send: Send) -> None:
        token = current_request.set(self._log)

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._status = message["status"]
                message["headers"] = self._headers(message["headers"])
            # A client that does not read its answer must not hold it in memory for good.
            async with asyncio.timeout(self._seconds):
                await send(message)

        try:
            with self._metrics.underway(), log_decisions_once():
                await self._routed(receive, sent)
        finally:
            self._record()
            current_request.reset(token)

    def _headers(self, headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Add the request ID, and that no browser may guess another content type."""
        added = [(REQUEST_ID.encode(), self._id.encode())]
        if not any(name == _NO_SNIFF[0] for name, _ in headers):
            added.append(_NO_SNIFF)
        return [*headers, *added]

    async def _routed(self, receive: Receive, sent: Send) -> None:
        path = decode_path(self._scope)
        if path is None:
            await Response(status_code=404)(self._scope, receive, sent)
            return
        self._scope["path"] = path
        try:
            await self._app(self._scope, receive, sent)
        except ClientDisconnect:
            _log.info("the client went away before it was answered", extra={"request_id": self._id})
        except Exception as error:
            if self._status is not None:
                raise
            _log.exception("a request failed", extra={"request_id": self._id})
            await error_response(error)(self._scope, receive, sent)

    def _record(self) -> None:
        seconds = time.monotonic() - self._begun
        status = self._status or 499
        method, route = self._scope["method"], self._notes["route"]
        self._metrics.answered(method, route, status, seconds)
        facts = {
            "request_id": self._id,
            "method": method,
            "route": route,
            "status": status,
            "milliseconds": round(seconds * 1000, 3),
            "actor": self._notes["actor"],
        }
        _log.info("%s %s %d", method, route, status, extra=facts)
        operation = self._notes.get("operation")
        if operation is not None:
            self._metrics.operated(self._notes["graph"], operation, status, seconds)
            if self._notes["writes"] and has_audit_log():
                _audit.info("%s %d", operation, status, extra={**facts, "operation": operation})


def _request_id(scope: Scope) -> str:
    """Return the request ID of the client, if it is valid, or a new one."""
    for name, value in scope["headers"]:
        if name == REQUEST_ID.encode() and _REQUEST_ID_PATTERN.fullmatch(value):
            return str(value.decode())
    return str(ULID())


# Traces with OpenTelemetry, if the environment configures an exporter.


OTLP_ENDPOINT_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"


def with_tracing(app: ASGIApp, environment: Mapping[str, str]) -> ASGIApp:
    """Return the application with a span per request; without an endpoint, as it is."""
    if not environment.get(OTLP_ENDPOINT_VARIABLE, "").strip():
        return app
    try:
        exporter = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        sdk = import_module("opentelemetry.sdk.trace")
        export = import_module("opentelemetry.sdk.trace.export")
        resources = import_module("opentelemetry.sdk.resources")
    except ModuleNotFoundError as error:
        message = (
            f"{OTLP_ENDPOINT_VARIABLE} is set, but OpenTelemetry is not installed: "
            f"{install_command('telemetry')}"
        )
        raise InvalidInput(message, code="telemetry_missing") from error
    named = {"service.name": environment.get("OTEL_SERVICE_NAME", "omnigraph")}
    provider = sdk.TracerProvider(resource=resources.Resource.create(named))
    provider.add_span_processor(export.BatchSpanProcessor(exporter.OTLPSpanExporter()))
    return TracingMiddleware(app, provider)


class TracingMiddleware:
    """An application whose requests are spans, of the caller's trace if there is one."""

    def __init__(self, app: ASGIApp, provider: Any) -> None:  # noqa: ANN401 - an optional library's
        self._app = app
        self._provider = provider
        self._tracer = provider.get_tracer("omnigraph", __version__)
        self._extract = import_module("opentelemetry.propagate").extract

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run one request within a span."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            self._provider.shutdown()
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        context = self._extract(headers)
        with self._tracer.start_as_current_span(scope["method"], context=context) as span:

            async def sent(message: Any) -> None:  # noqa: ANN401 - a message of ASGI
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                await send(message)

            await self._app(scope, receive, sent)
            route = scope.get(_ROUTE_FIELDS, {}).get("route", "unknown")
            span.update_name(f"{scope['method']} {route}")
            span.set_attribute("http.request.method", scope["method"])
            span.set_attribute("http.route", route)
