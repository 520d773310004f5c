"""Parse graph URIs (a folder, `file://` or `s3://`) and collect their storage options."""

from __future__ import annotations

import os
from collections.abc import Mapping
from configparser import Error as ConfigParserError
from configparser import RawConfigParser
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlparse

from omnigraph.errors import InvalidInput
from omnigraph.storage.durability import Durability, parse_durability

# If two variables set one option, the later wins.
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
    """The root URI of a graph, its storage options, and how durable its commits are."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)
    durability: Durability = field(default=Durability.FULL, compare=False)

    @property
    def is_local(self) -> bool:
        """Whether the graph is a folder on this machine."""
        return "://" not in self.uri

    def child(self, path: str) -> str:
        """Return the URI of a path below the root."""
        return f"{self.uri}/{path}"

    def __str__(self) -> str:
        return self.uri


def locate(
    uri: str | os.PathLike[str],
    options: Mapping[str, str] | None = None,
    durability: str | None = None,
) -> Location:
    """Parse a graph URI; `options` override the AWS_* environment, which overrides a profile.

    `durability` overrides the environment, too.
    """
    level = parse_durability(durability)
    text = os.fspath(uri).strip()
    if not text:
        raise InvalidInput(
            "the graph URI is empty; use a folder, file:// or s3:// URI", code="uri_invalid"
        )
    parsed = urlparse(text)
    if "?" in unquote(text) or (parsed.scheme in ("s3", "file") and parsed.fragment):
        # Lance parses these as parts of a URI, even in plain paths, and writes somewhere else.
        message = f"{text}: a graph URI must not contain `?`, and an s3:// or file:// URI no `#`"
        raise InvalidInput(message, code="uri_invalid", uri=text)
    if parsed.scheme == "s3":
        if not parsed.netloc:
            message = f"{text} has no bucket name; use s3://bucket/path"
            raise InvalidInput(message, code="uri_invalid", uri=text)
        root = f"s3://{parsed.netloc}/{parsed.path.strip('/')}".rstrip("/")
        return Location(root, _s3_options(options or {}), level)
    if parsed.scheme == "file":
        if parsed.netloc not in ("", "localhost") or not parsed.path.startswith("/"):
            message = f"{text} is not a path on this machine; use file:///path"
            raise InvalidInput(message, code="uri_invalid", uri=text)
        return Location(str(Path(unquote(parsed.path)).absolute()), durability=level)
    if "://" in text:
        message = f"{parsed.scheme}:// URIs are not supported; use a folder, file:// or s3://"
        raise InvalidInput(message, code="uri_invalid", uri=text)
    return Location(str(Path(text).absolute()), durability=level)


def _s3_options(explicit: Mapping[str, str]) -> dict[str, str]:
    options = {
        key: os.environ[name] for name, key in _AWS_VARIABLES.items() if os.environ.get(name)
    }
    options.update({_canonical(name): value for name, value in explicit.items()})
    profile = _profile()
    if "aws_access_key_id" in options:
        profile = {k: v for k, v in profile.items() if k not in _CREDENTIALS}
    options = {**profile, **options}
    if options.get("aws_endpoint", "").startswith("http://"):
        # An endpoint without TLS is a test or private server: both use path-style requests.
        options.setdefault("allow_http", "true")
        options.setdefault("aws_virtual_hosted_style_request", "false")
    return options


def _profile() -> dict[str, str]:
    """Return the options in the files of the active AWS profile.

    Lance reads the profile itself, the object store does not: both get these options.
    """
    name = os.environ.get("AWS_PROFILE", "")
    options: dict[str, str] = {}
    exists = False
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
            exists = True
            settings = dict(parser.items(section))
            options |= {key: settings[name] for name, key in _PROFILE.items() if name in settings}
    if name and not exists:
        message = f"AWS profile '{name}' does not exist; check AWS_PROFILE"
        raise InvalidInput(message, code="storage_profile_invalid")
    return options


def _canonical(name: str) -> str:
    """Return the canonical name of an option, such as that of `endpoint_url`."""
    upper = name.upper()
    return _AWS_VARIABLES.get(upper) or _AWS_VARIABLES.get(f"AWS_{upper}") or name.lower()
