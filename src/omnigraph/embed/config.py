"""Choose the provider that embeds: a pure function of a profile and an environment.

Texts are sent to a service only if one is configured: by a profile, a provider, a base URL or the
API key of a service.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias
from urllib.parse import urlsplit

from omnigraph.embed.local_providers import LOCAL_MODEL as LOCAL_MODEL
from omnigraph.embed.local_providers import (
    LocalProvider,
    MockProvider,
    SentenceTransformersProvider,
)
from omnigraph.embed.provider import Provider
from omnigraph.embed.remote_providers import (
    EmbeddingClient,
    EmbeddingRetryPolicy,
    GeminiProvider,
    OpenAIProvider,
)
from omnigraph.errors import InvalidInput

PROVIDER_VARIABLE = "OMNIGRAPH_EMBED_PROVIDER"
BASE_URL_VARIABLE = "OMNIGRAPH_EMBED_BASE_URL"
MODEL_VARIABLE = "OMNIGRAPH_EMBED_MODEL"
DEADLINE_VARIABLE = "OMNIGRAPH_EMBED_DEADLINE_MS"
TIMEOUT_VARIABLE = "OMNIGRAPH_EMBED_TIMEOUT_MS"
ATTEMPTS_VARIABLE = "OMNIGRAPH_EMBED_RETRY_ATTEMPTS"
BACKOFF_VARIABLE = "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS"
MOCK_VARIABLE = "OMNIGRAPH_EMBEDDINGS_MOCK"

_TRUE_WORDS = {"1", "true", "yes", "on"}
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PROFILE_KEYS = {"kind", "provider", "base_url", "model", "api_key"}
_log = logging.getLogger("omnigraph.embed")


class ProviderKind(StrEnum):
    """The available providers."""

    LOCAL = "local"
    OPENAI_COMPATIBLE = "openai-compatible"
    OPENAI = "openai"
    GEMINI = "gemini"
    SENTENCE_TRANSFORMERS = "sentence-transformers"
    MOCK = "mock"


@dataclass(frozen=True, slots=True)
class RemoteDefaults:
    """The default base URL and model of a service, and the variables of its API key."""

    base_url: str
    model: str
    keys: tuple[str, ...]


REMOTE_DEFAULTS: Mapping[ProviderKind, RemoteDefaults] = {
    ProviderKind.OPENAI_COMPATIBLE: RemoteDefaults(
        "https://openrouter.ai/api/v1",
        "openai/text-embedding-3-large",
        ("OPENROUTER_API_KEY", "OPENAI_API_KEY"),
    ),
    ProviderKind.OPENAI: RemoteDefaults(
        "https://api.openai.com/v1", "text-embedding-3-large", ("OPENAI_API_KEY",)
    ),
    ProviderKind.GEMINI: RemoteDefaults(
        "https://generativelanguage.googleapis.com/v1beta",
        "gemini-embedding-2",
        ("GEMINI_API_KEY",),
    ),
}
_DEFAULT_MODELS = {
    ProviderKind.LOCAL: LOCAL_MODEL,
    ProviderKind.SENTENCE_TRANSFORMERS: "all-MiniLM-L6-v2",
    ProviderKind.MOCK: "",
    **{kind: remote.model for kind, remote in REMOTE_DEFAULTS.items()},
}
_PROVIDER_BY_KEY = {
    "OPENROUTER_API_KEY": ProviderKind.OPENAI_COMPATIBLE,
    "OPENAI_API_KEY": ProviderKind.OPENAI,
    "GEMINI_API_KEY": ProviderKind.GEMINI,
}
"""The provider each key chooses when no provider is named; the first key that is set decides."""
_PROVIDER_PREFIXES = {**{str(kind): kind for kind in ProviderKind}, "google": ProviderKind.GEMINI}
"""Prefixes of model names, as in `openai/text-embedding-3-large`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSettings:
    """The provider, its model and how to reach it."""

    kind: ProviderKind
    model: str
    base_url: str | None = None
    key: str | None = field(default=None, repr=False)
    retry_policy: EmbeddingRetryPolicy = field(default_factory=EmbeddingRetryPolicy)


def read_settings(
    profile: Mapping[str, str] | None, environ: Mapping[str, str]
) -> EmbeddingSettings:
    """Return the settings of a profile or, without one, of an environment."""
    retry_policy = _read_retry_policy(environ)
    if profile is not None:
        return _from_profile(profile, environ, retry_policy)
    if environ.get(MOCK_VARIABLE, "").strip().lower() in _TRUE_WORDS:
        _log.warning("%s is set: vectors are random and have no meaning", MOCK_VARIABLE)
        return EmbeddingSettings(
            kind=ProviderKind.MOCK, model=environ.get(MODEL_VARIABLE, "").strip()
        )
    base_url = environ.get(BASE_URL_VARIABLE, "").strip() or None
    default = _provider_by_key(environ) if base_url is None else ProviderKind.OPENAI_COMPATIBLE
    kind = _parse_kind(environ.get(PROVIDER_VARIABLE, "").strip() or default, PROVIDER_VARIABLE)
    names = REMOTE_DEFAULTS[kind].keys if kind in REMOTE_DEFAULTS else ()
    key = next((environ[name].strip() for name in names if environ.get(name, "").strip()), None)
    hint = f"set {' or '.join(names)}"
    return _settings(kind, environ.get(MODEL_VARIABLE), base_url, (key, hint), retry_policy)


