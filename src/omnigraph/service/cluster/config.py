"""Read and validate `cluster.yaml`.

Every mistake is found in one reading, with its line. Files the configuration names are not read
here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from omnigraph.embed.config import REMOTE_DEFAULTS, ProviderKind
from omnigraph.errors import InvalidInput
from omnigraph.maintain.retention import Retention
from omnigraph.query.checks import CheckSeverity
from omnigraph.service.cluster.diagnostics import ClusterDiagnostics
from omnigraph.service.cluster.yaml_document import YamlDocument, YamlPath, read_yaml
from omnigraph.storage import locate
from omnigraph.write.external_blobs import ExternalBlobs

CONFIG_FILE = "cluster.yaml"
CLUSTER = "cluster"
SCOPES = ("server_safe", "embedded_only")

_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SERVED_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
_RESERVED_GRAPH_IDS = ("policies", "healthz", "openapi", "graphs")
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_RESERVED_KEYS = ("apply", "env_file", "embeddings", "ui", "aliases", "bindings")
_KINDS = ("graph", "schema", "query", "policy", "provider", "pipeline")


@dataclass(frozen=True, slots=True)
class QueryFiles:
    """Where stored queries are: a file or a folder of them; `name` picks one declaration."""

    path: str
    name: str | None
    place: YamlPath


@dataclass(frozen=True, slots=True)
class CheckConfig:
    """A stored query that must return no rows, what a row means, and how severe that is."""

    name: str
    message: str | None
    severity: str
    place: YamlPath

    def to_json(self) -> dict[str, str]:
        """Return what the ledger holds."""
        facts = {"severity": self.severity}
        return facts if self.message is None else {**facts, "message": self.message}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphConfig:
    """One graph: its schema, its stored queries, what embeds for it."""

    id: str
    schema: str
    queries: tuple[QueryFiles, ...] = ()
    checks: tuple[CheckConfig, ...] = ()
    embedding_provider: str | None = None
    external_blobs: tuple[tuple[str, str], ...] = ()
    """Bases below which blobs may lie, each with its scope."""
    retention: Retention | None = None


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """A policy file and the scopes it decides about: the cluster, or graphs as `graph.<id>`."""

    name: str
    file: str
    applies_to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """A pipeline file and the graph it loads into, as `graph.<id>`."""

    name: str
    file: str
    graph: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """The contents of `cluster.yaml`."""

    folder: FilePath
    document: YamlDocument
    name: str | None = None
    storage: str | None = None
    lock: bool = True
    providers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    graphs: Mapping[str, GraphConfig] = field(default_factory=dict)
    policies: Mapping[str, PolicyConfig] = field(default_factory=dict)
    pipelines: Mapping[str, PipelineConfig] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """The address everything of the cluster is stored below."""
        if self.storage is None:
            return str(self.folder)
        if "://" in self.storage:
            return self.storage
        return str(self.folder / self.storage)


def read_config(folder: FilePath, findings: ClusterDiagnostics) -> ClusterConfig | None:
    """Read the configuration in a folder; return None when it cannot be used at all."""
    if not folder.is_dir():
        findings.error("config_dir_not_found", str(folder), "the folder does not exist")
        return None
    file = folder / CONFIG_FILE
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        findings.error("cluster_config_read_error", str(file), f"cannot read it: {reason}")
        return None
    document = read_yaml(text)
    for mistake in document.mistakes:
        code = "duplicate_yaml_key" if mistake.duplicate else "invalid_cluster_yaml"
        path = _path_text(mistake.path) or CONFIG_FILE
        findings.error(code, path, mistake.message, file=CONFIG_FILE, line=mistake.line)
    if not isinstance(document.value, dict):
        if not document.mistakes:
            message = "the file must be a mapping with `version`, `graphs` and others"
            findings.error("invalid_cluster_yaml", CONFIG_FILE, message, file=CONFIG_FILE, line=1)
        return None
    return _ClusterConfigDecoder(document, findings).cluster(folder)


def _path_text(path: YamlPath) -> str:
    return ".".join(str(part) for part in path)


class _ClusterConfigDecoder:
    """Turns plain values into a configuration and reports every error."""

    def __init__(self, document: YamlDocument, findings: ClusterDiagnostics) -> None:
        self._document = document
        self._findings = findings

    def cluster(self, folder: FilePath) -> ClusterConfig:
        value = self._document.value
        for key in (key for key in _RESERVED_KEYS if key in value):
            self._error("future_phase_field", (key,), f"`{key}` is reserved; delete it")
        names = ("version", "metadata", "storage", "state", "providers", "graphs", "policies")
        top = self._mapping(value, (), names=(*names, "pipelines", *_RESERVED_KEYS))
        if top.get("version") != 1 or top.get("version") is True:
            message = "`version` must be 1"
            self._error("unsupported_cluster_config_version", ("version",), message)
        providers = self._providers(top.get("providers"))
        graphs = self._graphs(top.get("graphs"), providers)
        return ClusterConfig(
            folder=folder,
            document=self._document,
            name=self._name(top.get("metadata")),
            storage=self._storage(top.get("storage"), folder),
            lock=self._lock(top.get("state")),
            providers=providers,
            graphs=graphs,
            policies=self._policies(top.get("policies"), graphs),
            pipelines=self._pipelines(top.get("pipelines"), graphs),
        )

    # --- small sections

    def _name(self, value: object) -> str | None:
        name = self._mapping(value, ("metadata",), names=("name",)).get("name")
        if name is not None and (not isinstance(name, str) or not name.strip()):
            self._error("empty_metadata_name", ("metadata", "name"), "the name is blank")
            return None
        return name

    def _storage(self, value: object, folder: FilePath) -> str | None:
        if value is None:
            return None
        text = self._text(value, ("storage",))
        if text is None:
            return None
        root = text.rstrip("/")
        try:
            locate(root if "://" in root else folder / root)
        except InvalidInput as error:
            self._error("invalid_storage_root", ("storage",), error.message)
            return None
        return root

    def _lock(self, value: object) -> bool:
        state = self._mapping(value, ("state",), names=("backend", "lock"))
        if state.get("backend") not in (None, "cluster"):
            message = "`backend` must be `cluster` or absent"
            self._error("unsupported_state_backend", ("state", "backend"), message)
        lock = state.get("lock", True)
        if not isinstance(lock, bool):
            self._invalid(("state", "lock"), "`lock` must be true or false")
            return True
        return lock

    # --- providers

    def _providers(self, value: object) -> dict[str, Mapping[str, str]]:
        place: YamlPath = ("providers", "embedding")
        section = self._mapping(value, ("providers",), names=("embedding",)).get("embedding")
        return {n: self._provider(stated, (*place, n)) for n, stated in self._named(section, place)}

    def _provider(self, value: object, place: YamlPath) -> Mapping[str, str]:
        names = ("kind", "provider", "base_url", "model", "api_key")
        stated = self._mapping(value, place, names=names)
        texts = {key: self._text(member, (*place, key)) for key, member in stated.items()}
        profile = {key: text for key, text in texts.items() if text is not None}
        code = "invalid_embedding_provider"
        if "kind" in profile and "provider" in profile:
            self._error(code, place, "`kind` and `provider` mean the same: give one")
        kind = profile.pop("provider", None) or profile.pop("kind", ProviderKind.OPENAI_COMPATIBLE)
        if kind not in list(ProviderKind):
            message = f"'{kind}' is not one of {', '.join(ProviderKind)}"
            self._error(code, (*place, "kind"), message)
        profile.pop("kind", None)
        self._key(kind, profile.get("api_key"), place)
        order = ("base_url", "model", "api_key")
        return {"kind": str(kind), **{key: profile[key] for key in order if key in profile}}

    def _key(self, kind: str, key: str | None, place: YamlPath) -> None:
        if key is None:
            if kind in [str(remote) for remote in REMOTE_DEFAULTS]:
                message = "`api_key` is missing; write ${NAME} of an environment variable"
                self._error("embedding_api_key_required", place, message)
        elif _REFERENCE.fullmatch(key.strip()) is None:
            message = "`api_key` must be ${NAME} of an environment variable, never the key itself"
            self._error("embedding_api_key_inline", (*place, "api_key"), message)

    # --- graphs

    def _graphs(self, value: object, providers: Mapping[str, object]) -> dict[str, GraphConfig]:
        graphs = {}
        for id_, stated in self._named(value, ("graphs",)):
            place: YamlPath = ("graphs", id_)
            if _SERVED_ID.fullmatch(id_) is None or id_ in _RESERVED_GRAPH_IDS:
                message = (
                    f"a server does not serve a graph called '{id_}': it takes letters, digits"
                    " and `-`, at most 64, and no name of a route"
                )
                self._record(self._findings.warn, "graph_id_not_servable", place, message)
            graph = self._graph(id_, stated, place, providers)
            if graph is not None:
                graphs[id_] = graph
        return graphs

    def _graph(
        self, id_: str, value: object, place: YamlPath, providers: Mapping[str, object]
    ) -> GraphConfig | None:
        if isinstance(value, dict) and "streaming" in value:
            message = "`streaming` was removed; delete it"
            self._error("removed_streaming_declaration", (*place, "streaming"), message)
            value = {key: stated for key, stated in value.items() if key != "streaming"}
        names = ("schema", "queries", "checks", "embedding_provider", "external_blobs", "retention")
        stated = self._mapping(value, place, names=names)
        schema = stated.get("schema")
        if schema is None:
            self._invalid(place, "`schema`, the path of a .pg file, is missing")
            return None
        return GraphConfig(
            id=id_,
            schema=self._text(schema, (*place, "schema")) or "",
            queries=tuple(self._queries(stated.get("queries"), (*place, "queries"))),
            checks=tuple(self._checks(stated.get("checks"), (*place, "checks"))),
            embedding_provider=self._reference(
                stated.get("embedding_provider"), (*place, "embedding_provider"), providers
            ),
            external_blobs=self._external(stated.get("external_blobs"), (*place, "external_blobs")),
            retention=self._retention(stated.get("retention"), (*place, "retention")),
        )

    def _retention(self, value: object, place: YamlPath) -> Retention | None:
        if value is None:
            return None
        try:
            return Retention.parse(value)
        except InvalidInput as error:
            self._error(error.code, place, error.message)
            return None

    def _queries(self, value: object, place: YamlPath) -> Iterator[QueryFiles]:
        if value is None:
            return
        if isinstance(value, str):
            yield QueryFiles(value, None, place)
        elif isinstance(value, list):
            for number, item in enumerate(value):
                text = self._text(item, (*place, number))
                if text is not None:
                    yield QueryFiles(text, None, (*place, number))
        elif isinstance(value, dict):
            for name, stated in self._named(value, place):
                file = self._mapping(stated, (*place, name), names=("file",)).get("file")
                text = self._text(file, (*place, name, "file"))
                if text is not None:
                    yield QueryFiles(text, name, (*place, name))
        else:
            self._invalid(
                place, "`queries` must be a path, a list of paths, or names with a `file`"
            )

    def _checks(self, value: object, place: YamlPath) -> Iterator[CheckConfig]:
        """Yield checks: names of stored queries, or names with a `message` and a `severity`."""
        if isinstance(value, list):
            names = [self._text(item, (*place, number)) for number, item in enumerate(value)]
            value = {name: None for name in names if name is not None}
        for name, stated in self._named(value, place):
            here: YamlPath = (*place, name)
            facts = self._mapping(stated, here, names=("message", "severity"))
            message, severity = facts.get("message"), facts.get("severity", CheckSeverity.FAIL)
            if severity not in list(CheckSeverity):
                words = " or ".join(CheckSeverity)
                self._invalid((*here, "severity"), f"`severity` must be {words}")
                severity = CheckSeverity.FAIL
            if message is not None:
                message = self._text(message, (*here, "message"))
            yield CheckConfig(name, message, str(severity), here)

    def _reference(
        self, value: object, place: YamlPath, providers: Mapping[str, object]
    ) -> str | None:
        if value is None:
            return None
        text = self._text(value, place)
        if text is None:
            return None
        name = text.removeprefix("provider.embedding.")
        kind, dot, _ = name.partition(".")
        if dot and kind in _KINDS:
            message = f"'{text}' does not refer to an embedding provider"
            self._error("wrong_kind_reference", place, message)
        elif name not in providers:
            message = f"embedding provider '{name}' is not declared under `providers.embedding`"
            self._error("dangling_embedding_provider_reference", place, message)
        return name

    def _external(self, value: object, place: YamlPath) -> tuple[tuple[str, str], ...]:
        if value is None:
            return ()
        allow = self._mapping(value, place, names=("allow",)).get("allow")
        if not isinstance(allow, list) or not allow:
            message = "`allow` must be a list of bases, each with its scope"
            self._error("invalid_external_blob_policy", place, message)
            return ()
        bases = []
        for number, item in enumerate(allow):
            here = (*place, "allow", number)
            stated = self._mapping(item, here, names=("base", "scope"))
            base = self._text(stated.get("base"), (*here, "base"))
            scope = stated.get("scope")
            if scope not in SCOPES:
                message = f"`scope` must be one of {', '.join(SCOPES)}"
                self._error("invalid_external_blob_policy", (*here, "scope"), message)
            if base is not None:
                try:
                    ExternalBlobs.below([base])
                except InvalidInput as error:
                    self._error("invalid_external_blob_base", (*here, "base"), error.message)
                bases.append((base, str(scope)))
        try:
            ExternalBlobs.below(base for base, _ in bases)
        except InvalidInput as error:
            if "overlap" in error.message:
                self._error("invalid_external_blob_policy", place, error.message)
        return tuple(bases)

    # --- policies

    def _policies(self, value: object, graphs: Mapping[str, object]) -> dict[str, PolicyConfig]:
        policies = {}
        taken: dict[str, str] = {}
        for name, stated in self._named(value, ("policies",)):
            place: YamlPath = ("policies", name)
            section = self._mapping(stated, place, names=("file", "applies_to"))
            file = self._text(section.get("file"), (*place, "file"))
            scopes = self._scopes(section.get("applies_to"), (*place, "applies_to"), graphs)
            for scope in scopes:
                if scope in taken:
                    message = f"policy '{taken[scope]}' already applies to {scope}"
                    self._error("duplicate_policy_binding", (*place, "applies_to"), message)
                taken.setdefault(scope, name)
            if file is not None:
                policies[name] = PolicyConfig(name, file, scopes)
        return policies

    def _scopes(
        self, value: object, place: YamlPath, graphs: Mapping[str, object]
    ) -> tuple[str, ...]:
        if not isinstance(value, list) or not value:
            message = "`applies_to` must list `cluster`, or graphs"
            self._error("policy_missing_applies_to", place, message)
            return ()
        scopes = []
        for number, item in enumerate(value):
            scope = self._scope(item, (*place, number), graphs)
            if scope in scopes:
                message = f"{scope} is listed twice"
                self._error("duplicate_policy_binding", (*place, number), message)
            elif scope is not None:
                scopes.append(scope)
        if CLUSTER in scopes and len(scopes) > 1:
            message = "a policy applies to the cluster or to graphs, not to both"
            self._error("policy_mixed_binding_kinds", place, message)
        return tuple(sorted(scopes))

    def _scope(self, value: object, place: YamlPath, graphs: Mapping[str, object]) -> str | None:
        text = self._text(value, place)
        if text is None or text == CLUSTER:
            return text
        kind, dot, _ = text.partition(".")
        if dot and kind != "graph" and kind in _KINDS:
            self._error("wrong_kind_reference", place, f"'{text}' does not refer to a graph")
            return None
        name = text.removeprefix("graph.")
        if name not in graphs:
            self._error(
                "dangling_graph_reference", place, f"graph '{name}' is not declared under `graphs`"
            )
            return None
        return f"graph.{name}"

    # --- pipelines

    def _pipelines(self, value: object, graphs: Mapping[str, object]) -> dict[str, PipelineConfig]:
        pipelines = {}
        for name, stated in self._named(value, ("pipelines",)):
            place: YamlPath = ("pipelines", name)
            section = self._mapping(stated, place, names=("file", "graph"))
            file = self._text(section.get("file"), (*place, "file"))
            graph = self._scope(section.get("graph"), (*place, "graph"), graphs)
            if graph == CLUSTER:
                message = "`graph` must name the graph that the pipeline loads into"
                self._error("wrong_kind_reference", (*place, "graph"), message)
            elif file is not None and graph is not None:
                pipelines[name] = PipelineConfig(name, file, graph)
        return pipelines

    # --- parts of every section

    def _mapping(self, value: object, place: YamlPath, *, names: tuple[str, ...]) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._invalid(place, f"expected a mapping with the keys {', '.join(names)}")
            return {}
        for key in value:
            if key not in names:
                message = f"unknown key `{key}`; known are {', '.join(names)}"
                self._invalid((*place, key), message)
        return {key: stated for key, stated in value.items() if key in names}

    def _named(self, value: object, place: YamlPath) -> Iterator[tuple[str, Any]]:
        if value is None:
            return
        if not isinstance(value, dict):
            self._invalid(place, "expected a mapping of names to settings")
            return
        for name, stated in value.items():
            if _ID.fullmatch(name) is None:
                message = "a name begins with a letter or `_`; letters, digits, `_`, `-` follow"
                self._error("invalid_resource_id", (*place, name), message)
            else:
                yield name, stated

    def _text(self, value: object, place: YamlPath) -> str | None:
        if not isinstance(value, str) or not value.strip():
            self._invalid(place, f"`{place[-1]}` must be text")
            return None
        return value

    def _invalid(self, place: YamlPath, message: str) -> None:
        self._error("invalid_cluster_yaml", place, message)

    def _error(self, code: str, place: YamlPath, message: str) -> None:
        self._record(self._findings.error, code, place, message)

    def _record(
        self, record: Callable[..., None], code: str, place: YamlPath, message: str
    ) -> None:
        path, line = _path_text(place) or CONFIG_FILE, self._document.line(place)
        record(code, path, message, file=CONFIG_FILE, line=line)
