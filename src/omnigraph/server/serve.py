"""Start a server: one process, or a supervisor of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from omnigraph.errors import InvalidInput
from omnigraph.server.logs import configure_logging
from omnigraph.server.maintenance import background_maintenance
from omnigraph.server.middleware import parse_networks
from omnigraph.server.process import exit_on_stop_signals
from omnigraph.server.run import bind_socket, listen_address, run_server
from omnigraph.server.settings import (
    MaintenanceOptions,
    ServerLimits,
    ServerSettings,
    StudioOptions,
    check_certificate,
)
from omnigraph.server.supervisor import Supervisor
from omnigraph.service.graph_registry import ALL_GRAPHS
from omnigraph.service.sign_in import session_key

__all__ = [
    "ALL_GRAPHS",
    "MaintenanceOptions",
    "ServerLimits",
    "ServerSettings",
    "StudioOptions",
    "check_settings",
    "serve",
]


def check_settings(settings: ServerSettings) -> None:
    """Refuse what no process could serve."""
    if not settings.graphs and settings.cluster is None:
        message = "there is no graph to serve: say --graph NAME=URI, or --cluster DIR"
        raise InvalidInput(message, code="no_graphs")
    check_certificate(settings)
    parse_networks(settings.trusted_proxies)


def serve(
    settings: ServerSettings, environment: Mapping[str, str], ready: Callable[[str], None]
) -> None:
    """Serve until a stop signal; `ready` is called with the address once it listens."""
    check_settings(settings)
    configure_logging(environment)
    settings = msgspec.structs.replace(settings, session_key=session_key(environment))
    with exit_on_stop_signals(), background_maintenance(settings, environment) as maintained:
        if settings.workers > 1:
            Supervisor(maintained, environment).run(ready)
            return
        run_server(
            maintained,
            environment,
            listen=lambda: bind_socket(settings),
            ready=lambda listening: ready(listen_address(listening)),
        )
