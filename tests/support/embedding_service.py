"""A real HTTP server that stands in for an embedding service, and can misbehave."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What the service answers: a status and JSON, or plain bytes, after a pause.

    `drip` is the pause between single bytes.
    """

    status: int = 200
    body: Any = None
    pause: float = 0.0
    drip: float = 0.0

    def content(self) -> bytes:
        """Return the bytes to send."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(slots=True)
class Request:
    """What was asked."""

    path: str
    headers: Mapping[str, str]
    body: Body


@dataclass(slots=True)
class EmbeddingService:
    """A server, what it was asked, and what it answers: first the queue, then `answer`."""

    answer: Callable[[Request], Reply]
    url: str = ""
    asked: list[Request] = field(default_factory=list)
    queue: list[Reply] = field(default_factory=list)

    def reply(self, request: Request) -> Reply:
        """Note a request and return what to answer."""
        self.asked.append(request)
        return self.queue.pop(0) if self.queue else self.answer(request)


def vector_of(text: str, dimension: int) -> list[float]:
    """Return a vector that tells texts apart by their length and first character."""
    return [float(len(text)), float(ord(text[0])), *([1.0] * (dimension - 2))]


def openai_answer(request: Request) -> Reply:
    """Answer like OpenAI, the vectors in another order than the texts."""
    size = request.body["dimensions"]
    texts = list(enumerate(request.body["input"]))
    rows = [{"index": at, "embedding": vector_of(text, size)} for at, text in reversed(texts)]
    return Reply(body={"object": "list", "data": rows})


def gemini_answer(request: Request) -> Reply:
    """Answer like Google."""
    [part] = request.body["content"]["parts"]
    size = request.body["outputDimensionality"]
    return Reply(body={"embedding": {"values": vector_of(part["text"], size)}})


@contextmanager
def embedding_service(answer: Callable[[Request], Reply]) -> Iterator[EmbeddingService]:
    """Run a service on a free port."""
    service = EmbeddingService(answer)
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(service)) as server:
        server.daemon_threads = True
        service.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()


def _handler(service: EmbeddingService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            body = json.loads(self.rfile.read(size))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = service.reply(Request(self.path, headers, body))
            time.sleep(reply.pause)
            try:
                self._send(reply)
            except ConnectionError:
                return  # who asked did not wait

        def _send(self, reply: Reply) -> None:
            content = reply.content()
            self.send_response(reply.status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if not reply.drip:
                self.wfile.write(content)
                return
            for byte in content:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(reply.drip)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler
