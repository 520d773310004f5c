"""Configuration of a user: servers, profiles, defaults, tokens.

Everything lies in one folder: `config.yaml`, which may be shared, and `credentials`, which only its
owner may read.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from omnigraph.errors import InvalidInput

HOME_VARIABLE = "OMNIGRAPH_HOME"
PROFILE_VARIABLE = "OMNIGRAPH_PROFILE"
TOKEN_VARIABLE = "OMNIGRAPH_BEARER_TOKEN"  # noqa: S105 - the name of a variable
OUTPUT_FORMATS = ("table", "kv", "csv", "jsonl", "json")
CELL_LAYOUTS = ("truncate", "wrap")
_SECTIONS = ("operator", "servers", "clusters", "profiles", "defaults", "aliases")
_BINDINGS = ("server", "cluster", "store")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


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
        """What it stands for: `server`, `cluster` or `store`, or `invalid`."""
        given = [name for name in _BINDINGS if getattr(self, name) is not None]
        return given[0] if len(given) == 1 else "invalid"

    @property
    def target(self) -> str | None:
        """The name or address it stands for."""
        found: str | None = None if self.kind == "invalid" else getattr(self, self.kind)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDefaults:
    """What holds where nothing else is said."""

    output: str | None = None
    table_max_column_width: int = 80
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


@dataclass(frozen=True, slots=True, kw_only=True)
class UserConfig:
    """Everything a person set up."""

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
    """Read what a person set up; nothing set up is fine."""
    given = environ.get(HOME_VARIABLE, "").strip()
    folder = Path(given or "~/.omnigraph").expanduser()
    path = folder / "config.yaml"
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return UserConfig(folder=folder)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise _invalid(path, str(getattr(error, "strerror", None) or error)) from error
    if value is None:
        return UserConfig(folder=folder)
    return _UserConfigReader(path).operator(folder, value)


def _invalid(path: Path, reason: str) -> InvalidInput:
    return InvalidInput(f"cannot read {path}: {reason}", code="config_invalid", file=str(path))


class _UserConfigReader:
    """Reads sections; what is unknown is noted, what is wrong is refused."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._warnings: list[str] = []

    def operator(self, folder: Path, value: object) -> UserConfig:
        top = self._section(value, "", _SECTIONS)
        servers = {
            name: self._text(self._section(one, f"servers.{name}", ("url",)), "url", name) or ""
            for name, one in self._names(top.get("servers"), "servers")
        }
        clusters = {
            name: self._text(self._section(one, f"clusters.{name}", ("root",)), "root", name) or ""
            for name, one in self._names(top.get("clusters"), "clusters")
        }
        actor = self._text(self._section(top.get("operator"), "operator", ("actor",)), "actor")
        profiles = self._names(top.get("profiles"), "profiles")
        aliases = self._names(top.get("aliases"), "aliases")
        return UserConfig(
            folder=folder,
            actor=actor,
            servers={name: url.rstrip("/") for name, url in servers.items()},
            clusters=clusters,
            profiles={name: self._profile(name, one) for name, one in profiles},
            defaults=self._defaults(top.get("defaults")),
            aliases={name: self._alias(name, one) for name, one in aliases},
            warnings=tuple(self._warnings),
        )

    def _profile(self, name: str, value: object) -> Profile:
        names = (*_BINDINGS, "default_graph")
        section = self._section(value, f"profiles.{name}", names)
        return Profile(name, **{key: self._text(section, key) for key in names})

    def _defaults(self, value: object) -> ConfigDefaults:
        names = ("output", "table_cell_layout", "server", "store", "default_graph")
        section = self._section(value, "defaults", (*names, "table_max_column_width"))
        found: dict[str, Any] = {name: self._text(section, name) for name in names}
        width = section.get("table_max_column_width", 80)
        if not isinstance(width, int) or isinstance(width, bool) or width < 1:
            raise _invalid(self._path, "defaults.table_max_column_width is a number of columns")
        if found["output"] not in (None, *OUTPUT_FORMATS):
            raise _invalid(self._path, f"defaults.output is one of {', '.join(OUTPUT_FORMATS)}")
        found["table_cell_layout"] = found["table_cell_layout"] or "truncate"
        if found["table_cell_layout"] not in CELL_LAYOUTS:
            raise _invalid(
                self._path, f"defaults.table_cell_layout is one of {', '.join(CELL_LAYOUTS)}"
            )
        if found["store"] is not None and (found["server"] or found["default_graph"]):
            message = "defaults.store excludes defaults.server and defaults.default_graph"
            raise _invalid(self._path, message)
        return ConfigDefaults(table_max_column_width=width, **found)

    def _alias(self, name: str, value: object) -> QueryAlias:
        known = ("server", "graph", "query", "args", "params", "format")
        section = self._section(value, f"aliases.{name}", known)
        server, query = (self._text(section, key) for key in ("server", "query"))
        if server is None or query is None:
            raise _invalid(self._path, f"aliases.{name} needs `server` and `query`")
        args, params = section.get("args") or [], section.get("params") or {}
        if not isinstance(args, list) or not isinstance(params, dict):
            raise _invalid(self._path, f"aliases.{name}: `args` is a list, `params` a mapping")
        return QueryAlias(
            name=name,
            server=server,
            graph=self._text(section, "graph"),
            query=query,
            args=tuple(str(one) for one in args),
            params=params,
            format=self._text(section, "format"),
        )

    def _names(self, value: object, where: str) -> list[tuple[str, object]]:
        if value is None:
            return []
        if not isinstance(value, dict):
            raise _invalid(self._path, f"`{where}` holds names, each with its settings")
        return [(str(name), one) for name, one in value.items()]

    def _section(self, value: object, where: str, known: tuple[str, ...]) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise _invalid(self._path, f"`{where or 'the file'}` holds keys: {', '.join(known)}")
        for key in value:
            if key not in known:
                place = f"{where}.{key}" if where else str(key)
                self._warnings.append(f"{self._path}: unknown key `{place}` is ignored")
        return {key: one for key, one in value.items() if key in known}

    def _text(self, section: Mapping[str, Any], key: str, name: str | None = None) -> str | None:
        value = section.get(key)
        if value is None and name is None:
            return None
        if not isinstance(value, str) or not value.strip():
            raise _invalid(self._path, f"`{key}`{f' of {name}' if name else ''} is a text")
        return value.strip()


