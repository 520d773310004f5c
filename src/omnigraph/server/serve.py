"""This module starts a server: one process, or a supervisor of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from omnigraph.errors import InvalidInput
from omnigraph.server.clients import read_networks
from omnigraph.server.limits import Limits
from omnigraph.server.logs import configure
from omnigraph.server.run import address, bind, run
from omnigraph.server.settings import Settings
from omnigraph.server.signals import stopping_normally
from omnigraph.server.supervisor import Supervisor
from omnigraph.server.tls import check_certificate
from omnigraph.service.sources import ALL

__all__ = ["ALL", "Limits", "Settings", "check", "serve"]


def check(settings: Settings) -> None:
    """Refuse what no process could serve."""
    if not settings.graphs and settings.cluster is None:
        message = "there is no graph to serve: say --graph NAME=URI, or --cluster DIR"
        raise InvalidInput(message, code="no_graphs")
    check_certificate(settings)
    read_networks(settings.trusted_proxies)


def serve(settings: Settings, environment: Mapping[str, str], ready: Callable[[str], None]) -> None:
    """Serve until somebody says stop; `ready` is told the address once it listens."""
    check(settings)
    configure(environment)
    with stopping_normally():
        if settings.workers > 1:
            Supervisor(settings, environment).run(ready)
            return
        run(
            settings,
            environment,
            listen=lambda: bind(settings),
            ready=lambda listening: ready(address(listening)),
        )
