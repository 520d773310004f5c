"""Choose the provider that embeds: a pure function of a profile and an environment.

Texts leave this machine only when a service is configured: by a profile, a provider, an address or
the key of a service.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias
from urllib.parse import urlsplit

from omnigraph.embed.gemini import GeminiProvider
from omnigraph.embed.local import MODEL as LOCAL_MODEL
from omnigraph.embed.local import LocalProvider
from omnigraph.embed.mock import MockProvider
from omnigraph.embed.openai import OpenAIProvider
from omnigraph.embed.provider import Provider
from omnigraph.embed.remote import Patience
from omnigraph.embed.sentences import SentenceProvider
from omnigraph.errors import InvalidInput

PROVIDER = "OMNIGRAPH_EMBED_PROVIDER"
BASE_URL = "OMNIGRAPH_EMBED_BASE_URL"
MODEL = "OMNIGRAPH_EMBED_MODEL"
DEADLINE = "OMNIGRAPH_EMBED_DEADLINE_MS"
TIMEOUT = "OMNIGRAPH_EMBED_TIMEOUT_MS"
ATTEMPTS = "OMNIGRAPH_EMBED_RETRY_ATTEMPTS"
BACKOFF = "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS"
MOCK = "OMNIGRAPH_EMBEDDINGS_MOCK"

_YES = {"1", "true", "yes", "on"}
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PROFILE = {"kind", "provider", "base_url", "model", "api_key"}
_log = logging.getLogger("omnigraph.embed")


class Kind(StrEnum):
    """The providers there are."""

    LOCAL = "local"
    OPENAI_COMPATIBLE = "openai-compatible"
    OPENAI = "openai"
    GEMINI = "gemini"
    SENTENCE_TRANSFORMERS = "sentence-transformers"
    MOCK = "mock"


@dataclass(frozen=True, slots=True)
class Remote:
    """What a service is called by default, and where the key for it is looked for."""

    base_url: str
    model: str
    keys: tuple[str, ...]


REMOTES: Mapping[Kind, Remote] = {
    Kind.OPENAI_COMPATIBLE: Remote(
        "https://openrouter.ai/api/v1",
        "openai/text-embedding-3-large",
        ("OPENROUTER_API_KEY", "OPENAI_API_KEY"),
    ),
    Kind.OPENAI: Remote("https://api.openai.com/v1", "text-embedding-3-large", ("OPENAI_API_KEY",)),
    Kind.GEMINI: Remote(
        "https://generativelanguage.googleapis.com/v1beta",
        "gemini-embedding-2",
        ("GEMINI_API_KEY",),
    ),
}
_MODELS = {
    Kind.LOCAL: LOCAL_MODEL,
    Kind.SENTENCE_TRANSFORMERS: "all-MiniLM-L6-v2",
    Kind.MOCK: "",
    **{kind: remote.model for kind, remote in REMOTES.items()},
}
_BY_KEY = {
    "OPENROUTER_API_KEY": Kind.OPENAI_COMPATIBLE,
    "OPENAI_API_KEY": Kind.OPENAI,
    "GEMINI_API_KEY": Kind.GEMINI,
}
"""The provider each key chooses when no provider is named; the first key that is set decides."""
_OWNERS = {**{str(kind): kind for kind in Kind}, "google": Kind.GEMINI}
"""What may precede the name of a model, as in `openai/text-embedding-3-large`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Which provider, under which name of a model, and how to reach it."""

    kind: Kind
    model: str
    base_url: str | None = None
    key: str | None = field(default=None, repr=False)
    patience: Patience = field(default_factory=Patience)


def read_settings(profile: Mapping[str, str] | None, environ: Mapping[str, str]) -> Settings:
    """Return what a profile asks for, or without one what an environment asks for."""
    patience = _patience(environ)
    if profile is not None:
        return _from_profile(profile, environ, patience)
    if environ.get(MOCK, "").strip().lower() in _YES:
        _log.warning("%s is set: vectors are made up and say nothing about texts", MOCK)
        return Settings(kind=Kind.MOCK, model=environ.get(MODEL, "").strip())
    base_url = environ.get(BASE_URL, "").strip() or None
    default = _by_key(environ) if base_url is None else Kind.OPENAI_COMPATIBLE
    kind = _kind(environ.get(PROVIDER, "").strip() or default, PROVIDER)
    names = REMOTES[kind].keys if kind in REMOTES else ()
    key = next((environ[name].strip() for name in names if environ.get(name, "").strip()), None)
    wanted = f"set {' or '.join(names)}"
    return _settings(kind, environ.get(MODEL), base_url, (key, wanted), patience)


def _by_key(environ: Mapping[str, str]) -> Kind:
    """Return the provider that the keys of an environment choose; without any, the local one."""
    if same_model(environ.get(MODEL, "").strip(), LOCAL_MODEL):
        return Kind.LOCAL
    chosen = (kind for name, kind in _BY_KEY.items() if environ.get(name, "").strip())
    return next(chosen, Kind.LOCAL)


def settings_for(model: str, environ: Mapping[str, str]) -> Settings | None:
    """Return what embeds by a model that vectors were made by; None if the environment has nothing.

    An environment that names a provider, an address or a model is not second-guessed. A service is
    chosen only if its key is set.
    """
    if any(environ.get(name, "").strip() for name in (MOCK, PROVIDER, BASE_URL, MODEL)):
        return None
    if same_model(model, LOCAL_MODEL):
        return Settings(kind=Kind.LOCAL, model=LOCAL_MODEL)
    owner, name, patience = _owner(model), canonical(model), _patience(environ)
    if owner is not None and owner not in REMOTES:
        offline = Settings(kind=owner, model=name, patience=patience)
        return offline if owner is Kind.SENTENCE_TRANSFORMERS else None
    # The service whose model it is comes before one that resells it.
    for variable, kind in reversed(_BY_KEY.items()):
        key = environ.get(variable, "").strip()
        resold = kind is Kind.OPENAI_COMPATIBLE and owner is not None
        if key and (owner is kind or resold or same_model(model, REMOTES[kind].model)):
            own = name if owner is kind else model
            named = REMOTES[kind].model if owner is None else own
            return _settings(kind, named, None, (key, ""), patience)
    return None


def canonical(model: str) -> str:
    """Return the name of a model without the provider that may precede it.

    A provider alone stands for its default model.

    >>> canonical("openai/text-embedding-3-large")
    'text-embedding-3-large'
    >>> canonical("openai")
    'text-embedding-3-large'
    >>> canonical("acme/m1")
    'acme/m1'
    """
    if model in _OWNERS:
        return canonical(_MODELS[_OWNERS[model]])
    return model.partition("/")[2] if _owner(model) is not None else model


def same_model(one: str, other: str) -> bool:
    """Return whether two names mean one model, whichever provider computes it."""
    return canonical(one) == canonical(other)


def _owner(model: str) -> Kind | None:
    word, slash, _ = model.partition("/")
    return _OWNERS.get(word) if slash else None


def read_model(text: object) -> str:
    """Return the model a user names as `provider/model`; a provider alone has a default one."""
    if not isinstance(text, str) or not text.strip():
        message = "the model that made vectors is a text such as 'openai/text-embedding-3-large'"
        raise InvalidInput(message, code="embedding_model_invalid")
    name = text.strip()
    return _MODELS[_OWNERS[name]] if name in _OWNERS else name


VectorsFrom: TypeAlias = str | Mapping[str, str] | None
"""The model that made vectors: of every property, or by `Type.property`; None is unknown."""


def read_models(given: VectorsFrom) -> VectorsFrom:
    """Return the models that a user names, for every property or by `Type.property`."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {str(place): read_model(model) for place, model in given.items()}
    return read_model(given)


