"""Bearer tokens of actors, of which only digests are kept."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

from omnigraph.errors import Category, InvalidInput, OmniError, install_command

# Secrets of AWS, whose library is optional.


_ARN_FIELDS = 7


def read_aws_secret(name: str, environment: Mapping[str, str]) -> str:
    """Return the text of a secret of AWS, by its name or ARN, with the credentials of the machine.

    Raises:
        InvalidInput: boto3 is not there, or AWS does not give the secret; the text shows no key.
    """
    try:
        boto3, exceptions = import_module("boto3"), import_module("botocore.exceptions")
    except ImportError as error:
        message = f"cannot read the AWS secret '{name}': this needs boto3: {install_command('aws')}"
        raise _invalid_tokens(message) from error
    try:
        client = boto3.client("secretsmanager", region_name=_region(name, environment))
        secret: dict[str, Any] = client.get_secret_value(SecretId=name)
    except exceptions.ClientError as error:
        reason = error.response["Error"]["Code"]
        raise _invalid_tokens(f"AWS does not give the secret '{name}': {reason}") from error
    except exceptions.BotoCoreError as error:
        reason = type(error).__name__
        raise _invalid_tokens(f"cannot read the secret '{name}': {reason}") from error
    text = secret.get("SecretString")
    if text is None:
        raise _invalid_tokens(f"the AWS secret '{name}' holds bytes; it must hold a JSON object")
    return str(text)


def _region(name: str, environment: Mapping[str, str]) -> str | None:
    parts = name.split(":")
    if parts[0] == "arn" and len(parts) >= _ARN_FIELDS:
        return parts[3]
    return environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")


AWS_SECRET_VARIABLE = "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET"  # noqa: S105 - the name of a variable
TOKENS_FILE_VARIABLE = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
TOKENS_JSON_VARIABLE = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
TOKEN_VARIABLE = "OMNIGRAPH_SERVER_BEARER_TOKEN"  # noqa: S105
SINGLE_ACTOR = "default"
TOKENS_PER_ACTOR = 2
"""Tokens an actor may hold at a time: the old and the new one while clients change over."""


class Unauthorized(OmniError):
    """A request shows no token, or an unknown one (`is_invalid`)."""

    def __init__(self, message: str, *, is_invalid: bool = False) -> None:
        super().__init__(message, code="unauthorized", category=Category.DENIED)
        self.is_invalid = is_invalid


@dataclass(frozen=True, slots=True)
class TokenStore:
    """The digests of all tokens, each with its actor."""

    entries: tuple[tuple[bytes, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.entries)

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, Sequence[str]]]) -> TokenStore:
        """Keep one or two tokens of each actor; raise InvalidInput for blanks and duplicates."""
        entries: dict[bytes, str] = {}
        actors: set[str] = set()
        for actor, tokens in ((a.strip(), [t.strip() for t in ts]) for a, ts in pairs):
            if not actor or not all(tokens):
                raise _invalid_tokens(f"the token of actor '{actor}' or the actor itself is blank")
            if actor in actors:
                raise _invalid_tokens(
                    f"actor '{actor}' is listed twice; list its two tokens as an array"
                )
            if not 1 <= len(tokens) <= TOKENS_PER_ACTOR:
                raise _invalid_tokens(
                    f"actor '{actor}' has {len(tokens)} tokens; it may have one or two"
                )
            for digest in map(_digest, tokens):
                if digest in entries:
                    raise _invalid_tokens(
                        f"actors '{entries[digest]}' and '{actor}' have the same token"
                    )
                entries[digest] = actor
            actors.add(actor)
        return cls(tuple(entries.items()))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> TokenStore:
        """Read the tokens that the variables of the environment give; a blank one is not set."""
        values = {name: text.strip() for name, text in environment.items() if text.strip()}
        if (secret := values.get(AWS_SECRET_VARIABLE)) is not None:
            text = read_aws_secret(secret, environment)
            return cls.of(_parse_token_pairs(text, AWS_SECRET_VARIABLE))
        pairs: list[tuple[str, list[str]]] = []
        if (path := values.get(TOKENS_FILE_VARIABLE)) is not None:
            pairs += _parse_token_pairs(_file_text(path), TOKENS_FILE_VARIABLE)
        elif TOKENS_JSON_VARIABLE in values:
            pairs += _parse_token_pairs(values[TOKENS_JSON_VARIABLE], TOKENS_JSON_VARIABLE)
        if TOKEN_VARIABLE in values:
            pairs.append((SINGLE_ACTOR, [values[TOKEN_VARIABLE]]))
        return cls.of(pairs)

    def actor_of(self, header: str | None) -> str:
        """Return whose token a header shows; every digest is compared, so time reveals nothing.

        The name of the scheme is case-insensitive, as in all of HTTP.
        """
        scheme, space, token = (header or "").partition(" ")
        if scheme.lower() != "bearer" or not space or not token.strip():
            raise Unauthorized("missing bearer token")
        return self.find(token)[1]

    def find(self, token: str) -> tuple[bytes, str]:
        """Return the digest of a token and its actor; every digest is compared.

        Raises:
            Unauthorized: the token is unknown.
        """
        shown = _digest(token.strip())
        found: tuple[bytes, str] | None = None
        for digest, actor in self.entries:
            if hmac.compare_digest(digest, shown):
                found = digest, actor
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
        raise _invalid_tokens(
            f"cannot read {path}, which {TOKENS_FILE_VARIABLE} names: {reason}"
        ) from error


def _parse_token_pairs(text: str, name: str) -> list[tuple[str, list[str]]]:
    """Read a JSON object from actor to token or tokens; a repeated actor is not overlooked."""
    try:
        value = json.loads(text, object_pairs_hook=_JsonMembers)
    except ValueError as error:
        # The text is not shown: it holds tokens.
        raise _invalid_tokens(f"{name} is not valid JSON") from error
    if isinstance(value, _JsonMembers):
        pairs = [(actor, given if isinstance(given, list) else [given]) for actor, given in value]
        if all(isinstance(token, str) for _, tokens in pairs for token in tokens):
            return pairs
    raise _invalid_tokens(
        f"{name} must be a JSON object from actor to token, or to an array of two"
    )


class _JsonMembers(list[tuple[str, Any]]):
    """The members of a JSON object, in order."""


def _invalid_tokens(message: str) -> InvalidInput:
    return InvalidInput(message, code="tokens_invalid")


# The authorisation mode of a server.


class AuthMode(StrEnum):
    """Which callers may do what, in general.

    Open: every caller may do everything, except operations on the server itself. Default deny:
    callers with a token may read. Policy enabled: policies decide; all tokens may read a graph
    without one.
    """

    OPEN = "open"
    DEFAULT_DENY = "default_deny"
    POLICY_ENABLED = "policy_enabled"


def choose_auth_mode(*, tokens: bool, policies: bool, unauthenticated: bool) -> AuthMode:
    """Return the state; refuse to start an open server that was not requested."""
    if policies and not tokens:
        message = (
            "a policy is set but no tokens are configured, so callers cannot be identified: "
            "set OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
        )
        raise InvalidInput(message, code="tokens_missing")
    if policies:
        return AuthMode.POLICY_ENABLED
    if tokens:
        return AuthMode.DEFAULT_DENY
    if unauthenticated:
        return AuthMode.OPEN
    message = (
        "there are neither tokens nor a policy: set OMNIGRAPH_SERVER_BEARER_TOKENS_FILE, "
        "or pass --unauthenticated to allow every request"
    )
    raise InvalidInput(message, code="server_unprotected")