def _provider_by_key(environ: Mapping[str, str]) -> ProviderKind:
    """Return the provider of the first API key in an environment; without any, the local one."""
    if same_model(environ.get(MODEL_VARIABLE, "").strip(), LOCAL_MODEL):
        return ProviderKind.LOCAL
    chosen = (kind for name, kind in _PROVIDER_BY_KEY.items() if environ.get(name, "").strip())
    return next(chosen, ProviderKind.LOCAL)


def settings_for_model(model: str, environ: Mapping[str, str]) -> EmbeddingSettings | None:
    """Return settings for a model that computed existing vectors; None if there are none.

    An environment that sets a provider, a base URL or a model takes precedence. A service is chosen
    only if its API key is set.
    """
    if any(
        environ.get(name, "").strip()
        for name in (MOCK_VARIABLE, PROVIDER_VARIABLE, BASE_URL_VARIABLE, MODEL_VARIABLE)
    ):
        return None
    if same_model(model, LOCAL_MODEL):
        return EmbeddingSettings(kind=ProviderKind.LOCAL, model=LOCAL_MODEL)
    owner, name, retry_policy = (
        _provider_prefix(model),
        canonical_model_name(model),
        _read_retry_policy(environ),
    )
    if owner is not None and owner not in REMOTE_DEFAULTS:
        offline = EmbeddingSettings(kind=owner, model=name, retry_policy=retry_policy)
        return offline if owner is ProviderKind.SENTENCE_TRANSFORMERS else None
    # The service of the model's vendor is preferred to a reseller.
    for variable, kind in reversed(_PROVIDER_BY_KEY.items()):
        key = environ.get(variable, "").strip()
        resold = kind is ProviderKind.OPENAI_COMPATIBLE and owner is not None
        if key and (owner is kind or resold or same_model(model, REMOTE_DEFAULTS[kind].model)):
            own = name if owner is kind else model
            named = REMOTE_DEFAULTS[kind].model if owner is None else own
            return _settings(kind, named, None, (key, ""), retry_policy)
    return None


def canonical_model_name(model: str) -> str:
    """Return the name of a model without its provider prefix.

    A provider alone means its default model.

    >>> canonical_model_name("openai/text-embedding-3-large")
    'text-embedding-3-large'
    >>> canonical_model_name("openai")
    'text-embedding-3-large'
    >>> canonical_model_name("acme/m1")
    'acme/m1'
    """
    if model in _PROVIDER_PREFIXES:
        return canonical_model_name(_DEFAULT_MODELS[_PROVIDER_PREFIXES[model]])
    return model.partition("/")[2] if _provider_prefix(model) is not None else model


def same_model(one: str, other: str) -> bool:
    """Return whether two names mean one model, whichever provider computes it."""
    return canonical_model_name(one) == canonical_model_name(other)


def _provider_prefix(model: str) -> ProviderKind | None:
    word, slash, _ = model.partition("/")
    return _PROVIDER_PREFIXES.get(word) if slash else None


def read_model(text: object) -> str:
    """Validate a model given as `provider/model`; a provider alone means its default model."""
    if not isinstance(text, str) or not text.strip():
        message = "a vector model must be a string such as 'openai/text-embedding-3-large'"
        raise InvalidInput(message, code="embedding_model_invalid")
    name = text.strip()
    return _DEFAULT_MODELS[_PROVIDER_PREFIXES[name]] if name in _PROVIDER_PREFIXES else name


VectorsFrom: TypeAlias = str | Mapping[str, str] | None
"""The model of supplied vectors: for every property, or by `Type.property`; None is unknown."""


def read_models(models: VectorsFrom) -> VectorsFrom:
    """Validate the models of supplied vectors, for every property or by `Type.property`."""
    if models is None:
        return None
    if isinstance(models, Mapping):
        return {str(place): read_model(model) for place, model in models.items()}
    return read_model(models)


def model_for_property(models: VectorsFrom, place: str) -> str | None:
    """Return the model of the vectors supplied for a property, models as `Type.property`."""
    return models.get(place) if isinstance(models, Mapping) else models


