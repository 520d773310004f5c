"""This module decides which provider embeds: a pure function of a profile and an environment.

Texts leave this machine only when a provider or an address was named.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
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
    default = Kind.LOCAL if base_url is None else Kind.OPENAI_COMPATIBLE
    kind = _kind(environ.get(PROVIDER, "").strip() or default, PROVIDER)
    names = REMOTES[kind].keys if kind in REMOTES else ()
    key = next((environ[name].strip() for name in names if environ.get(name, "").strip()), None)
    wanted = f"set {' or '.join(names)}"
    return _settings(kind, environ.get(MODEL), base_url, (key, wanted), patience)


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
