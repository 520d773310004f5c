"""Serve `/metrics` on an address of its own, which only a metrics system can reach."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6

from omnigraph.errors import InvalidInput


def parse_address(text: str) -> tuple[str, int]:
    """Return the host and port of `HOST:PORT`."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit():
        message = f"invalid --metrics-address '{text}': expected HOST:PORT, e.g. 127.0.0.1:9090"
        raise InvalidInput(message, code="bind_failed")
    return host.strip("[]"), int(port)


@contextmanager
def metrics_server(
    address: str | None, exposition: Callable[[], bytes], media_type: str
) -> Iterator[int | None]:
    """Answer `GET /metrics` while the block lasts; yield the port, None without an address."""
    if address is None:
        yield None
        return
    host, port = parse_address(address)
    try:
        server = _server_type(host)((host, port), _handler(exposition, media_type))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        message = f"cannot listen on {address} for metrics: {reason}"
        raise InvalidInput(message, code="bind_failed") from error
    thread = threading.Thread(target=server.serve_forever, name="omnigraph-metrics", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _server_type(host: str) -> type[ThreadingHTTPServer]:
    class _Server(ThreadingHTTPServer):
        daemon_threads = True
        address_family = AF_INET6 if ":" in host else AF_INET

    return _Server


def _handler(exposition: Callable[[], bytes], media_type: str) -> type[BaseHTTPRequestHandler]:
    class _Handler(BaseHTTPRequestHandler):
        timeout = 30

        def do_GET(self) -> None:
            """Answer with the metrics, or that there is nothing else."""
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            body = exposition()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *_: object) -> None:
            """Log nothing: metrics are read every few seconds."""

    return _Handler
