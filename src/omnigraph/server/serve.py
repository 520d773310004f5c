"""This module starts a server: one process, or a supervisor of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from omnigraph.errors import InvalidInput
from omnigraph.server.limits import Limits
from omnigraph.server.logs import configure
from omnigraph.server.run import address, bind, run
from omnigraph.server.settings import Settings
from omnigraph.server.supervisor import Supervisor
from omnigraph.service.sources import ALL

__all__ = ["ALL", "Limits", "Settings", "serve"]


def serve(settings: Settings, environment: Mapping[str, str], ready: Callable[[str], None]) -> None:
    """Serve until somebody says stop; `ready` is told the address once it listens."""
    configure(environment)
    if not settings.graphs and settings.cluster is None:
        message = "there is no graph to serve: say --graph NAME=URI, or --cluster DIR"
        raise InvalidInput(message, code="no_graphs")
    if (settings.certificate is None) is not (settings.key is None):
        raise InvalidInput("TLS needs a certificate and its key", code="tls_incomplete")
    if settings.workers > 1:
        Supervisor(settings, environment).run(ready)
        return
    run(
        settings,
        environment,
        listen=lambda: bind(settings),
        ready=lambda listening: ready(address(listening)),
    )
