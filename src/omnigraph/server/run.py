"""Run a server: in this process, or as one of several on a socket they share."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import uvicorn

from omnigraph.errors import InvalidInput
from omnigraph.server.activation import ClusterWatch
from omnigraph.server.app import create_app
from omnigraph.server.boot import make_service
from omnigraph.server.limits import Limits
from omnigraph.server.metrics import Metrics
from omnigraph.server.process import settle
from omnigraph.server.protocol import PatientProtocol
from omnigraph.server.reload import Reloader
from omnigraph.server.settings import Settings
from omnigraph.server.signals import RELOAD, accept_reload
from omnigraph.server.telemetry import traced

BACKLOG = 2_048


def bind(settings: Settings) -> socket.socket:
    """Take the address; nobody can connect before a process listens."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Only of a socket that says it is TCP does asyncio send answers at once, without Nagle's wait.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((settings.host, settings.port))
    except (OSError, OverflowError) as error:
        found.close()
        place = f"{settings.host}:{settings.port}"
        message = f"cannot listen on {place}: {getattr(error, 'strerror', None) or error}"
        raise InvalidInput(message, code="bind_failed") from error
    return found


def address(listening: socket.socket) -> str:
    """Return the address people connect to."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def run(
    settings: Settings,
    environment: Mapping[str, str],
    *,
    listen: Callable[[], socket.socket],
    ready: Callable[[socket.socket], None],
    shared: bool = False,
) -> None:
    """Serve until somebody says stop; what is under way then is finished."""
    settle()
    service = make_service(settings, environment)
    plain = create_app(
        service,
        settings.limits,
        Metrics(shared=shared),
        agents_only=settings.agents_only,
        trusted_proxies=settings.trusted_proxies,
    )
    app = traced(plain, environment)
    listening = listen()
    config = uvicorn.Config(
        app,
        http=_protocol(settings.limits),
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=int(settings.limits.idle),
        timeout_graceful_shutdown=int(settings.limits.shutdown),
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
    )
    reloader = Reloader(settings, environment, plain.state.front, lambda: config.ssl)
    watch = ClusterWatch(settings.cluster, plain.state.front, reloader.reload)

    def begin() -> None:
        watch.start()
        ready(listening)

    _Server(config, begin, reloader).run(sockets=[listening])


def _protocol(limits: Limits) -> type[PatientProtocol]:
    facts = {"idle_seconds": limits.idle, "connections_max": limits.connections}
    return type("LimitedProtocol", (PatientProtocol,), facts)


class _Server(uvicorn.Server):
    """A server that reports when it listens, and reloads its files at a signal."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], reloader: Reloader
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._reloader = reloader
        self._reloads: set[asyncio.Task[bool]] = set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take a signal as the wish to stop, which was then fulfilled: it is not raised again."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        if self.started:
            asyncio.get_running_loop().add_signal_handler(RELOAD, self._reload)
            accept_reload()
            self._ready()

    def _reload(self) -> None:
        task = asyncio.ensure_future(self._reloader.reload())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)
