"""This module starts a server: one process, or a supervisor of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ssl import PROTOCOL_TLS_SERVER, SSLContext

from omnigraph.errors import InvalidInput
from omnigraph.server.limits import Limits
from omnigraph.server.logs import configure
from omnigraph.server.run import address, bind, run
from omnigraph.server.settings import Settings
from omnigraph.server.signals import stopping_normally
from omnigraph.server.supervisor import Supervisor
from omnigraph.service.sources import ALL

__all__ = ["ALL", "Limits", "Settings", "check", "serve"]


def check(settings: Settings) -> None:
    """Refuse what no process could serve."""
    if not settings.graphs and settings.cluster is None:
        message = "there is no graph to serve: say --graph NAME=URI, or --cluster DIR"
        raise InvalidInput(message, code="no_graphs")
    if settings.certificate is None and settings.key is None:
        return
    if settings.certificate is None or settings.key is None:
        raise InvalidInput("TLS needs a certificate and its key", code="tls_incomplete")
    try:
        SSLContext(PROTOCOL_TLS_SERVER).load_cert_chain(settings.certificate, settings.key)
    except OSError as error:
        message = f"the certificate and its key cannot be used: {error.strerror or error}"
        raise InvalidInput(message, code="tls_invalid") from error


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
