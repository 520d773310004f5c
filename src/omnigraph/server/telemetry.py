"""This module traces requests with OpenTelemetry, where the environment says where spans go."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from omnigraph.errors import InvalidInput
from omnigraph.version import __version__

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def traced(app: ASGIApp, environment: Mapping[str, str]) -> ASGIApp:
    """Return the application with a span per request; without an endpoint, as it is."""
    if not environment.get(ENDPOINT, "").strip():
        return app
    try:
        exporter = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        sdk = import_module("opentelemetry.sdk.trace")
        export = import_module("opentelemetry.sdk.trace.export")
        resources = import_module("opentelemetry.sdk.resources")
    except ModuleNotFoundError as error:
        message = f"{ENDPOINT} is set, but OpenTelemetry is not there: install omnigraph[telemetry]"
        raise InvalidInput(message, code="telemetry_missing") from error
    named = {"service.name": environment.get("OTEL_SERVICE_NAME", "omnigraph")}
    provider = sdk.TracerProvider(resource=resources.Resource.create(named))
    provider.add_span_processor(export.BatchSpanProcessor(exporter.OTLPSpanExporter()))
    return Traced(app, provider)


class Traced:
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
            route = scope.get("omnigraph.notes", {}).get("route", "unknown")
            span.update_name(f"{scope['method']} {route}")
            span.set_attribute("http.request.method", scope["method"])
            span.set_attribute("http.route", route)
