"""Stands between a client and the S3 server and fails as configured: loses answers, fails, stalls.

Everything that goes through is really stored by the server behind; only the way to it is bad.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlparse

from tests.support.s3 import Server


class Fault(Enum):
    """What becomes of one request."""

    NONE = auto()
    IGNORES_CONDITIONS = auto()
    """The store creates objects although they exist."""
    REFUSED = auto()
    """Nothing is stored, and the answer is 503."""
    ANSWERED_WITH_ERROR = auto()
    """The request is carried out, but the answer is 500."""
    ANSWER_LOST = auto()
    """The request is carried out, and the connection breaks."""
    STALLED = auto()
    """Nothing happens for as long as the proxy lives."""


@dataclass(slots=True)
class Proxy:
    """A server whose `fault` decides what becomes of each request, by method and path."""

    server: Server
    fault: Callable[[str, str], Fault] = lambda method, path: Fault.NONE
    hits: int = 0

    def next_put(self, part: str, *faults: Fault) -> None:
        """Let the next requests that write something whose path holds `part` meet these faults."""
        left = list(faults)

        def choose(method: str, path: str) -> Fault:
            if method == "PUT" and part in path and left:
                self.hits += 1
                return left.pop(0)
            return Fault.NONE

        self.fault = choose

    def always(self, fault: Fault) -> None:
        """Let every request meet this fault."""
        self.fault = lambda method, path: fault


@contextmanager
def misbehaving(behind: Server) -> Iterator[Proxy]:
    """Run a proxy before a server for as long as the block lasts."""
    over = threading.Event()
    listener = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    listener.daemon_threads = True
    listener.block_on_close = False
    proxy = Proxy(replace(behind, endpoint=f"http://127.0.0.1:{listener.server_address[1]}"))
    listener.RequestHandlerClass = _handler(proxy, urlparse(behind.endpoint).netloc, over)
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield proxy
    finally:
        over.set()
        listener.shutdown()
        thread.join()
        listener.server_close()


def _handler(proxy: Proxy, behind: str, over: threading.Event) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fault = proxy.fault(self.command, self.path)
            if fault is Fault.STALLED:
                over.wait()
                self.close_connection = True
                return
            if fault is Fault.REFUSED:
                self._answer(503, [], b"<Error><Code>SlowDown</Code></Error>")
                return
            status, headers, content = self._forward(body, fault)
            if fault is Fault.ANSWERED_WITH_ERROR:
                self._answer(500, [], b"<Error><Code>InternalError</Code></Error>")
            elif fault is Fault.ANSWER_LOST:
                self.close_connection = True
            else:
                self._answer(status, headers, content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

        def _forward(self, body: bytes, fault: Fault) -> tuple[int, list[tuple[str, str]], bytes]:
            headers = dict(self.headers)
            if fault is Fault.IGNORES_CONDITIONS:
                headers = {k: v for k, v in headers.items() if k.lower() != "if-none-match"}
            connection = http.client.HTTPConnection(behind, timeout=30)
            try:
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                return answer.status, answer.getheaders(), answer.read()
            finally:
                connection.close()

        def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
            self.send_response(status)
            hidden = {"connection", "transfer-encoding", "date", "server"}
            length = [v for k, v in headers if k.lower() == "content-length"]
            for name, value in headers:
                if name.lower() not in hidden | {"content-length"}:
                    self.send_header(name, value)
            head = self.command == "HEAD" and length
            self.send_header("Content-Length", length[0] if head else str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler
