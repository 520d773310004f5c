"""This module asks a service over HTTP: again when that may help, and never for too long.

Messages show where was asked and what was answered, never the key.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np

from omnigraph.embed.provider import Matrix, Role, bad_response_error, check_texts, unit_vectors
from omnigraph.errors import Category, OmniError

_TOO_MANY_REQUESTS, _SERVER_ERROR = 429, 500
_EXCERPT_CHARS = 200
_log = logging.getLogger("omnigraph.embed")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRetryPolicy:
    """How long to try, in seconds: one request, pauses that double, all tries together.

    `deadline` None is for ever.
    """

    attempts: int = 4
    backoff: float = 0.2
    timeout: float = 30.0
    deadline: float | None = 60.0


class _RetryableFailure(Exception):
    """One try failed in a way that another may not."""


@dataclass(slots=True)
class EmbeddingClient:
    """A service that answers JSON with JSON; `secret` is what no message may show."""

    base_url: str
    model: str
    headers: Mapping[str, str] = field(repr=False)
    secret: str | None = field(default=None, repr=False)
    patience: EmbeddingRetryPolicy = field(default_factory=EmbeddingRetryPolicy)
    _client: Any = field(default=None, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def ask(self, path: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - parsed JSON
        """Return what the service answers; raise OmniError when it does not."""
        patience, started = self.patience, time.monotonic()
        end = None if patience.deadline is None else started + patience.deadline
        for attempt in range(1, patience.attempts + 1):
            try:
                return self._try(path, body, end)
            except _RetryableFailure as failure:
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
                        raise _RetryableFailure("timed out")
                status = response.status_code
        except httpx.TimeoutException as error:
            raise _RetryableFailure("timed out") from error
        except httpx.TransportError as error:
            raise _RetryableFailure(self._clean(f"cannot be reached: {error}")) from error
        except httpx.InvalidURL as error:
            raise self._refused(f"its address is wrong: {error}", 0) from error
        return self._read(status, content)

    def _read(self, status: int, content: bytes) -> Any:  # noqa: ANN401 - parsed JSON
        excerpt = self._clean(content[:_EXCERPT_CHARS].decode(errors="replace").strip())
        if status == _TOO_MANY_REQUESTS or status >= _SERVER_ERROR:
            raise _RetryableFailure(f"answered {status}: {excerpt}")
        if not 200 <= status < 300:
            raise self._refused(f"answered {status}: {excerpt}", status)
        try:
            return json.loads(content)
        except ValueError as error:
            message = f"embedding service {self.host} answered no JSON: {excerpt}"
            raise bad_response_error(message, self.model) from error

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


# ----------------------------------------------------------------------
# This module embeds with services that speak like OpenAI's.


TEXTS_PER_REQUEST = 96
"""Texts of one request; services refuse more than some thousands, and large bodies before."""


@dataclass(frozen=True, slots=True)
class OpenAIProvider:
    """Asks `/embeddings`, many texts at a time."""

    service: EmbeddingClient

    @classmethod
    def at(
        cls, base_url: str, model: str, key: str | None, patience: EmbeddingRetryPolicy
    ) -> OpenAIProvider:
        """Return the provider for an address; without a key nothing says who asks."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return cls(EmbeddingClient(base_url, model, headers, key, patience))

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.service.model

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Matrix:
        """Return a unit vector for each text; a query is embedded like a document."""
        check_texts(texts)
        parts = [
            texts[at : at + TEXTS_PER_REQUEST] for at in range(0, len(texts), TEXTS_PER_REQUEST)
        ]
        found = [self._part(part, dimension) for part in parts]
        return np.concatenate(found) if found else np.zeros((0, dimension), np.float32)

    def _part(self, texts: Sequence[str], dimension: int) -> Matrix:
        body = {"model": self.model, "input": list(texts), "dimensions": dimension}
        answer = self.service.ask("embeddings", body)
        return unit_vectors(
            _response_vectors(answer, texts, self.model), texts, dimension, self.model
        )


def _response_vectors(answer: Any, texts: Sequence[str], model: str) -> list[Any]:  # noqa: ANN401 - parsed JSON
    """Return the vectors in the order of the texts, wherever the answer put them."""
    try:
        found = {
            int(row.get("index", at)): row["embedding"] for at, row in enumerate(answer["data"])
        }
        return [found[place] for place in range(len(texts))]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise bad_response_error(
            f"model {model} did not give a vector for each text", model
        ) from error


# ----------------------------------------------------------------------
# This module embeds with Google's service.


MAX_CONCURRENT_REQUESTS = 8
"""Requests under way at the same time: one is for one text."""
_TASK_TYPES = {Role.QUERY: "RETRIEVAL_QUERY", Role.DOCUMENT: "RETRIEVAL_DOCUMENT"}


@dataclass(frozen=True, slots=True)
class GeminiProvider:
    """Asks `models/…:embedContent`, text by text."""

    service: EmbeddingClient

    @classmethod
    def at(
        cls, base_url: str, model: str, key: str, patience: EmbeddingRetryPolicy
    ) -> GeminiProvider:
        """Return the provider for an address."""
        return cls(EmbeddingClient(base_url, model, {"x-goog-api-key": key}, key, patience))

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.service.model

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Matrix:
        """Return a unit vector for each text."""
        check_texts(texts)

        def one(text: str) -> Matrix:
            return unit_vectors([self._ask(text, dimension, role)], [text], dimension, self.model)

        with ThreadPoolExecutor(MAX_CONCURRENT_REQUESTS) as threads:
            found = list(threads.map(one, texts))
        return np.concatenate(found) if found else np.zeros((0, dimension), np.float32)

    def _ask(self, text: str, dimension: int, role: Role) -> Any:  # noqa: ANN401 - parsed JSON
        body = {
            "model": f"models/{self.model}",
            "content": {"parts": [{"text": text}]},
            "taskType": _TASK_TYPES[role],
            "outputDimensionality": dimension,
        }
        answer = self.service.ask(f"models/{quote(self.model, safe='')}:embedContent", body)
        try:
            return answer["embedding"]["values"]
        except (KeyError, TypeError) as error:
            message = f"model {self.model} answered without a vector"
            raise bad_response_error(message, self.model) from error
