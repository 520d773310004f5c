"""Run calls of the remote client for an event loop: threads wait, the loop does the I/O.

The code of the client is written once, as blocking calls. A call of an `AsyncGraph` runs it in a
thread, whose requests are sent by the event loop. Cancelling the call cancels its request: the
connection is closed, and the server stops the query. Rows are decoded in the thread, so that large
results do not block the loop.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextvars import ContextVar, copy_context
from typing import Any, Generic, TypeVar

import httpx

from omnigraph.errors import InvalidInput

_T = TypeVar("_T")
_CALL: ContextVar[Call | None] = ContextVar("omnigraph_call", default=None)
_TAKEN_AT_ONCE = 256
_TAKEN_SECONDS = 0.02


class Call:
    """A call that runs in a thread, and the request it waits for."""

    def __init__(self, transport: EventLoopTransport) -> None:
        self.transport = transport
        self._lock = threading.Lock()
        self._request: concurrent.futures.Future[Any] | None = None
        self._is_cancelled = False

    def wait_for(self, request: concurrent.futures.Future[_T]) -> _T:
        """Return the outcome of a request; raise CancelledError once the call is cancelled."""
        with self._lock:
            self._request = request
            if self._is_cancelled:
                request.cancel()
        return request.result()

    def cancel(self) -> None:
        """Cancel the request in flight, and each that the call sends afterwards."""
        with self._lock:
            self._is_cancelled = True
            if self._request is not None:
                self._request.cancel()


class EventLoopTransport(httpx.BaseTransport):
    """The HTTP connections of an event loop, for threads that wait for their answers."""

    def __init__(self, connections: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._executor = concurrent.futures.ThreadPoolExecutor(connections, "omnigraph-client")
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        self._connections = httpx.AsyncClient(limits=limits)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, function: Callable[[], _T]) -> _T:
        """Run a function that sends requests, in a thread; a cancelled call stops its request."""
        call = Call(self)
        context = copy_context()
        context.run(_CALL.set, call)
        try:
            return await self._loop.run_in_executor(self._executor, context.run, function)
        except asyncio.CancelledError:
            call.cancel()
            raise

    async def iterate(self, start: Callable[[], Iterator[_T]]) -> AsyncIterator[_T]:
        """Yield what an iterator yields that sends requests, some elements for each thread."""
        elements = _Elements(await self.run(start))
        try:
            while taken := await self.run(elements.take):
                for element in taken:
                    yield element
        finally:
            await self.run(elements.close)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request on the event loop; return its answer, whose body is read as it comes."""
        answer = self.wait_for(self._connections.send(request, stream=True))
        body = _Body(self, answer.stream)
        return httpx.Response(
            answer.status_code, headers=answer.headers, stream=body, extensions=answer.extensions
        )

    def wait_for(self, step: Coroutine[Any, Any, _T]) -> _T:
        """Return the outcome of a step on the event loop, in the thread that calls this."""
        if self._is_current_thread():
            step.close()
            message = (
                "this sends a request and would block the event loop: "
                "use `await graph.run(function)`"
            )
            raise InvalidInput(message, code="event_loop_blocked")
        request = asyncio.run_coroutine_threadsafe(step, self._loop)
        call = _CALL.get()
        return request.result() if call is None else call.wait_for(request)

    def _is_current_thread(self) -> bool:
        """Return whether the event loop runs in this thread."""
        with contextlib.suppress(RuntimeError):
            return asyncio.get_running_loop() is self._loop
        return False

    def later(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a step on the event loop without waiting for it; not at all if the loop ended."""

        def start() -> None:
            task = self._loop.create_task(step())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(start)

    def close(self) -> None:
        """Close all connections; a call waits for it, the garbage collector does not."""
        self._executor.shutdown(wait=False)
        call = _CALL.get()
        if call is not None and call.transport is self:
            self.wait_for(self._connections.aclose())
        else:
            self.later(self._connections.aclose)

    async def aclose(self) -> None:
        """Close all connections, on the event loop."""
        self._executor.shutdown(wait=False)
        await self._connections.aclose()


class _Body(httpx.SyncByteStream):
    """The body of an answer that the event loop receives."""

    def __init__(self, transport: EventLoopTransport, stream: object) -> None:
        assert isinstance(stream, httpx.AsyncByteStream)
        self._transport = transport
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        chunks = aiter(self._stream)
        while (chunk := self._transport.wait_for(_next(chunks))) is not None:
            yield chunk

    def close(self) -> None:
        # Also called where the last reference to an answer is dropped, on the event loop itself.
        self._transport.later(self._stream.aclose)


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


class _Elements(Generic[_T]):
    """An iterator that threads advance, one at a time."""

    def __init__(self, iterator: Iterator[_T]) -> None:
        self._iterator: Iterator[_T] = iterator
        self._lock = threading.Lock()

    def take(self) -> list[_T]:
        """Return the next elements: one unless there is none, and more if they come soon."""
        taken: list[_T] = []
        until = time.monotonic() + _TAKEN_SECONDS
        with self._lock:
            for element in self._iterator:
                taken.append(element)
                if len(taken) == _TAKEN_AT_ONCE or time.monotonic() > until:
                    break
        return taken

    def close(self) -> None:
        """End the iterator, once no thread advances it."""
        with self._lock:
            close = getattr(self._iterator, "close", None)
            if close is not None:
                close()
            self._iterator = iter(())
