"""Run a server: in this process, or as one of several on a socket they share."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from omnigraph.errors import InvalidInput
from omnigraph.query.running import RUNNING_QUERIES
from omnigraph.server.app import create_app
from omnigraph.server.connections import LimitedHttpProtocol, PeerSocketAcceptor
from omnigraph.server.metrics import METRICS_DIR_VARIABLE, ServerMetrics
from omnigraph.server.metrics_address import metrics_server
from omnigraph.server.middleware import with_tracing
from omnigraph.server.process import RELOAD_SIGNAL, prepare_process, unblock_reload_signal
from omnigraph.server.query_peers import WorkerQueries
from omnigraph.server.reload import ClusterWatcher, Reloader
from omnigraph.server.service_loader import build_service
from omnigraph.server.settings import ServerLimits, ServerSettings
from omnigraph.service.sign_in import BrowserSessions, EndedSessions, OneTimeToken

BACKLOG = 2_048


def bind_worker_sockets(settings: ServerSettings) -> list[socket.socket]:
    """Return a socket for each worker on one address; the kernel spreads connections over them."""
    # Without the option first: it would share the address with any other server that has it, too.
    first = bind_socket(settings)
    port = first.getsockname()[1]
    first.close()
    chosen = msgspec.structs.replace(settings, port=port)
    return [bind_socket(chosen, shared=True) for _ in range(settings.workers)]


def bind_socket(settings: ServerSettings, *, shared: bool = False) -> socket.socket:
    """Take the address; no client can connect before a process listens."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio disables Nagle's algorithm only for sockets with the protocol TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listening.bind((settings.host, settings.port))
    except (OSError, OverflowError) as error:
        listening.close()
        place = f"{settings.host}:{settings.port}"
        message = f"cannot listen on {place}: {getattr(error, 'strerror', None) or error}"
        raise InvalidInput(message, code="bind_failed") from error
    return listening


def listen_address(listening: socket.socket) -> str:
    """Return the address people connect to."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def run_server(
    settings: ServerSettings,
    environment: Mapping[str, str],
    *,
    listen: Callable[[], socket.socket],
    ready: Callable[[socket.socket], None],
    others: Sequence[socket.socket] = (),
    shared: bool = False,
) -> None:
    """Serve until a signal stops it; what is under way then is finished.

    `others` are the sockets of other workers, whose connections are taken when they do not.
    """
    prepare_process()
    RUNNING_QUERIES.slow_seconds = settings.slow_query_seconds
    if shared:
        peers = WorkerQueries(Path(environment[METRICS_DIR_VARIABLE]), RUNNING_QUERIES)
        peers.start()
        RUNNING_QUERIES.peers = peers
    service = build_service(settings, environment)
    maintenance = None if settings.maintenance is None else settings.maintenance.metrics
    own_address = settings.metrics_address
    metrics = ServerMetrics(
        shared=shared, maintenance=maintenance, names_graphs=own_address is not None
    )
    plain = create_app(
        service,
        settings.limits,
        metrics,
        shows_metrics=own_address is None,
        agents_only=settings.agents_only,
        trusted_proxies=settings.trusted_proxies,
        sessions=_browser_sessions(settings, environment, shared=shared),
    )
    app = with_tracing(plain, environment)
    listening = listen()
    config = uvicorn.Config(
        app,
        http=_limited_protocol(settings.limits),
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
    reloader = Reloader(settings, environment, plain.state.app_state, lambda: config.ssl)
    watch = ClusterWatcher(settings.cluster, plain.state.app_state, reloader.reload)

    def begin() -> None:
        watch.start()
        ready(listening)

    # Of several workers, the supervisor answers for all.
    address = None if shared else own_address
    try:
        with metrics_server(address, metrics.exposition, metrics.media_type):
            _UvicornServer(config, begin, reloader, others).run(sockets=[listening])
    finally:
        metrics.close()


def _browser_sessions(
    settings: ServerSettings, environment: Mapping[str, str], *, shared: bool
) -> BrowserSessions:
    ended = EndedSessions(Path(environment[METRICS_DIR_VARIABLE]) if shared else None)
    local = settings.studio
    one_time = None if local is None else OneTimeToken(local.one_time_token, local.token)
    return BrowserSessions(settings.session_key, ended, one_time)


def _limited_protocol(limits: ServerLimits) -> type[LimitedHttpProtocol]:
    facts = {
        "idle_seconds": limits.idle,
        "age_seconds": limits.age,
        "connections_max": limits.connections,
    }
    return type("LimitedProtocol", (LimitedHttpProtocol,), facts)


class _UvicornServer(uvicorn.Server):
    """A server that reports when it listens, and reloads its files at a signal."""

    def __init__(
        self,
        config: uvicorn.Config,
        ready: Callable[[], None],
        reloader: Reloader,
        others: Sequence[socket.socket],
    ) -> None:
        super().__init__(config)
        self._others = PeerSocketAcceptor(others)
        self._ready = ready
        self._reloader = reloader
        self._reloads: set[asyncio.Task[bool]] = set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle a signal as a request to stop; it is not raised again."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and report that."""
        await super().startup(sockets)
        if self.started:
            asyncio.get_running_loop().add_signal_handler(RELOAD_SIGNAL, self._reload)
            unblock_reload_signal()
            self._others.start(self._protocol, self.config.ssl)
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, and finish what is under way."""
        self._others.stop()
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        protocol: Any = self.config.http_protocol_class
        connection: asyncio.Protocol = protocol(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return connection

    def _reload(self) -> None:
        task = asyncio.ensure_future(self._reloader.reload())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)
