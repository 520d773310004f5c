"""Serve moto's S3, and its secrets, over HTTP with persistent connections.

Moto's own server looks up the service of every request among all services of AWS and closes every
connection, which takes longer than the request itself. Here each request goes to S3 directly and a
connection serves many. Requests are handled one at a time, so that conditional writes are atomic.

As a program it serves a bucket in a process of its own, until its standard input closes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from io import BytesIO
from threading import Lock, Thread
from typing import Any

from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from moto.s3.models import S3Backend, s3_backends
from werkzeug.serving import BaseWSGIServer, make_server

ACCOUNT = "123456789012"
REGION = "us-east-1"
# A page of 1,000 keys takes moto 30 ms, and readers of the latest version need its first key.
os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = "200"

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class _Handler(MotoRequestHandler):
    """Handle many requests per connection and send each response at once."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def run_wsgi(self) -> None:
        """Pass one request to the application, with its whole body, and send the response."""
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
            self.wfile.flush()
        environ = self.make_environ()
        if environ.get("wsgi.input_terminated"):
            body = environ["wsgi.input"].read()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        environ["wsgi.input"] = BytesIO(body)
        status, headers = "", list[tuple[str, str]]()

        def start_response(line: str, pairs: list[tuple[str, str]], *_: object) -> Any:
            nonlocal status, headers
            status, headers = line, pairs

        content = b"".join(self.server.app(environ, start_response))
        code, _, reason = status.partition(" ")
        self.send_response(int(code), reason)
        for name, value in headers:
            self.send_header(name, value)
        has_length = any(name.lower() == "content-length" for name, _ in headers)
        if not has_length and int(code) not in (204, 304):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        self.wfile.flush()

    def log_request(self, *_: object) -> None:
        """Print nothing."""


def s3_application() -> Application:
    """Return moto's S3, which handles one request at a time."""
    application, lock = create_backend_app("s3"), Lock()

    def handle(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        with lock:
            return list(application(environ, start_response))

    return handle


def listen(application: Application) -> BaseWSGIServer:
    """Return a server on a free loopback port that handles requests once `serve_forever` runs."""
    return make_server("127.0.0.1", 0, application, threaded=True, request_handler=_Handler)


def _serve(bucket: str) -> None:
    """Print the port of a server with an empty bucket, and end when the input does.

    Other buckets whose names begin with the name of this one exist once a request names them. A
    request for `/copy-of/SOURCE` copies what is there to the address in its header `X-Target`.
    """
    backend, s3 = s3_backends[ACCOUNT]["aws"], s3_application()
    secrets = create_backend_app("secretsmanager")

    def application(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        first, _, rest = environ["PATH_INFO"].removeprefix("/").partition("/")
        if environ.get("HTTP_X_AMZ_TARGET", "").startswith("secretsmanager."):
            return secrets(environ, start)
        if first == "copy-of":
            _copy(backend, rest, environ["HTTP_X_TARGET"])
            start("200 OK", [])
            return []
        _create_bucket(backend, first, bucket)
        return s3(environ, start)

    backend.create_bucket(bucket, REGION)
    server = listen(application)
    Thread(target=server.serve_forever, daemon=True).start()
    print(server.port, flush=True)
    sys.stdin.read()
    os._exit(0)


_creating = Lock()


def _create_bucket(backend: S3Backend, name: str, prefix: str) -> None:
    with _creating:
        if name.startswith(prefix) and name not in backend.buckets:
            backend.create_bucket(name, REGION)


def _copy(backend: S3Backend, source: str, target: str) -> None:
    bucket, _, folder = source.partition("/")
    other_bucket, _, other_folder = target.partition("/")
    _create_bucket(backend, other_bucket, other_bucket)
    for name, key in list(backend.buckets[bucket].keys.items()):
        if name.startswith(f"{folder}/"):
            backend.put_object(other_bucket, other_folder + name.removeprefix(folder), key.value)


if __name__ == "__main__":
    _serve(sys.argv[1])
