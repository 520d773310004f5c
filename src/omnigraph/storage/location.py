"""This module says where a graph lives: a folder, `file://` or `s3://`, and how to reach it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from configparser import Error as ConfigParserError
from configparser import RawConfigParser
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlparse

from omnigraph.errors import InvalidInput

# Of two variables for one option the later wins.
_AWS_VARIABLES = {
    "AWS_ACCESS_KEY_ID": "aws_access_key_id",
    "AWS_SECRET_ACCESS_KEY": "aws_secret_access_key",
    "AWS_SESSION_TOKEN": "aws_session_token",
    "AWS_DEFAULT_REGION": "aws_region",
    "AWS_REGION": "aws_region",
    "AWS_ENDPOINT": "aws_endpoint",
    "AWS_ENDPOINT_URL": "aws_endpoint",
    "AWS_ENDPOINT_URL_S3": "aws_endpoint",
    "AWS_ALLOW_HTTP": "allow_http",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "aws_virtual_hosted_style_request",
}
_PROFILE = {
    "aws_access_key_id": "aws_access_key_id",
    "aws_secret_access_key": "aws_secret_access_key",
    "aws_session_token": "aws_session_token",
    "region": "aws_region",
    "endpoint_url": "aws_endpoint",
}
_CREDENTIALS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")


@dataclass(frozen=True, slots=True)
class Location:
    """The root of a graph and the options its storage needs."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Tell whether the graph is a folder of this machine."""
        return "://" not in self.uri

    def child(self, path: str) -> str:
        """Return the address of something below the root."""
        return f"{self.uri}/{path}"

    def __str__(self) -> str:
        return self.uri


def locate(uri: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Location:
    """Read an address; options given here win over the AWS_* environment, that over a profile."""
    text = os.fspath(uri).strip()
    if not text:
        raise InvalidInput("a graph address is a folder, file:// or s3:// URI", code="uri_invalid")
    parsed = urlparse(text)
    if "?" in unquote(text) or (parsed.scheme in ("s3", "file") and parsed.fragment):
        # Lance reads these as parts of a URI, also in plain paths, and writes somewhere else.
        message = f"{text}: an address cannot contain `?`, nor a URI `#`"
        raise InvalidInput(message, code="uri_invalid", uri=text)
    if parsed.scheme == "s3":
        if not parsed.netloc:
            raise InvalidInput(f"{text} names no bucket", code="uri_invalid", uri=text)
        root = f"s3://{parsed.netloc}/{parsed.path.strip('/')}".rstrip("/")
        return Location(root, _s3_options(options or {}))
    if parsed.scheme == "file":
        if parsed.netloc not in ("", "localhost") or not parsed.path.startswith("/"):
            message = f"{text} is no file on this machine; write file:///path"
            raise InvalidInput(message, code="uri_invalid", uri=text)
        return Location(str(Path(unquote(parsed.path)).absolute()))
    if "://" in text:
        message = f"cannot open {parsed.scheme}:// addresses; use a folder, file:// or s3://"
        raise InvalidInput(message, code="uri_invalid", uri=text)
    return Location(str(Path(text).absolute()))


def _s3_options(explicit: Mapping[str, str]) -> dict[str, str]:
    found = {key: os.environ[name] for name, key in _AWS_VARIABLES.items() if os.environ.get(name)}
    found.update({_canonical(name): value for name, value in explicit.items()})
    profile = _profile()
    if "aws_access_key_id" in found:
        profile = {k: v for k, v in profile.items() if k not in _CREDENTIALS}
    found = {**profile, **found}
    if found.get("aws_endpoint", "").startswith("http://"):
        # A plain endpoint is a test server or a private one: both speak path style.
        found.setdefault("allow_http", "true")
        found.setdefault("aws_virtual_hosted_style_request", "false")
    return found


def _profile() -> dict[str, str]:
    """Return the options of the AWS profile in use, as far as its files state them.

    Lance would find them by itself, the object store would not: both are told.
    """
    name = os.environ.get("AWS_PROFILE", "")
    found: dict[str, str] = {}
    known = False
    for variable, default, section in (
        ("AWS_CONFIG_FILE", "~/.aws/config", f"profile {name}" if name else "default"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", name or "default"),
    ):
        parser = RawConfigParser()
        try:
            parser.read(Path(os.environ.get(variable) or default).expanduser(), encoding="utf-8")
        except (ConfigParserError, UnicodeDecodeError, OSError) as error:
            message = f"cannot read the AWS profile: {error}"
            raise InvalidInput(message, code="storage_profile_invalid") from error
        if parser.has_section(section):
            known = True
            stated = dict(parser.items(section))
            found |= {key: stated[name] for name, key in _PROFILE.items() if name in stated}
    if name and not known:
        raise InvalidInput(f"there is no AWS profile '{name}'", code="storage_profile_invalid")
    return found


def _canonical(name: str) -> str:
    """Return the one name of an option: `endpoint_url` and `AWS_ENDPOINT_URL` are the same."""
    upper = name.upper()
    return _AWS_VARIABLES.get(upper) or _AWS_VARIABLES.get(f"AWS_{upper}") or name.lower()