def _from_profile(
    profile: Mapping[str, str], environ: Mapping[str, str], retry_policy: EmbeddingRetryPolicy
) -> EmbeddingSettings:
    unknown = sorted(set(profile) - _PROFILE_KEYS)
    if unknown:
        keys = ", ".join(sorted(_PROFILE_KEYS))
        raise _invalid(f"unknown key '{unknown[0]}' in the embedding profile; use {keys}")
    if "kind" in profile and "provider" in profile:
        raise _invalid(
            "`kind` and `provider` of an embedding profile are the same setting: set only one"
        )
    word = profile.get("kind") or profile.get("provider") or ProviderKind.OPENAI_COMPATIBLE
    kind = _parse_kind(word, "the kind of the embedding profile")
    key = None
    if kind in REMOTE_DEFAULTS:
        key = _resolve_reference(profile.get("api_key"), environ)
    base_url = profile.get("base_url") or None
    return _settings(kind, profile.get("model"), base_url, (key, ""), retry_policy)


def _resolve_reference(text: str | None, environ: Mapping[str, str]) -> str:
    """Return the API key a profile refers to; profiles must not contain the key itself."""
    if not text:
        message = "the embedding profile needs api_key, as ${NAME} of an environment variable"
        raise InvalidInput(message, code="embedding_api_key_required")
    reference = _REFERENCE.fullmatch(text.strip())
    if reference is None:
        message = "api_key of an embedding profile must be ${NAME} of an environment variable"
        raise InvalidInput(message, code="embedding_api_key_inline")
    key = environ.get(reference[1], "").strip()
    if not key:
        message = f"the embedding profile refers to {reference[1]}, which is not set"
        raise InvalidInput(message, code="embedding_api_key_missing", variable=reference[1])
    return key


def _settings(
    kind: ProviderKind,
    model: str | None,
    base_url: str | None,
    key: tuple[str | None, str],
    retry_policy: EmbeddingRetryPolicy,
) -> EmbeddingSettings:
    named = (model or "").strip() or _DEFAULT_MODELS[kind]
    if kind is ProviderKind.LOCAL and named != LOCAL_MODEL:
        message = (
            f"provider local has only model {LOCAL_MODEL}, not '{named}'; unset {MODEL_VARIABLE}"
        )
        raise _invalid(message, model=named)
    if kind not in REMOTE_DEFAULTS:
        return EmbeddingSettings(kind=kind, model=named, retry_policy=retry_policy)
    address = base_url or REMOTE_DEFAULTS[kind].base_url
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _invalid("the base URL of an embedding service must start with https:// or http://")
    api_key, hint = key
    # A self-hosted service at a configured base URL may need no key.
    if api_key is None and (base_url is None or kind is ProviderKind.GEMINI):
        message = f"provider {kind} needs an API key: {hint}"
        raise InvalidInput(message, code="embedding_api_key_missing", provider=str(kind))
    return EmbeddingSettings(
        kind=kind, model=named, base_url=address, key=api_key, retry_policy=retry_policy
    )


def _parse_kind(word: str, where: str) -> ProviderKind:
    try:
        return ProviderKind(word)
    except ValueError:
        kinds = ", ".join(ProviderKind)
        raise _invalid(f"{where} is '{word}'; use one of {kinds}") from None


def _read_retry_policy(environ: Mapping[str, str]) -> EmbeddingRetryPolicy:
    plain = EmbeddingRetryPolicy()
    deadline = _read_number(environ, DEADLINE_VARIABLE, 60_000, least=0) / 1000
    return EmbeddingRetryPolicy(
        attempts=_read_number(environ, ATTEMPTS_VARIABLE, plain.attempts, least=1),
        backoff=_read_number(environ, BACKOFF_VARIABLE, 200, least=0) / 1000,
        timeout=_read_number(environ, TIMEOUT_VARIABLE, 30_000, least=1) / 1000,
        deadline=deadline or None,
    )


def _read_number(environ: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    text = environ.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise _invalid(f"{name} is '{text}'; use a whole number of at least {least}")
    return int(text)


def _invalid(message: str, **details: object) -> InvalidInput:
    return InvalidInput(message, code="embedding_config_invalid", **details)


def build_provider(settings: EmbeddingSettings) -> Provider:
    """Build the provider of settings; models are loaded and services called later."""
    key = settings.key or ""
    match settings.kind:
        case ProviderKind.LOCAL:
            return LocalProvider()
        case ProviderKind.OPENAI | ProviderKind.OPENAI_COMPATIBLE:
            # Without a key, requests are not authenticated.
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            return OpenAIProvider(_service_client(settings, headers))
        case ProviderKind.GEMINI:
            return GeminiProvider(_service_client(settings, {"x-goog-api-key": key}))
        case ProviderKind.SENTENCE_TRANSFORMERS:
            return SentenceTransformersProvider(settings.model)
        case ProviderKind.MOCK:
            return MockProvider(settings.model)


def _service_client(settings: EmbeddingSettings, headers: Mapping[str, str]) -> EmbeddingClient:
    address, policy = settings.base_url or "", settings.retry_policy
    return EmbeddingClient(address, settings.model, headers, settings.key, policy)