def model_of(given: VectorsFrom, place: str) -> str | None:
    """Return the model that made the vectors given to a property, named `Type.property`."""
    return given.get(place) if isinstance(given, Mapping) else given


def _from_profile(
    profile: Mapping[str, str], environ: Mapping[str, str], patience: Patience
) -> Settings:
    unknown = sorted(set(profile) - _PROFILE)
    if unknown:
        known = ", ".join(sorted(_PROFILE))
        raise _invalid(f"unknown key '{unknown[0]}' in the embedding profile; it has {known}")
    if "kind" in profile and "provider" in profile:
        raise _invalid("`kind` and `provider` of an embedding profile mean the same: give one")
    word = profile.get("kind") or profile.get("provider") or Kind.OPENAI_COMPATIBLE
    kind = _kind(word, "the kind of the embedding profile")
    key = None
    if kind in REMOTES:
        key = _referred(profile.get("api_key"), environ)
    base_url = profile.get("base_url") or None
    return _settings(kind, profile.get("model"), base_url, (key, ""), patience)


def _referred(text: str | None, environ: Mapping[str, str]) -> str:
    """Return the key a profile refers to; a key itself has no place in a profile."""
    if not text:
        message = "the embedding profile needs api_key, as ${NAME} of an environment variable"
        raise InvalidInput(message, code="embedding_api_key_required")
    reference = _REFERENCE.fullmatch(text.strip())
    if reference is None:
        message = "api_key of an embedding profile is ${NAME} of an environment variable, no key"
        raise InvalidInput(message, code="embedding_api_key_inline")
    found = environ.get(reference[1], "").strip()
    if not found:
        message = f"the embedding profile refers to {reference[1]}, which is not set"
        raise InvalidInput(message, code="embedding_api_key_missing", variable=reference[1])
    return found


