"""Encode and decode the cursors and page tokens of a change feed.

A token is its facts as JSON and their SHA-256, in URL-safe base64. It says for what it was made:
the graph, the branch and its incarnation, the filter. For anything else it is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.changes.errors import CursorRejected
from omnigraph.changes.model import ChangeFilter

MAX_TOKEN_LENGTH = 4_096
MAX_EXACT_ID = 256
"""Bytes of an id that stands in a token as it is; of a longer one, the beginning and a digest."""
ID_PREFIX = 64
_DIGEST_BYTES = 32
_TOKEN_VERSION = 1


class TokenKind(StrEnum):
    """What a token is for."""

    COMMIT_PAGE = "commit-page"
    FEED_CURSOR = "feed-cursor"
    FEED_PAGE = "feed-page"


TOKEN_MISMATCH_MESSAGES: Mapping[str, str] = {
    "graph": "it belongs to another graph",
    "genesis": "it belongs to another graph",
    "branch": "it belongs to another branch",
    "incarnation": "its branch was deleted and made again; take a new baseline",
    "commit": "it belongs to another commit",
    "filter": "it was made with another filter",
}
"""What a token may be bound to, and what is wrong when that differs."""


def encode_token(kind: TokenKind, bound: Mapping[str, str], position: Mapping[str, Any]) -> str:
    """Return a token."""
    facts = {"v": _TOKEN_VERSION, "kind": str(kind), "for": dict(bound), "at": dict(position)}
    text = json.dumps(facts, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    token = base64.urlsafe_b64encode(text + hashlib.sha256(text).digest()).rstrip(b"=").decode()
    assert len(token) <= MAX_TOKEN_LENGTH, "what stands in a token is bounded"
    return token


def decode_token(token: str, kind: TokenKind, bound: Mapping[str, str]) -> dict[str, Any]:
    """Return the position of a token; raise CursorRejected unless it is for exactly this."""
    facts = _parse_token(token)
    with reject_invalid_token():
        if facts["v"] != _TOKEN_VERSION:
            raise CursorRejected("it was made by another version of omnigraph")
        if facts["kind"] != kind:
            raise CursorRejected(f"it is a {facts['kind']} token, not a {kind} token")
        for name, wrong in TOKEN_MISMATCH_MESSAGES.items():
            if facts["for"].get(name) != bound.get(name):
                raise CursorRejected(wrong)
        position: dict[str, Any] = facts["at"]
    return position


def _parse_token(token: str) -> dict[str, Any]:
    if len(token) > MAX_TOKEN_LENGTH:
        raise CursorRejected(f"it is longer than {MAX_TOKEN_LENGTH:,} characters")
    try:
        padded = token.encode("ascii") + b"=" * (-len(token) % 4)
        data = base64.b64decode(padded, altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise CursorRejected("it is not a valid token") from None
    text, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    canonical = base64.urlsafe_b64encode(data).rstrip(b"=").decode() == token
    if not canonical or hashlib.sha256(text).digest() != digest:
        raise CursorRejected("it is damaged")
    with reject_invalid_token():
        facts: dict[str, Any] = json.loads(text)
    return facts


@contextmanager
def reject_invalid_token() -> Iterator[None]:
    """Refuse a token whose facts are not those `encode` writes."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise CursorRejected("it is not a valid token") from None


def digest(*parts: str) -> str:
    """Return a digest of texts, of which each is delimited from the next."""
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def filter_digest(scope: ChangeFilter) -> str:
    """Return a digest that two filters share exactly if they select the same."""
    words = (sorted(map(str, part)) for part in (scope.kinds, scope.types, scope.ops))
    return digest(*(json.dumps(part, ensure_ascii=False) for part in words))


@dataclass(frozen=True, slots=True)
class PagePosition:
    """Where in a block a page ended: behind an entity, of a long id the beginning and a digest."""

    type_id: str
    id: str
    exact: str | None = None

    @classmethod
    def behind(cls, type_id: str, id_: str) -> PagePosition:
        """Return the place behind an entity."""
        data = id_.encode()
        if len(data) <= MAX_EXACT_ID:
            return cls(type_id, id_)
        return cls(type_id, data[:ID_PREFIX].decode(errors="ignore"), digest(id_))

    def to_json(self) -> dict[str, Any]:
        """Return what stands in a token."""
        facts = {"type": self.type_id, "id": self.id}
        return facts if self.exact is None else {**facts, "digest": self.exact}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> PagePosition:
        """Read what `to_json` wrote; raise CursorRejected for anything else."""
        with reject_invalid_token():
            parts = (facts["type"], facts["id"], facts.get("digest", ""))
            if not all(isinstance(part, str) for part in parts):
                raise TypeError
            return cls(parts[0], parts[1], parts[2] or None)
