"""This module embeds texts with a model of sentence-transformers, which is installed separately."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from threading import Lock
from typing import Any

from omnigraph.embed.provider import Matrix, Role, check_texts, unit_vectors
from omnigraph.errors import Category, OmniError

LIBRARY = "sentence_transformers"


class SentenceProvider:
    """Runs a transformer in this process; `model` is a name of the library's, or a folder."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._loaded: Any = None
        self._lock = Lock()

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Matrix:
        """Return a unit vector for each text."""
        check_texts(texts)
        rows = self._transformer().encode(list(texts), show_progress_bar=False)
        return unit_vectors(rows, texts, dimension, self.model)

    def _transformer(self) -> Any:  # noqa: ANN401 - a library that may not be there
        with self._lock:
            if self._loaded is None:
                self._loaded = _library().SentenceTransformer(self.model)
            return self._loaded


def _library() -> Any:  # noqa: ANN401 - a library that may not be there
    try:
        return import_module(LIBRARY)
    except ImportError as error:
        raise OmniError(
            "provider sentence-transformers needs a library that is not installed: "
            "pip install sentence-transformers",
            code="embedding_library_missing",
            category=Category.UNAVAILABLE,
        ) from error
