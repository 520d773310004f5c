"""Bearer tokens of actors, of which only digests are kept."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
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
TOKENS_PER_ACTOR = 2
"""Tokens an actor may hold at a time: the old and the new one while clients change over."""


class Unauthorized(OmniError):
    """A request shows no token, or an unknown one (`is_invalid`)."""

    def __init__(self, message: str, *, is_invalid: bool = False) -> None:
        super().__init__(message, code="unauthorized", category=Category.DENIED)
        self.is_invalid = is_invalid


@dataclass(frozen=True, slots=True)
class Tokens:
    """The digests of all tokens, each with the actor it stands for."""

    entries: tuple[tuple[bytes, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.entries)

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Tokens:
        """Keep one token of each actor; raise InvalidInput for blanks and for duplicates."""
        return cls.of_lists((actor, [token]) for actor, token in pairs)

    @classmethod
    def of_lists(cls, pairs: Iterable[tuple[str, Sequence[str]]]) -> Tokens:
        """Keep one or two tokens of each actor; raise InvalidInput for blanks and duplicates."""
        entries: dict[bytes, str] = {}
        actors: set[str] = set()
        for actor, tokens in ((a.strip(), [t.strip() for t in ts]) for a, ts in pairs):
            if not actor or not all(tokens):
                raise _refused(f"the token of actor '{actor}' or the actor itself is blank")
            if actor in actors:
                raise _refused(f"actor '{actor}' is listed twice; list its two tokens as an array")
            if not 1 <= len(tokens) <= TOKENS_PER_ACTOR:
                raise _refused(f"actor '{actor}' has {len(tokens)} tokens; it may have one or two")
            for digest in map(_digest, tokens):
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
            return cls.of_lists(_pairs(read_aws_secret(given[SECRET], environment), SECRET))
        pairs: list[tuple[str, list[str]]] = []
        if FILE in given:
            pairs += _pairs(_file_text(given[FILE]), FILE)
        elif INLINE in given:
            pairs += _pairs(given[INLINE], INLINE)
        if SINGLE in given:
            pairs.append((SINGLE_ACTOR, [given[SINGLE]]))
        return cls.of_lists(pairs)

    def actor_of(self, header: str | None) -> str:
        """Return whose token a header shows; every digest is compared, so time reveals nothing.

        The name of the scheme is case-insensitive, as in all of HTTP.
        """
        scheme, space, token = (header or "").partition(" ")
        if scheme.lower() != "bearer" or not space or not token.strip():
            raise Unauthorized("missing bearer token")
        shown = _digest(token.strip())
        found: str | None = None
        for digest, actor in self.entries:
            if hmac.compare_digest(digest, shown):
                found = actor
        if found is None:
            raise Unauthorized("invalid bearer token", is_invalid=True)
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _file_text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise _refused(f"cannot read {path}, which {FILE} names: {reason}") from error


def _pairs(text: str, name: str) -> list[tuple[str, list[str]]]:
    """Read a JSON object from actor to token or tokens; a repeated actor is not overlooked."""
    try:
        value = json.loads(text, object_pairs_hook=_Members)
    except ValueError as error:
        # The text is not shown: it holds tokens.
        raise _refused(f"{name} is no JSON") from error
    if isinstance(value, _Members):
        pairs = [(actor, given if isinstance(given, list) else [given]) for actor, given in value]
        if all(isinstance(token, str) for _, tokens in pairs for token in tokens):
            return pairs
    raise _refused(f"{name} must be a JSON object from actor to token, or to an array of two")


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object, in order."""


def _refused(message: str) -> InvalidInput:
    return InvalidInput(message, code="tokens_invalid")
