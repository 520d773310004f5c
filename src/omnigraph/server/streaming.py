"""Streamed answers: made in threads piece by piece, stopped when the client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from threading import Lock

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from omnigraph.errors import Category, OmniError
from omnigraph.query.limits import QueryCancelled, check_cancelled
from omnigraph.server.request import RequestContext, wait_for_disconnect
from omnigraph.server.settings import (
    MAX_STREAMS,
    STREAM_CHUNK_BYTES,
    STREAM_SHARE,
    STREAM_WAIT_SECONDS,
)

NDJSON = "application/x-ndjson; charset=utf-8"


@dataclass(slots=True)
class ChunkIterator:
    """An iterator that one thread at a time goes on with; closing waits for its turn."""

    iterator: Iterator[bytes]
    _lock: Lock = field(default_factory=Lock)

    def next(self) -> bytes | None:
        """Return the next piece, or None behind the last."""
        with self._lock:
            return next(self.iterator, None)

    def close(self) -> None:
        """Let go of what the iterator holds."""
        with self._lock, suppress(AttributeError):
            self.iterator.close()  # type: ignore[attr-defined]  # generators have it


class ChunkedResponse(Response):
    """An answer in pieces; the first is made before anything is sent, for the status."""

    def __init__(
        self,
        context: RequestContext,
        pieces: ChunkIterator,
        first: bytes | None,
        headers: Mapping[str, str],
        status: int = 200,
    ) -> None:
        self.status_code = status
        self.background = None
        self.init_headers(headers)
        self._context = context
        self._pieces = pieces
        self._first = first
        self.release: Callable[[], None] = lambda: None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send pieces until the client disconnects."""
        gone = asyncio.ensure_future(wait_for_disconnect(receive))
        gone.add_done_callback(lambda _: self._context.cancellation.set())
        try:
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            piece = self._first
            with suppress(QueryCancelled):
                while piece is not None and not gone.done():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                    piece = await self._context.run_read(self._pieces.next)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            self.release()
            self._context.app.scheduler.threads.submit(self._pieces.close)


async def stream_response(
    context: RequestContext,
    make: Callable[[], Iterator[bytes]],
    headers: Mapping[str, str],
    status: int = 200,
) -> ChunkedResponse:
    """Answer with the pieces an iterator gives."""
    with ExitStack() as held:
        held.enter_context(context.app.scheduler.admit(context.actor))
        pieces, first = await context.while_connected(
            context.run_read(lambda: _first_chunk(make()))
        )
        response = ChunkedResponse(context, pieces, first, headers, status)
        response.release = held.pop_all().close
    return response


def _first_chunk(iterator: Iterator[bytes]) -> tuple[ChunkIterator, bytes | None]:
    pieces = ChunkIterator(iterator)
    return pieces, pieces.next()


async def stream_ndjson(
    context: RequestContext, make: Callable[[], Iterable[str]]
) -> ChunkedResponse:
    """Answer with lines; the number of concurrent streams is limited."""
    streams = context.app.streams
    try:
        async with asyncio.timeout(STREAM_WAIT_SECONDS):
            await streams.acquire()
    except TimeoutError as error:
        raise _too_many_streams() from error
    try:
        headers = {"content-type": NDJSON}
        response = await stream_response(context, lambda: join_lines(make()), headers)
    except BaseException:
        streams.release()
        raise
    release = response.release

    def release_both() -> None:
        release()
        streams.release()

    response.release = release_both
    return response


def join_lines(lines: Iterable[str]) -> Iterator[bytes]:
    """Join lines into pieces that are not too large."""
    buffer = bytearray()
    for line in lines:
        check_cancelled("Stream")
        buffer += line.encode()
        buffer += b"\n"
        while len(buffer) >= STREAM_CHUNK_BYTES:
            yield bytes(buffer[:STREAM_CHUNK_BYTES])
            del buffer[:STREAM_CHUNK_BYTES]
    if buffer:
        yield bytes(buffer)


def _too_many_streams() -> OmniError:
    limit = MAX_STREAMS * STREAM_SHARE
    return OmniError(
        f"{MAX_STREAMS} exports are under way; try again when one has ended",
        code="stream_busy",
        category=Category.LIMIT,
        details={
            "resource": "stream_export_transport_bytes",
            "limit": limit,
            "actual": limit + STREAM_SHARE,
        },
    )
