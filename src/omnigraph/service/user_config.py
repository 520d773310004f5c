"""Configuration of a user: servers, profiles, defaults, tokens.

Everything lies in one folder: `config.yaml`, which may be shared, and `credentials`, which only its
owner may read.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

import msgspec
import yaml
from msgspec import Meta

from omnigraph.errors import InvalidInput

HOME_VARIABLE = "OMNIGRAPH_HOME"
PROFILE_VARIABLE = "OMNIGRAPH_PROFILE"
TOKEN_VARIABLE = "OMNIGRAPH_BEARER_TOKEN"  # noqa: S105 - the name of a variable
OUTPUT_FORMATS = ("table", "kv", "csv", "jsonl", "json")
CELL_LAYOUTS = ("truncate", "wrap")
_SECTIONS = ("operator", "servers", "clusters", "profiles", "defaults", "aliases")
_BINDINGS = ("server", "cluster", "store")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_SectionT = TypeVar("_SectionT")


@dataclass(frozen=True, slots=True)
class Profile:
    """A name for one server, cluster or graph; anything but exactly one is a mistake."""

    name: str
    server: str | None = None
    cluster: str | None = None
    store: str | None = None
    default_graph: str | None = None

    @property
    def kind(self) -> str:
        """Its kind: `server`, `cluster` or `store`, or `invalid`."""
        bindings = [name for name in _BINDINGS if getattr(self, name) is not None]
        return bindings[0] if len(bindings) == 1 else "invalid"

    @property
    def target(self) -> str | None:
        """The name or address it refers to."""
        address: str | None = None if self.kind == "invalid" else getattr(self, self.kind)
        return address


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDefaults:
    """Settings that apply where no option is given."""

    output: str | None = None
    table_max_column_width: Annotated[int, Meta(ge=1)] = 80
    table_cell_layout: str = "truncate"
    server: str | None = None
    store: str | None = None
    default_graph: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAlias:
    """A stored query with its server, graph and some parameters, under a short name."""

    name: str
    server: str
    graph: str | None = None
    query: str
    args: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    format: str | None = None


@dataclass(frozen=True, slots=True)
class _ServerEntry:
    url: str
    name: str


@dataclass(frozen=True, slots=True)
class _Cluster:
    root: str
    name: str


@dataclass(frozen=True, slots=True)
class _Operator:
    actor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserConfig:
    """The configuration of a user."""

    folder: Path
    actor: str | None = None
    servers: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    defaults: ConfigDefaults = field(default_factory=ConfigDefaults)
    aliases: Mapping[str, QueryAlias] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def credentials(self) -> Path:
        """The file with tokens."""
        return self.folder / "credentials"


def read_user_config(environ: Mapping[str, str]) -> UserConfig:
    """Read the configuration of a user; without one, everything has its default."""
    folder = Path(environ.get(HOME_VARIABLE, "").strip() or "~/.omnigraph").expanduser()
    path = folder / "config.yaml"
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return UserConfig(folder=folder)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise _invalid(path, str(getattr(error, "strerror", None) or error)) from error
    return _UserConfigReader(path).read(folder, value)


def _invalid(path: Path, reason: str) -> InvalidInput:
    return InvalidInput(f"cannot read {path}: {reason}", code="config_invalid", file=str(path))


class _UserConfigReader:
    """Reads sections; unknown keys cause warnings, invalid values errors."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._warnings: list[str] = []

    def read(self, folder: Path, value: object) -> UserConfig:
        top = self._section(value, "", _SECTIONS)
        servers = self._named(top, "servers", _ServerEntry)
        clusters = self._named(top, "clusters", _Cluster)
        return UserConfig(
            folder=folder,
            actor=self._convert(top.get("operator"), "operator", _Operator).actor,
            servers={name: server.url.rstrip("/") for name, server in servers.items()},
            clusters={name: cluster.root for name, cluster in clusters.items()},
            profiles=self._named(top, "profiles", Profile),
            defaults=self._defaults(top.get("defaults")),
            aliases=self._named(top, "aliases", QueryAlias),
            warnings=tuple(self._warnings),
        )

    def _defaults(self, value: object) -> ConfigDefaults:
        defaults = self._convert(value, "defaults", ConfigDefaults)
        if defaults.output not in (None, *OUTPUT_FORMATS):
            raise _invalid(
                self._path, f"defaults.output must be one of {', '.join(OUTPUT_FORMATS)}"
            )
        if defaults.table_cell_layout not in CELL_LAYOUTS:
            raise _invalid(
                self._path, f"defaults.table_cell_layout must be one of {', '.join(CELL_LAYOUTS)}"
            )
        if defaults.store is not None and (defaults.server or defaults.default_graph):
            message = "defaults.store excludes defaults.server and defaults.default_graph"
            raise _invalid(self._path, message)
        return defaults

    def _named(
        self, top: Mapping[str, Any], where: str, kind: type[_SectionT]
    ) -> dict[str, _SectionT]:
        """Return the entries of a section by name."""
        entries = top.get(where, {})
        if not isinstance(entries, dict):
            raise _invalid(self._path, f"`{where}` must map names to settings")
        return {
            str(name): self._convert(entry, f"{where}.{name}", kind, name=str(name))
            for name, entry in entries.items()
        }

    def _convert(
        self, value: object, where: str, kind: type[_SectionT], **members: str
    ) -> _SectionT:
        """Return a section as a dataclass, with members that are not read from the file."""
        names = [member.name for member in fields(kind) if member.name not in members]  # type: ignore[arg-type]
        try:
            return msgspec.convert({**self._section(value, where, names), **members}, kind)
        except msgspec.ValidationError as error:
            raise _invalid(self._path, f"{where}: {error}") from error

    def _section(self, value: object, where: str, names: Sequence[str]) -> dict[str, Any]:
        """Return the known keys of a section; null is as good as absent, text is stripped."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise _invalid(
                self._path, f"`{where or 'the file'}` must have keys: {', '.join(names)}"
            )
        section = {}
        for key, member in value.items():
            place = f"{where}.{key}" if where else str(key)
            if key not in names:
                self._warnings.append(f"{self._path}: unknown key `{place}` is ignored")
            elif isinstance(member, str):
                section[key] = member.strip()
                if not section[key]:
                    raise _invalid(self._path, f"`{place}` is blank")
            elif member is not None:
                section[key] = member
        return section


# --- tokens --------------------------------------------------------------------------------------


def token_for(url: str, operator: UserConfig, environ: Mapping[str, str]) -> str | None:
    """Return the token for an address: that of the server it belongs to, or of the environment."""
    name = _server_of(url, operator.servers)
    if name is not None:
        variable = f"OMNIGRAPH_TOKEN_{name.upper().replace('-', '_')}"
        token = environ.get(variable, "").strip() or _read_tokens(operator.credentials).get(name)
        if token:
            return token
    return environ.get(TOKEN_VARIABLE, "").strip() or None


def _server_of(url: str, servers: Mapping[str, str]) -> str | None:
    """Return the server with the longest address that an address begins with."""
    fits = [(len(base), name) for name, base in servers.items() if _is_below(url, base)]
    return max(fits)[1] if fits else None


def _is_below(url: str, base: str) -> bool:
    one, other = urlsplit(url), urlsplit(base)
    same = (one.scheme, one.netloc.lower()) == (other.scheme, other.netloc.lower())
    path = other.path.rstrip("/")
    return same and (one.path == path or one.path.startswith(f"{path}/") or not path)


def store_token(operator: UserConfig, name: str, token: str) -> None:
    """Store the token of a server in a file that only its owner can read."""
    if _NAME.fullmatch(name) is None:
        message = f"'{name}' cannot be the name of a server: letters, digits, `-`, `_` and `.`"
        raise InvalidInput(message, code="server_invalid")
    if not token.strip() or any(ord(c) < 32 for c in token.strip()):
        raise InvalidInput("the token is blank, or no single line", code="token_blank")
    tokens = _read_tokens(operator.credentials)
    _write_tokens(operator.credentials, {**tokens, name: token.strip()})


def delete_token(operator: UserConfig, name: str) -> None:
    """Delete the token of a server, if there is one."""
    tokens = _read_tokens(operator.credentials)
    if tokens.pop(name, None) is not None:
        _write_tokens(operator.credentials, tokens)


def _read_tokens(path: Path) -> dict[str, str]:
    try:
        mode = path.stat().st_mode
        if mode & 0o077:
            message = f"{path} can be read by others; run: chmod 600 {path}"
            raise InvalidInput(message, code="credentials_exposed", file=str(path))
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise _invalid(path, str(getattr(error, "strerror", None) or error)) from error
    parser = ConfigParser(interpolation=None, comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # names stay as they are
    try:
        parser.read_string(text)
    except ConfigParserError as error:
        # The text of the error would show the content of the file.
        raise _invalid(path, "it is no file of `[name]` and `token = value`") from error
    tokens = {name: parser.get(name, "token", fallback="") for name in parser.sections()}
    return {name: token.strip().strip("'\"") for name, token in tokens.items() if token.strip()}


def _write_tokens(path: Path, tokens: Mapping[str, str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".credentials")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(f"[{name}]\ntoken = {tokens[name]}\n" for name in sorted(tokens))
        Path(temporary).replace(path)
    except OSError as error:
        raise InvalidInput(
            f"cannot write {path}: {error.strerror}", code="config_invalid"
        ) from error