# --- tokens --------------------------------------------------------------------------------------


def token_for(url: str, operator: UserConfig, environ: Mapping[str, str]) -> str | None:
    """Return the token for an address: that of the server it belongs to, or of the environment."""
    name = _server_of(url, operator.servers)
    if name is not None:
        variable = f"OMNIGRAPH_TOKEN_{name.upper().replace('-', '_')}"
        found = environ.get(variable, "").strip() or _read_tokens(operator.credentials).get(name)
        if found:
            return found
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
    """Keep a token for a server, where only its owner can read it."""
    if _NAME.fullmatch(name) is None:
        message = f"'{name}' cannot be the name of a server: letters, digits, `-`, `_` and `.`"
        raise InvalidInput(message, code="server_invalid")
    if not token.strip() or any(ord(c) < 32 for c in token.strip()):
        raise InvalidInput("the token is blank, or no single line", code="token_blank")
    found = _read_tokens(operator.credentials)
    _write_tokens(operator.credentials, {**found, name: token.strip()})


def delete_token(operator: UserConfig, name: str) -> None:
    """Forget the token for a server, if there is one."""
    found = _read_tokens(operator.credentials)
    if name in found:
        _write_tokens(operator.credentials, {n: token for n, token in found.items() if n != name})


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
        # The text of the error would show what stands in the file.
        raise _invalid(path, "it is no file of `[name]` and `token = value`") from error
    found = {name: parser.get(name, "token", fallback="") for name in parser.sections()}
    return {name: token.strip().strip("'\"") for name, token in found.items() if token.strip()}


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
