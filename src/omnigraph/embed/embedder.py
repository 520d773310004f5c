"""The embedder of a graph handle: builds its provider at the first text and keeps it.

The environment is read here. Equal texts of one call are embedded once.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, TypeAlias

from omnigraph.embed.config import (
    MODEL_VARIABLE,
    PROVIDER_VARIABLE,
    REMOTE_DEFAULTS,
    EmbeddingSettings,
    build_provider,
    read_settings,
    same_model,
    settings_for_model,
)
from omnigraph.embed.provider import Matrix, Provider, Role, check_vectors
from omnigraph.errors import Category, OmniError

ProviderChoice: TypeAlias = Provider | Mapping[str, str] | EmbeddingSettings | None
"""A provider, a profile, or settings; None means that the environment decides."""


class Embedder:
    """Embeds texts with the configured provider."""

    def __init__(
        self, choice: ProviderChoice = None, environ: Mapping[str, str] | None = None
    ) -> None:
        self._choice = choice
        self._environ = environ
        self._provider: Provider | None = None
        self._others: dict[EmbeddingSettings, Embedder] = {}
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[Embedder], tuple[Any]]:
        """Pickle with the settings that the environment of this process gives."""
        choice = self._choice
        # Invalid settings are reported when the first text is embedded.
        with suppress(OmniError):
            choice = self._settled
        return (Embedder, (choice,))

    @property
    def provider(self) -> Provider:
        """The provider; raises OmniError if the settings are invalid."""
        with self._lock:
            if self._provider is None:
                choice = self._settled
                if isinstance(choice, EmbeddingSettings):
                    choice = build_provider(choice)
                self._provider = choice
            return self._provider

    @property
    def _settled(self) -> Provider | EmbeddingSettings:
        choice = self._choice
        if choice is None or isinstance(choice, Mapping):
            choice = read_settings(choice, self._known_environ)
        return choice

    @property
    def name(self) -> str:
        """The name of the provider in messages."""
        choice = self._settled
        return str(choice.kind) if isinstance(choice, EmbeddingSettings) else type(choice).__name__

    @property
    def is_local(self) -> bool:
        """Whether texts are embedded in this process, as far as that is known."""
        choice = self._settled
        return isinstance(choice, EmbeddingSettings) and choice.kind not in REMOTE_DEFAULTS

    @property
    def _known_environ(self) -> Mapping[str, str]:
        return os.environ if self._environ is None else self._environ

    @property
    def model(self) -> str:
        """The name of the model that embeds."""
        return self.provider.model

    def for_model(self, model: str | None) -> Embedder:
        """Return an embedder of a model if the environment allows it, else this one."""
        if model is None or self._choice is not None:
            return self
        settings = settings_for_model(model, self._known_environ)
        if settings is None:
            return self
        with self._lock:
            return self._others.setdefault(settings, Embedder(settings))

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Matrix:
        """Return a unit vector for each text, in order."""
        distinct = list(dict.fromkeys(texts))
        answer = self.provider.embed(distinct, dimension, role)
        vectors = check_vectors(answer, distinct, dimension, self.model)
        if len(distinct) == len(texts):
            return vectors
        indices = {text: index for index, text in enumerate(distinct)}
        return vectors[[indices[text] for text in texts]]


def embedder_for_model(
    embedder: Embedder, place: str, declared: str | None, others: Collection[str | None]
) -> Embedder:
    """Return the embedder for a vector property, with the model of its existing vectors.

    `declared` is the model in the schema, `others` are those of existing vectors; None means an
    unknown model.
    """
    recorded = sorted(model for model in others if model is not None)
    if declared is None and None in others:
        raise unknown_model_error(place)
    chosen = embedder.for_model(declared if declared is not None else next(iter(recorded), None))
    check_model(place, declared, chosen.model, declared=True)
    for model in recorded:
        check_model(place, model, chosen.model, declared=False)
    return chosen


def check_model(
    place: str, expected: str | None, model: str, *, declared: bool, supplied: bool = False
) -> None:
    """Raise OmniError if a vector property needs another model than texts or vectors have.

    `declared`: the expected model is that of the schema, not that of existing vectors. `supplied`:
    the vectors are given, not computed.
    """
    if expected is None or same_model(expected, model):
        return
    why = "is declared with" if declared else "holds vectors of"
    if supplied:
        problem, advice = f"the vectors given are of '{model}'", "load vectors of that model"
        advice += "" if declared else ", or replace every vector with mode overwrite"
    else:
        problem = f"texts are embedded by '{model}'"
        advice = f"set {MODEL_VARIABLE} (and {PROVIDER_VARIABLE}) to what gives '{expected}'"
        advice += "" if declared else ", or embed it again with --all"
    raise OmniError(
        f"{place} {why} model '{expected}', but {problem}: {advice}",
        code="embedding_model_mismatch",
        category=Category.CONFLICT,
        details={"property": place, "wanted": expected, "model": model},
    )


def unknown_model_error(place: str) -> OmniError:
    """Return the error for texts of a property with vectors of unknown models."""
    return OmniError(
        f"{place} holds vectors of an unknown model, or of several, so no text can be embedded to "
        "go with them: declare the model in the schema with "
        '@embed(text, model="provider/model"), load the vectors with vectors_from '
        "(--vectors-from provider/model), pass a vector instead of a text, or embed every text "
        "again (omnigraph embed --all)",
        code="embedding_model_unknown",
        category=Category.CONFLICT,
        details={"property": place},
    )
