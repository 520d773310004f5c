"""Providers that call an HTTP service, with retries and a deadline.

Messages contain the host and the response, never the API key.
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
    """Number of attempts, first backoff, timeout per request and total deadline, in seconds.

    The backoff doubles after each attempt; `deadline` None means no limit.
    """

    attempts: int = 4
    backoff: float = 0.2
    timeout: float = 30.0
    deadline: float | None = 60.0


class _RetryableFailure(Exception):
    """An attempt failed with an error that a retry may not have."""


@dataclass(slots=True)
class EmbeddingClient:
    """A client of a JSON service; messages never contain `secret`."""

    base_url: str
    model: str
    headers: Mapping[str, str] = field(repr=False)
    secret: str | None = field(default=None, repr=False)
    retry_policy: EmbeddingRetryPolicy = field(default_factory=EmbeddingRetryPolicy)
    _client: Any = field(default=None, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - parsed JSON
        """Return the response of the service; raise OmniError if there is none."""
        retry_policy, started = self.retry_policy, time.monotonic()
        end = None if retry_policy.deadline is None else started + retry_policy.deadline
        for attempt in range(1, retry_policy.attempts + 1):
            try:
                return self._try(path, body, end)
            except _RetryableFailure as failure:
                pause = retry_policy.backoff * 2 ** (attempt - 1)
                if attempt == retry_policy.attempts:
                    reason, code = f"{failure} ({attempt} attempts)", "embedding_unavailable"
                    raise self._error(reason, code, Category.UNAVAILABLE) from failure
                if end is not None and time.monotonic() + pause >= end:
                    reason = f"{failure}, and OMNIGRAPH_EMBED_DEADLINE_MS has passed"
                    raise self._error(reason, "embedding_deadline", Category.LIMIT) from failure
                _log.info("%s: %s; retrying in %.1f s", self.host, failure, pause)
                time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    @property
    def host(self) -> str:
        """The host and port of the service, for messages."""
        parts = urlsplit(self.base_url)
        return (parts.hostname or "") + (f":{parts.port}" if parts.port else "")

    def _try(self, path: str, body: Mapping[str, Any], end: float | None) -> Any:  # noqa: ANN401
        # Imported late: it is slow to load and often not needed.
        import httpx  # noqa: PLC0415

        begun = time.monotonic()
        limit = begun + self.retry_policy.timeout
        limit = limit if end is None else min(limit, end)
        address = f"{self.base_url.rstrip('/')}/{path}"
        try:
            with self._open().stream(
                "POST", address, json=dict(body), timeout=max(limit - begun, 0.001)
            ) as response:
                content = b""
                for chunk in response.iter_bytes():
                    content += chunk
                    # The timeout of httpx is per read, not per response.
                    if time.monotonic() > limit:
                        raise _RetryableFailure("timed out")
                status = response.status_code
        except httpx.TimeoutException as error:
            raise _RetryableFailure("timed out") from error
        except httpx.TransportError as error:
            raise _RetryableFailure(self._clean(f"cannot be reached: {error}")) from error
        except httpx.InvalidURL as error:
            raise self._refused(f"its URL is invalid: {error}", 0) from error
        return self._read(status, content)

    def _read(self, status: int, content: bytes) -> Any:  # noqa: ANN401 - parsed JSON
        excerpt = self._clean(content[:_EXCERPT_CHARS].decode(errors="replace").strip())
        if status == _TOO_MANY_REQUESTS or status >= _SERVER_ERROR:
            raise _RetryableFailure(f"returned HTTP {status}: {excerpt}")
        if not 200 <= status < 300:
            raise self._refused(f"returned HTTP {status}: {excerpt}", status)
        try:
            return json.loads(content)
        except ValueError as error:
            message = f"embedding service {self.host} did not return JSON: {excerpt}"
            raise bad_response_error(message, self.model) from error

    def _open(self) -> Any:  # noqa: ANN401 - a client of a library imported late
        import httpx  # noqa: PLC0415 - as above

        with self._lock:
            if self._client is None:
                self._client = httpx.Client(headers=dict(self.headers))
            return self._client

    def _clean(self, text: str) -> str:
        return text.replace(self.secret, "***") if self.secret else text

    def _refused(self, reason: str, status: int) -> OmniError:
        kind = Category.DENIED if status in (401, 403) else Category.INVALID
        return self._error(reason, "embedding_refused", kind)

    def _error(self, reason: str, code: str, category: Category) -> OmniError:
        message = f"embedding service {self.host} (model {self.model}): {reason}"
        details = {"host": self.host, "model": self.model}
        return OmniError(message, code=code, category=category, details=details)


# --- services with the OpenAI API ---------------------------------------------------------------


TEXTS_PER_REQUEST = 96
"""Texts per request; services limit their number and the size of bodies."""


@dataclass(frozen=True, slots=True)
class _ServiceProvider:
    """A provider that calls a service."""

    service: EmbeddingClient

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.service.model


class OpenAIProvider(_ServiceProvider):
    """Calls `/embeddings` with many texts per request."""

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Matrix:
        """Return a unit vector for each text; a query is embedded like a document."""
        check_texts(texts)
        parts = [
            texts[at : at + TEXTS_PER_REQUEST] for at in range(0, len(texts), TEXTS_PER_REQUEST)
        ]
        vectors = [self._part(part, dimension) for part in parts]
        return np.concatenate(vectors) if vectors else np.zeros((0, dimension), np.float32)

    def _part(self, texts: Sequence[str], dimension: int) -> Matrix:
        body = {"model": self.model, "input": list(texts), "dimensions": dimension}
        response = self.service.post("embeddings", body)
        return unit_vectors(
            _response_vectors(response, texts, self.model), texts, dimension, self.model
        )


def _response_vectors(response: Any, texts: Sequence[str], model: str) -> list[Any]:  # noqa: ANN401 - parsed JSON
    """Return the vectors in the order of the texts, by their index in the response."""
    try:
        vectors = {
            int(row.get("index", at)): row["embedding"] for at, row in enumerate(response["data"])
        }
        return [vectors[index] for index in range(len(texts))]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise bad_response_error(
            f"model {model} did not return a vector for each text", model
        ) from error


# --- Google Gemini -------------------------------------------------------------------------------


MAX_CONCURRENT_REQUESTS = 8
"""Concurrent requests; each is for one text."""
_TASK_TYPES = {Role.QUERY: "RETRIEVAL_QUERY", Role.DOCUMENT: "RETRIEVAL_DOCUMENT"}


class GeminiProvider(_ServiceProvider):
    """Calls `models/…:embedContent` once per text."""

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Matrix:
        """Return a unit vector for each text."""
        check_texts(texts)

        def one(text: str) -> Matrix:
            return unit_vectors([self._post(text, dimension, role)], [text], dimension, self.model)

        with ThreadPoolExecutor(MAX_CONCURRENT_REQUESTS) as threads:
            vectors = list(threads.map(one, texts))
        return np.concatenate(vectors) if vectors else np.zeros((0, dimension), np.float32)

    def _post(self, text: str, dimension: int, role: Role) -> Any:  # noqa: ANN401 - parsed JSON
        body = {
            "model": f"models/{self.model}",
            "content": {"parts": [{"text": text}]},
            "taskType": _TASK_TYPES[role],
            "outputDimensionality": dimension,
        }
        response = self.service.post(f"models/{quote(self.model, safe='')}:embedContent", body)
        try:
            return response["embedding"]["values"]
        except (KeyError, TypeError) as error:
            message = f"model {self.model} returned no vector"
            raise bad_response_error(message, self.model) from error