def _settings(
    kind: Kind,
    model: str | None,
    base_url: str | None,
    key: tuple[str | None, str],
    patience: Patience,
) -> Settings:
    named = (model or "").strip() or _MODELS[kind]
    if kind is Kind.LOCAL and named != LOCAL_MODEL:
        message = f"provider local has no model '{named}': it is {LOCAL_MODEL}; unset {MODEL}"
        raise _invalid(message, model=named)
    if kind not in REMOTES:
        return Settings(kind=kind, model=named, patience=patience)
    address = base_url or REMOTES[kind].base_url
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _invalid("the address of an embedding service begins with https:// or http://")
    found, wanted = key
    # A service of one's own, at an address one gave, may ask for no key.
    if found is None and (base_url is None or kind is Kind.GEMINI):
        message = f"provider {kind} needs a key: {wanted}"
        raise InvalidInput(message, code="embedding_api_key_missing", provider=str(kind))
    return Settings(kind=kind, model=named, base_url=address, key=found, patience=patience)


def _kind(word: str, where: str) -> Kind:
    try:
        return Kind(word)
    except ValueError:
        known = ", ".join(Kind)
        raise _invalid(f"{where} is '{word}', which is none of {known}") from None


def _patience(environ: Mapping[str, str]) -> Patience:
    plain = Patience()
    deadline = _number(environ, DEADLINE, 60_000, least=0) / 1000
    return Patience(
        attempts=_number(environ, ATTEMPTS, plain.attempts, least=1),
        backoff=_number(environ, BACKOFF, 200, least=0) / 1000,
        timeout=_number(environ, TIMEOUT, 30_000, least=1) / 1000,
        deadline=deadline or None,
    )


def _number(environ: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    text = environ.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise _invalid(f"{name} is '{text}', which is no whole number from {least} up")
    return int(text)


def _invalid(message: str, **details: object) -> InvalidInput:
    return InvalidInput(message, code="embedding_config_invalid", **details)


def build(settings: Settings) -> Provider:
    """Return the provider that settings ask for; nothing is loaded or reached yet."""
    address, key, patience = settings.base_url or "", settings.key, settings.patience
    match settings.kind:
        case Kind.LOCAL:
            return LocalProvider()
        case Kind.OPENAI | Kind.OPENAI_COMPATIBLE:
            return OpenAIProvider.at(address, settings.model, key, patience)
        case Kind.GEMINI:
            return GeminiProvider.at(address, settings.model, key or "", patience)
        case Kind.SENTENCE_TRANSFORMERS:
            return SentenceProvider(settings.model)
        case Kind.MOCK:
            return MockProvider(settings.model)
