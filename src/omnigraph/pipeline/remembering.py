"""This module lets a worker embed each text once in a run, whatever parts it comes in."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from omnigraph.embed import Embedder, Role
from omnigraph.embed.provider import Matrix

MAX_TEXTS = 65_536
"""Vectors a worker remembers; the oldest give way."""

_current: tuple[str, Remembering] | None = None


class Remembering(Embedder):
    """An embedder that remembers vectors by a digest of their text."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self._inner = embedder
        self._known: OrderedDict[bytes, Any] = OrderedDict()

    @property
    def model(self) -> str:
        """The name of the model that embeds."""
        return self._inner.model

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Matrix:
        """Return a unit vector for each text, in order."""
        digests = [_digest(text, dimension, role) for text in texts]
        new = {
            digest: text
            for digest, text in zip(digests, texts, strict=True)
            if digest not in self._known
        }
        if new:
            vectors = self._inner.embed(list(new.values()), dimension, role)
            self._known.update(zip(new, vectors, strict=True))
        found = [self._known[digest] for digest in digests]
        while len(self._known) > MAX_TEXTS:
            self._known.popitem(last=False)
        return np.array(found, np.float32).reshape(len(texts), dimension)


def _digest(text: str, dimension: int, role: Role) -> bytes:
    return blake2b(f"{dimension} {role} {text}".encode(), digest_size=16).digest()


def remembering(run: str, embedder: Embedder) -> Embedder:
    """Return the embedder of a run that this process remembers, made when first needed."""
    global _current
    if _current is None or _current[0] != run:
        _current = (run, Remembering(embedder))
    return _current[1]
