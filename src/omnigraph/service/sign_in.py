"""Sessions of browsers: a signed cookie that stands for a bearer token.

The cookie names its token by an ID, so that a session ends when the token is removed or replaced.
Processes that have the same key accept each other's cookies.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from omnigraph.errors import InvalidInput
from omnigraph.service.auth import TokenStore, Unauthorized

SESSION_SECONDS = 12 * 60 * 60
ONE_TIME_SECONDS = 60
SESSION_KEY_VARIABLE = "OMNIGRAPH_SERVER_SESSION_KEY"
MIN_KEY_CHARS = 32
_VERSION = "1"


def session_key(environment: Mapping[str, str]) -> bytes:
    """Return the key of the environment, or a new one for this server.

    Raises:
        InvalidInput: the key of the environment is too short to be a secret.
    """
    text = environment.get(SESSION_KEY_VARIABLE, "").strip()
    if not text:
        return secrets.token_bytes(32)
    if len(text) < MIN_KEY_CHARS:
        message = (
            f"{SESSION_KEY_VARIABLE} has {len(text)} characters; it needs {MIN_KEY_CHARS} or more, "
            "for example the output of `openssl rand -hex 32`"
        )
        raise InvalidInput(message, code="session_key_invalid")
    return hashlib.sha256(text.encode()).digest()


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """One session: the ID of its bearer token, the actor, and when it ends (seconds since 1970)."""

    id: str
    token_id: str
    actor: str
    expires_at: int


@dataclass(slots=True)
class OneTimeToken:
    """A token that is accepted once, within a minute of its creation."""

    text: str
    stands_for: str
    """The bearer token it is exchanged for."""
    created: float = field(default_factory=time.monotonic)
    _used: bool = False
    _lock: Lock = field(default_factory=Lock)

    def exchange(self, token: str) -> str | None:
        """Return the bearer token for the one-time token; None for any other text.

        Raises:
            Unauthorized: it was used before, or is too old.
        """
        if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self.text.encode()):
            return None
        with self._lock:
            late = time.monotonic() - self.created > ONE_TIME_SECONDS
            if self._used or late:
                message = (
                    f"the link of Studio works once and for {ONE_TIME_SECONDS} seconds; "
                    "stop `omnigraph studio` and start it again for a new one"
                )
                raise Unauthorized(message, is_invalid=True)
            self._used = True
        return self.stands_for


class EndedSessions:
    """The sessions that were signed out of before their time, in a folder that processes share."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._ids: dict[str, int] = {}

    def add(self, session: BrowserSession) -> None:
        """Remember a session until it would have ended."""
        if self._folder is not None:
            (self._folder / _ended_file(session)).touch()
            return
        now = time.time()
        self._ids = {name: end for name, end in self._ids.items() if end > now}
        self._ids[session.id] = session.expires_at

    def __contains__(self, session: BrowserSession) -> bool:
        if self._folder is not None:
            return (self._folder / _ended_file(session)).exists()
        return session.id in self._ids


def _ended_file(session: BrowserSession) -> str:
    return f"session-{session.id}.ended"


@dataclass(frozen=True, slots=True)
class BrowserSessions:
    """Creates, verifies and ends the sessions of a server."""

    key: bytes = field(repr=False)
    ended: EndedSessions = field(default_factory=EndedSessions)
    one_time: OneTimeToken | None = field(default=None, repr=False)

    def create(self, tokens: TokenStore, token: str) -> tuple[str, BrowserSession]:
        """Return the cookie of a new session for a bearer token, or for the one-time token.

        Raises:
            Unauthorized: the token is unknown, or was used before.
        """
        exchanged = None if self.one_time is None else self.one_time.exchange(token)
        digest, actor = tokens.find(token if exchanged is None else exchanged)
        expires_at = int(time.time()) + SESSION_SECONDS
        session = BrowserSession(secrets.token_hex(16), self._token_id(digest), actor, expires_at)
        text = f"{_VERSION}.{session.id}.{session.token_id}.{session.expires_at}"
        return f"{text}.{self._sign(text)}", session

    def verify(self, tokens: TokenStore, cookie: str) -> BrowserSession:
        """Return the session of a cookie.

        Raises:
            Unauthorized: it was not made with this key, has ended, or its token is gone.
        """
        text, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(self._sign(text).encode(), signature.encode()):
            raise _session_over()
        _, name, token_id, expires_at = text.split(".")
        if int(expires_at) <= time.time():
            raise _session_over()
        for digest, actor in tokens.entries:
            if hmac.compare_digest(self._token_id(digest), token_id):
                session = BrowserSession(name, token_id, actor, int(expires_at))
                if session in self.ended:
                    break
                return session
        raise _session_over()

    def _token_id(self, digest: bytes) -> str:
        return hmac.new(self.key, b"token " + digest, hashlib.sha256).hexdigest()[:32]

    def _sign(self, text: str) -> str:
        signed = b"session " + text.encode("utf-8", "surrogatepass")
        return hmac.new(self.key, signed, hashlib.sha256).hexdigest()


def _session_over() -> Unauthorized:
    return Unauthorized("the session is over: sign in again", is_invalid=True)
