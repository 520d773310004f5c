"""HTTP transport of the client: kept connections, retries, errors.

A request is sent again only where it cannot take effect twice: if it never reached the server, if
the server refused to start it, or if it only reads.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
import msgspec

from omnigraph.errors import Category, InvalidInput, OmniError, StorageUnavailable
from omnigraph.service.client.errors import decode_error
from omnigraph.version import __version__

_AnswerT = TypeVar("_AnswerT")
_NOT_SENT_ERRORS = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_RETRIED_STATUSES = (502, 504)
"""Statuses of a proxy that got no response from the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long to wait: for a connection, for an answer, and how often and long to try again."""

    connect: float = 10.0
    answer: float = 120.0
    attempts: int = 4
    wait: float = 10.0
    """Seconds that may be spent between attempts in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteCall:
    """One request; one that `reads` may be sent twice. Errors refer to positions in `text`."""

    method: str
    path: str
    json: Any = None
    content: bytes | None = None
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] | None = None
    reads: bool = False
    text: str | None = None


class Transport:
    """Connections to one server, shared by everything that is bound to it."""

    def __init__(
        self,
        base: str,
        token: str | None,
        patience: RetryPolicy | None = None,
        http: httpx.BaseTransport | None = None,
    ) -> None:
        self.base = base.rstrip("/")
        self._policy = patience or RetryPolicy()
        self._client = httpx.Client(
            transport=http,
            timeout=httpx.Timeout(self._policy.answer, connect=self._policy.connect),
            headers={
                "User-Agent": f"omnigraph/{__version__}",
                **({} if token is None else {"Authorization": f"Bearer {token}"}),
            },
        )

        # Close the connections of a graph that was not closed.
        weakref.finalize(self, self._client.close)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def decoded(self, call: RemoteCall, answer: Any) -> Any:  # noqa: ANN401 - as the type says
        """Return the answer to a request, which has a declared type."""
        return self._retried(call, lambda: self._decoded(call, answer))

    def send(self, call: RemoteCall) -> httpx.Response:
        """Return the whole answer to a request, whatever its body is."""
        return self._retried(call, lambda: self._answered(call))

    @contextmanager
    def stream(self, call: RemoteCall) -> Iterator[httpx.Response]:
        """Give the answer to a request that is read as it comes."""
        response = self._retried(call, lambda: self._opened(call))
        try:
            yield response
        except httpx.TransportError as error:
            raise self.response_lost(call) from error
        finally:
            response.close()

    def response_lost(self, call: RemoteCall) -> OmniError:
        """Return the error for an answer that did not come, or not as a whole."""
        if call.reads:
            message = f"{self.base} did not answer in time, or broke off"
            return StorageUnavailable(message, code="server_unreachable", server=self.base)
        return OmniError(
            f"{self.base} did not answer whether this was done; look before trying again",
            code="outcome_unknown",
            category=Category.OUTCOME_UNKNOWN,
            details={"server": self.base},
        )

    def _decoded(self, call: RemoteCall, answer: Any) -> Any:  # noqa: ANN401 - as the type says
        response = self._answered(call)
        try:
            return msgspec.json.decode(response.content, type=answer)
        except msgspec.DecodeError as error:
            message = f"{self.base} does not answer like an OmniGraph server: {error}"
            raise StorageUnavailable(message, code="server_unknown") from error

    def _answered(self, call: RemoteCall) -> httpx.Response:
        response = self._opened(call)
        try:
            response.read()
        finally:
            response.close()
        return response

    def _opened(self, call: RemoteCall) -> httpx.Response:
        response = self._client.send(self._built(call), stream=True)
        if response.status_code >= 400:
            response.read()
            response.close()
            raise _ErrorStatus(response, decode_error(response, call.text))
        return response

    def _built(self, call: RemoteCall) -> httpx.Request:
        try:
            return self._client.build_request(
                call.method,
                self.base + call.path,
                params=list(call.query) or None,
                json=call.json,
                content=call.content,
                headers=dict(call.headers or {}),
            )
        except UnicodeEncodeError as error:
            message = "a text with half of a surrogate pair is not valid Unicode"
            raise InvalidInput(message, code="text_invalid") from error

    def _retried(self, call: RemoteCall, run: Callable[[], _AnswerT]) -> _AnswerT:
        left, last = self._policy.wait, self._policy.attempts - 1
        for attempt in range(self._policy.attempts):
            pause = min(0.1 * 4**attempt, left)
            try:
                return run()
            except _ErrorStatus as refused:
                retry_pause = _retry_pause(refused.response, call, pause)
                if retry_pause is None or retry_pause > left or attempt == last:
                    raise refused.error from None
                pause = retry_pause
            except _NOT_SENT_ERRORS as error:
                if attempt == last:
                    raise _unreachable(self.base, error) from error
            except httpx.TransportError as error:
                if not call.reads or attempt == last:
                    raise self.response_lost(call) from error
            time.sleep(pause)
            left -= pause
        raise AssertionError("the last attempt returns or raises")


class _ErrorStatus(Exception):
    """The server answered with an error."""

    def __init__(self, response: httpx.Response, error: OmniError) -> None:
        super().__init__(error.message)
        self.response = response
        self.error = error


def _retry_pause(response: httpx.Response, call: RemoteCall, pause: float) -> float | None:
    """Return after how long a refused request may be sent again, or None if it may not."""
    if response.status_code == 429:
        try:
            return max(float(response.headers.get("Retry-After", "")), 0.0)
        except ValueError:
            return pause
    return pause if call.reads and response.status_code in _RETRIED_STATUSES else None


def _unreachable(base: str, cause: Exception) -> OmniError:
    message = f"cannot reach {base}: {str(cause) or type(cause).__name__}"
    return StorageUnavailable(message, code="server_unreachable", server=base)
