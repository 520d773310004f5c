"""This module embeds with Google's service."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np

from omnigraph.embed.provider import Matrix, Role, bad_answer, check_texts, unit_vectors
from omnigraph.embed.remote import Patience, Service

SIDE_BY_SIDE = 8
"""Requests under way at the same time: one is for one text."""
_TASKS = {Role.QUERY: "RETRIEVAL_QUERY", Role.DOCUMENT: "RETRIEVAL_DOCUMENT"}


@dataclass(frozen=True, slots=True)
class GeminiProvider:
    """Asks `models/…:embedContent`, text by text."""

    service: Service

    @classmethod
    def at(cls, base_url: str, model: str, key: str, patience: Patience) -> GeminiProvider:
        """Return the provider for an address."""
        return cls(Service(base_url, model, {"x-goog-api-key": key}, key, patience))

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.service.model

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Matrix:
        """Return a unit vector for each text."""
        check_texts(texts)

        def one(text: str) -> Matrix:
            return unit_vectors([self._ask(text, dimension, role)], [text], dimension, self.model)

        with ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
            found = list(threads.map(one, texts))
        return np.concatenate(found) if found else np.zeros((0, dimension), np.float32)

    def _ask(self, text: str, dimension: int, role: Role) -> Any:  # noqa: ANN401 - parsed JSON
        body = {
            "model": f"models/{self.model}",
            "content": {"parts": [{"text": text}]},
            "taskType": _TASKS[role],
            "outputDimensionality": dimension,
        }
        answer = self.service.ask(f"models/{quote(self.model, safe='')}:embedContent", body)
        try:
            return answer["embedding"]["values"]
        except (KeyError, TypeError) as error:
            message = f"model {self.model} answered without a vector"
            raise bad_answer(message, self.model) from error
