"""This module knows who may ask: bearer tokens, of which only digests are kept."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnigraph.errors import Category, InvalidInput, OmniError
from omnigraph.service.secrets import read_aws_secret

SECRET = "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET"  # noqa: S105 - the name of a variable
FILE = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
INLINE = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
SINGLE = "OMNIGRAPH_SERVER_BEARER_TOKEN"
SINGLE_ACTOR = "default"


class Unauthorized(OmniError):
    """A caller did not say who it is, or is nobody we know."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="unauthorized", category=Category.DENIED)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The digests of all tokens, each with the actor it stands for."""

    entries: tuple[tuple[bytes, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.entries)

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Tokens:
        """Keep tokens by actor; raise InvalidInput for blanks and for what is there twice."""
        entries: dict[bytes, str] = {}
        actors: set[str] = set()
        for actor, token in ((a.strip(), t.strip()) for a, t in pairs):
            if not actor or not token:
                raise _refused(f"the token of actor '{actor}' or the actor itself is blank")
            if actor in actors:
                raise _refused(f"actor '{actor}' has two tokens")
            digest = _digest(token)
            if digest in entries:
                raise _refused(f"actors '{entries[digest]}' and '{actor}' have the same token")
            entries[digest] = actor
            actors.add(actor)
        return cls(tuple(entries.items()))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Tokens:
        """Read the tokens that the variables of the environment give; a blank one is not set."""
        given = {name: text.strip() for name, text in environment.items() if text.strip()}
        if SECRET in given:
            return cls.of(_pairs(read_aws_secret(given[SECRET], environment), SECRET))
        pairs: list[tuple[str, str]] = []
        if FILE in given:
            pairs += _pairs(_file_text(given[FILE]), FILE)
        elif INLINE in given:
            pairs += _pairs(given[INLINE], INLINE)
        if SINGLE in given:
            pairs.append((SINGLE_ACTOR, given[SINGLE]))
        return cls.of(pairs)

    def actor_of(self, header: str | None) -> str:
        """Return whose token a header shows; every digest is compared, so time tells nothing."""
        scheme, space, token = (header or "").partition(" ")
        if scheme != "Bearer" or not space or not token.strip():
            raise Unauthorized("missing bearer token")
        shown = _digest(token.strip())
        found: str | None = None
        for digest, actor in self.entries:
            if hmac.compare_digest(digest, shown):
                found = actor
        if found is None:
            raise Unauthorized("invalid bearer token")
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _file_text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise _refused(f"cannot read {path}, which {FILE} names: {reason}") from error


def _pairs(text: str, name: str) -> list[tuple[str, str]]:
    """Read a JSON object from actor to token; an actor that is there twice is not overlooked."""
    try:
        value = json.loads(text, object_pairs_hook=_Members)
    except ValueError as error:
        # The text is not shown: it holds tokens.
        raise _refused(f"{name} is no JSON") from error
    if not isinstance(value, _Members) or not all(isinstance(t, str) for _, t in value):
        raise _refused(f"{name} must be a JSON object from actor to token")
    return list(value)


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object, in order."""


def _refused(message: str) -> InvalidInput:
    return InvalidInput(message, code="tokens_invalid")
