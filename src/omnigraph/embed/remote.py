"""This module asks a service over HTTP: again when that may help, and never for too long.

Messages show where was asked and what was answered, never the key.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from omnigraph.embed.provider import bad_answer
from omnigraph.errors import Category, OmniError

_TOO_MANY, _BROKEN = 429, 500
_EXCERPT = 200
_log = logging.getLogger("omnigraph.embed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to try, in seconds: one request, pauses that double, all tries together.

    `deadline` None is for ever.
    """

    attempts: int = 4
    backoff: float = 0.2
    timeout: float = 30.0
    deadline: float | None = 60.0


class _Failed(Exception):
    """One try failed in a way that another may not."""


@dataclass(slots=True)
class Service:
    """A service that answers JSON with JSON; `secret` is what no message may show."""

    base_url: str
    model: str
    headers: Mapping[str, str] = field(repr=False)
    secret: str | None = field(default=None, repr=False)
    patience: Patience = field(default_factory=Patience)
    _client: Any = field(default=None, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def ask(self, path: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - parsed JSON
        """Return what the service answers; raise OmniError when it does not."""
        patience, started = self.patience, time.monotonic()
        end = None if patience.deadline is None else started + patience.deadline
        for attempt in range(1, patience.attempts + 1):
            try:
                return self._try(path, body, end)
            except _Failed as failure:
                pause = patience.backoff * 2 ** (attempt - 1)
                if attempt == patience.attempts:
                    raise self._unavailable(f"{failure} ({attempt} tries)") from failure
                if end is not None and time.monotonic() + pause >= end:
                    raise self._too_late(failure) from failure
                _log.info("%s: %s; trying again in %.1f s", self.host, failure, pause)
                time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    @property
    def host(self) -> str:
        """The service as messages name it: without what an address may hold besides."""
        parts = urlsplit(self.base_url)
        return (parts.hostname or "") + (f":{parts.port}" if parts.port else "")

    def _try(self, path: str, body: Mapping[str, Any], end: float | None) -> Any:  # noqa: ANN401
        # Who asks no service must not wait for this library.
        import httpx  # noqa: PLC0415

        begun = time.monotonic()
        limit = begun + self.patience.timeout
        limit = limit if end is None else min(limit, end)
        address = f"{self.base_url.rstrip('/')}/{path}"
        try:
            with self._open().stream(
                "POST", address, json=dict(body), timeout=max(limit - begun, 0.001)
            ) as response:
                content = b""
                for piece in response.iter_bytes():
                    content += piece
                    # The library's timeout is about each read, not about all of them.
                    if time.monotonic() > limit:
                        raise _Failed("timed out")
                status = response.status_code
        except httpx.TimeoutException as error:
            raise _Failed("timed out") from error
        except httpx.TransportError as error:
            raise _Failed(self._clean(f"cannot be reached: {error}")) from error
        except httpx.InvalidURL as error:
            raise self._refused(f"its address is wrong: {error}", 0) from error
        return self._read(status, content)

    def _read(self, status: int, content: bytes) -> Any:  # noqa: ANN401 - parsed JSON
        excerpt = self._clean(content[:_EXCERPT].decode(errors="replace").strip())
        if status == _TOO_MANY or status >= _BROKEN:
            raise _Failed(f"answered {status}: {excerpt}")
        if not 200 <= status < 300:
            raise self._refused(f"answered {status}: {excerpt}", status)
        try:
            return json.loads(content)
        except ValueError as error:
            message = f"embedding service {self.host} answered no JSON: {excerpt}"
            raise bad_answer(message, self.model) from error

    def _open(self) -> Any:  # noqa: ANN401 - a client of a library imported late
        import httpx  # noqa: PLC0415 - as above

        with self._lock:
            if self._client is None:
                self._client = httpx.Client(headers=dict(self.headers))
            return self._client

    def _clean(self, text: str) -> str:
        return text.replace(self.secret, "***") if self.secret else text

    def _unavailable(self, reason: str) -> OmniError:
        return self._error(reason, "embedding_unavailable", Category.UNAVAILABLE)

    def _too_late(self, failure: Exception) -> OmniError:
        reason = f"{failure}, and OMNIGRAPH_EMBED_DEADLINE_MS is over"
        return self._error(reason, "embedding_deadline", Category.LIMIT)

    def _refused(self, reason: str, status: int) -> OmniError:
        kind = Category.DENIED if status in (401, 403) else Category.INVALID
        return self._error(reason, "embedding_refused", kind)

    def _error(self, reason: str, code: str, category: Category) -> OmniError:
        message = f"embedding service {self.host} (model {self.model}): {reason}"
        details = {"host": self.host, "model": self.model}
        return OmniError(message, code=code, category=category, details=details)
