"""This module embeds with services that speak like OpenAI's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnigraph.embed.provider import Matrix, Role, bad_answer, check_texts, unit_vectors
from omnigraph.embed.remote import Patience, Service

AT_ONCE = 96
"""Texts of one request; services refuse more than some thousands, and large bodies before."""


@dataclass(frozen=True, slots=True)
class OpenAIProvider:
    """Asks `/embeddings`, many texts at a time."""

    service: Service

    @classmethod
    def at(cls, base_url: str, model: str, key: str | None, patience: Patience) -> OpenAIProvider:
        """Return the provider for an address; without a key nothing says who asks."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return cls(Service(base_url, model, headers, key, patience))

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.service.model

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Matrix:
        """Return a unit vector for each text; a query is embedded like a document."""
        check_texts(texts)
        parts = [texts[at : at + AT_ONCE] for at in range(0, len(texts), AT_ONCE)]
        found = [self._part(part, dimension) for part in parts]
        return np.concatenate(found) if found else np.zeros((0, dimension), np.float32)

    def _part(self, texts: Sequence[str], dimension: int) -> Matrix:
        body = {"model": self.model, "input": list(texts), "dimensions": dimension}
        answer = self.service.ask("embeddings", body)
        return unit_vectors(_rows(answer, texts, self.model), texts, dimension, self.model)


def _rows(answer: Any, texts: Sequence[str], model: str) -> list[Any]:  # noqa: ANN401 - parsed JSON
    """Return the vectors in the order of the texts, wherever the answer put them."""
    try:
        found = {
            int(row.get("index", at)): row["embedding"] for at, row in enumerate(answer["data"])
        }
        return [found[place] for place in range(len(texts))]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise bad_answer(f"model {model} did not give a vector for each text", model) from error
