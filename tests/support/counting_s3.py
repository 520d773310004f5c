"""Runs an S3 server inside this process that counts what it is asked.

Each HTTP request is one operation of the object store: what a real one would charge and wait for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

from moto.s3.models import s3_backends

from tests.support.moto_server import ACCOUNT, REGION, listen, s3_application


@dataclass(slots=True)
class Requests:
    """The requests of one piece of work, by kind, what they asked for, and bytes answered of it."""

    kinds: Counter[str] = field(default_factory=Counter)
    paths: set[str] = field(default_factory=set)
    bytes: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """All requests together."""
        return self.kinds.total()


class CountingServer:
    """An S3 server that counts."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._asked: set[str] = set()
        self._bytes: Counter[str] = Counter()
        self._application = s3_application()
        self._server = listen(self._count)
        self._backend = s3_backends[ACCOUNT]["aws"]

    @property
    def options(self) -> dict[str, str]:
        """The storage options that reach this server."""
        return {
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
            "aws_region": "us-east-1",
            "aws_endpoint": f"http://127.0.0.1:{self._server.port}",
        }

    def load(self, folder: Path, name: str) -> str:
        """Copy a folder into a new bucket behind the counter's back; return its address."""
        self._backend.create_bucket(name, REGION)
        for path in folder.rglob("*"):
            if path.is_file():
                key = f"graph/{path.relative_to(folder).as_posix()}"
                self._backend.put_object(name, key, path.read_bytes())
        return f"s3://{name}/graph"

    def empty(self, name: str) -> None:
        """Forget a bucket; its objects take memory."""
        bucket = self._backend.buckets.pop(name)
        for key in list(bucket.keys.values()):
            key.dispose()

    @contextmanager
    def counted(self) -> Iterator[Requests]:
        """Count the requests of a block."""
        before, read, found = self._seen.copy(), self._bytes.copy(), Requests()
        self._asked.clear()
        yield found
        found.kinds, found.paths = self._seen - before, set(self._asked)
        found.bytes = self._bytes - read

    def _count(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        listing = "list-type" in environ.get("QUERY_STRING", "")
        self._asked.add(environ["PATH_INFO"])
        self._seen["LIST" if listing else environ["REQUEST_METHOD"]] += 1
        answer = self._application(environ, start_response)
        for part in answer:
            self._bytes[environ["PATH_INFO"]] += len(part)
            yield part

    def serve(self) -> Thread:
        """Answer in a thread of its own."""
        thread = Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
        self._backend.reset()


@contextmanager
def counting_server() -> Iterator[CountingServer]:
    """Run a counting server for as long as the block lasts."""
    server = CountingServer()
    thread = server.serve()
    try:
        yield server
    finally:
        server.stop()
        thread.join()
