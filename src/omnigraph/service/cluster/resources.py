"""Read every file a configuration names, as resources with digests.

What is read here is what is applied later: no file is read twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnigraph.catalog import Catalog, read_catalog
from omnigraph.lang import (
    Code,
    Diagnostic,
    DiagnosticReport,
    QueryError,
    did_you_mean,
    read_named_queries,
    read_schema,
    report_for_bytes,
)
from omnigraph.plan import compile_query
from omnigraph.plan.query_plan import QueryPlan
from omnigraph.policy import BundleScope, Policy, PolicyInvalid
from omnigraph.service.cluster.config import (
    CLUSTER,
    CONFIG_FILE,
    CheckConfig,
    ClusterConfig,
    GraphConfig,
    PipelineConfig,
    PolicyConfig,
    QueryFiles,
    read_config,
)
from omnigraph.service.cluster.diagnostics import ClusterDiagnostics
from omnigraph.service.cluster.ledger import (
    ClusterState,
    LedgerEntry,
    config_digest,
    content_digest,
    provider_digest,
)
from omnigraph.service.cluster.pipelines import check_pipeline_file
from omnigraph.service.cluster.yaml_document import YamlPath
from omnigraph.service.stored_queries import why_not_a_check

# ----------------------------------------------------------------------
# Scopes of policy files


def bundle_scope(applies_to: Sequence[str]) -> BundleScope:
    """Return what kind of actions a policy with these scopes may speak about."""
    return BundleScope.SERVER if CLUSTER in applies_to else BundleScope.GRAPH


def policy_problems(content: bytes, applies_to: Sequence[str]) -> list[tuple[str, int]]:
    """Return every problem of a policy file, each with its line."""
    try:
        Policy.parse(content.decode("utf-8"), bundle_scope(applies_to))
    except UnicodeDecodeError:
        return [("the file is not UTF-8 text", 1)]
    except PolicyInvalid as error:
        return [(problem.message, problem.line) for problem in error.problems]
    return []


@dataclass(frozen=True, slots=True)
class ClusterResource:
    """One declared resource: its ledger entry, and the file it is from."""

    address: str
    kind: str
    entry: LedgerEntry
    path: str | None = None
    content: bytes = b""

    def to_json(self) -> dict[str, Any]:
        """Return the wire form."""
        facts = {"address": self.address, "kind": self.kind, "digest": self.entry.digest}
        return facts if self.path is None else {**facts, "path": self.path}


@dataclass(frozen=True, slots=True)
class DesiredState:
    """All resources that a configuration declares."""

    config: ClusterConfig
    resources: Mapping[str, ClusterResource] = field(default_factory=dict)

    @property
    def entries(self) -> dict[str, LedgerEntry]:
        """The ledger entries once all resources are applied."""
        return {address: resource.entry for address, resource in sorted(self.resources.items())}

    @property
    def digests(self) -> dict[str, str]:
        """The digest of each resource."""
        return {address: entry.digest for address, entry in self.entries.items()}

    @property
    def digest(self) -> str:
        """The digest of the configuration and all it names."""
        return config_digest(self.config.document.value, self.digests.items())

    @property
    def schemas(self) -> dict[str, tuple[str, str]]:
        """The schema text of each graph, with its digest."""
        entries = self.entries
        return {
            id_: (self.schema(id_), entries[f"schema.{id_}"].digest) for id_ in self.config.graphs
        }

    def schema(self, graph: str) -> str:
        """Return the schema text of a graph."""
        return self.resources[f"schema.{graph}"].content.decode("utf-8").removeprefix("\ufeff")

    def dependencies(self) -> list[tuple[str, str]]:
        """Return the dependencies between resources."""
        return sorted(_dependencies(self.entries))

    def to_json(self) -> dict[str, Any]:
        """Return the digests of the resources and their dependencies, in the wire form."""
        pairs = [{"from": one, "to": other} for one, other in self.dependencies()]
        return {"resource_digests": self.digests, "dependencies": pairs}


def _dependencies(entries: Mapping[str, LedgerEntry]) -> Iterator[tuple[str, str]]:
    for address, entry in entries.items():
        kind, _, name = address.partition(".")
        if kind == "schema":
            yield address, f"graph.{name}"
        elif kind == "query":
            graph = name.partition(".")[0]
            yield address, f"graph.{graph}"
            yield address, f"schema.{graph}"
        elif kind == "pipeline":
            for scope in entry.applies_to or ():
                yield address, scope
                yield address, f"schema.{scope.partition('.')[2]}"
        elif kind == "policy":
            for scope in entry.applies_to or ():
                if scope != CLUSTER:
                    yield address, scope
        elif kind == "graph" and entry.embedding_provider is not None:
            yield address, entry.embedding_provider


def dependents(address: str, dependencies: list[tuple[str, str]]) -> list[str]:
    """Return everything that depends on a resource, also by way of others."""
    addresses: set[str] = set()
    waiting = [address]
    while waiting:
        reached = waiting.pop()
        new = {one for one, other in dependencies if other == reached} - addresses - {address}
        addresses |= new
        waiting += new
    return sorted(addresses)


def read_desired_state(folder: Path, findings: ClusterDiagnostics) -> DesiredState | None:
    """Read a configuration and its files; return None when it cannot be used."""
    config = read_config(folder, findings)
    if config is None:
        return None
    resources = _ResourceLoader(config, findings).load()
    return DesiredState(config, resources) if findings.ok else None


class _ResourceLoader:
    """One reading of all files of a configuration."""

    def __init__(self, config: ClusterConfig, findings: ClusterDiagnostics) -> None:
        self._config = config
        self._findings = findings
        self._found: dict[str, ClusterResource] = {}
        self._catalogs: dict[str, Catalog | None] = {}
        self._plans: dict[str, QueryPlan] = {}

    def load(self) -> dict[str, ClusterResource]:
        for name, profile in self._config.providers.items():
            entry = LedgerEntry(provider_digest(profile), embedding_profile=dict(profile))
            self._add(ClusterResource(f"provider.embedding.{name}", "embedding_provider", entry))
        for graph in self._config.graphs.values():
            self._graph(graph)
        for policy in self._config.policies.values():
            self._policy(policy)
        for pipeline in self._config.pipelines.values():
            self._pipeline(pipeline)
        resources = {address: one.entry for address, one in self._found.items()}
        folded = ClusterState(resources=resources).folded().resources
        return {
            address: ClusterResource(address, one.kind, folded[address], one.path, one.content)
            for address, one in sorted(self._found.items())
        }

    def _add(self, resource: ClusterResource) -> None:
        self._found[resource.address] = resource

    # --- graphs

    def _graph(self, graph: GraphConfig) -> None:
        blobs = None
        if graph.external_blobs:
            bases = [{"uri": base, "scope": scope} for base, scope in graph.external_blobs]
            blobs = {"mode": "allow", "bases": bases}
        provider = graph.embedding_provider
        address = None if provider is None else f"provider.embedding.{provider}"
        retention = None if graph.retention is None else graph.retention.to_json()
        checks = {check.name: check.to_json() for check in graph.checks}
        entry = LedgerEntry(
            "",
            embedding_provider=address,
            external_blob_policy=blobs,
            retention=retention,
            checks=checks or None,
        )
        self._add(ClusterResource(f"graph.{graph.id}", "graph", entry))
        catalog = self._schema(graph)
        self._catalogs[f"graph.{graph.id}"] = catalog
        for files in graph.queries:
            for path in self._query_paths(graph, files):
                self._query_file(graph, files, path, catalog)
        for check in graph.checks:
            self._check(graph, check)

    def _check(self, graph: GraphConfig, check: CheckConfig) -> None:
        """Report a check that is not a stored query, or one that cannot be a check."""
        address = f"query.{graph.id}.{check.name}"
        if address not in self._found:
            names = [
                a.rpartition(".")[2] for a in self._found if a.startswith(f"query.{graph.id}.")
            ]
            hint = did_you_mean(check.name, names)
            message = f"there is no stored query '{check.name}'" + (f": {hint}" if hint else "")
            self._config_error("dangling_check_reference", address, message, check.place)
            return
        plan = self._plans.get(address)
        problem = None if plan is None else why_not_a_check(plan)
        if problem is not None:
            self._config_error("check_invalid", address, problem, check.place)

    def _schema(self, graph: GraphConfig) -> Catalog | None:
        address = f"schema.{graph.id}"
        place = ("graphs", graph.id, "schema")
        content = self._load(address, graph.schema, "schema_file_missing", place)
        if content is None:
            return None
        report = report_for_bytes(content, graph.schema, Code.SCHEMA_UNREADABLE)
        if not report.errors:
            read_schema(report)
        if report.errors:
            self._report(report, "schema_parse_error", address)
            return None
        report = report_for_bytes(content, graph.schema, Code.SCHEMA_UNREADABLE)
        catalog = read_catalog(report)
        if report.errors:
            self._report(report, "schema_catalog_error", address)
            return None
        return catalog

    def _query_paths(self, graph: GraphConfig, files: QueryFiles) -> list[str]:
        """Return the files of a declaration of queries, relative to the configuration."""
        folder = self._config.folder / files.path
        if files.name is not None or not folder.is_dir():
            return [files.path]
        path = f"graphs.{graph.id}.queries"
        try:
            names = sorted(path_.name for path_ in folder.iterdir() if path_.suffix == ".gq")
        except OSError as error:
            message = f"cannot list {files.path}: {error.strerror}"
            self._config_error("query_dir_unreadable", path, message, files.place)
            return []
        if not names:
            message, line = f"{files.path} has no .gq file", self._config.document.line(files.place)
            self._findings.warn("query_dir_empty", path, message, file=CONFIG_FILE, line=line)
        return [str(Path(files.path) / name) for name in names]

    def _query_file(
        self, graph: GraphConfig, files: QueryFiles, path: str, catalog: Catalog | None
    ) -> None:
        name = files.name
        address = f"graphs.{graph.id}.queries" if name is None else f"query.{graph.id}.{name}"
        content = self._read(path, address, "query_file_missing", files.place)
        if content is None:
            return
        report = report_for_bytes(content, path, Code.QUERY_UNREADABLE)
        tree = None if report.errors else read_named_queries(report)
        if tree is None or report.errors:
            self._report(report, "query_parse_error", address)
            return
        names = [query.name.text for query in tree.queries]
        if files.name is not None and files.name not in names:
            message = f"{path} declares no query '{files.name}'"
            self._config_error("query_key_mismatch", address, message, files.place)
            return
        text = report.source.text
        for name in names if files.name is None else [files.name]:
            self._query(graph, (name, path), content, (text, catalog))

    def _query(
        self,
        graph: GraphConfig,
        declared: tuple[str, str],
        content: bytes,
        typed: tuple[str, Catalog | None],
    ) -> None:
        (name, path), (text, catalog) = declared, typed
        address = f"query.{graph.id}.{name}"
        if address in self._found:
            message = f"query '{name}' is also declared in {self._found[address].path}"
            self._findings.error("duplicate_query_name", address, message, file=path)
            return
        self._add(
            ClusterResource(address, "query", LedgerEntry(content_digest(content)), path, content)
        )
        if catalog is None:
            message = "not checked, because the schema of its graph has errors"
            self._findings.warn("query_typecheck_skipped", address, message, file=path)
            return
        try:
            plan = compile_query(catalog, text, name, source_name=path)
            self._plans[address] = plan
            problem = None if plan.check is None else why_not_a_check(plan)
            if problem is not None:
                self._findings.error("check_invalid", address, problem, file=path)
        except QueryError as error:
            for diagnostic in error.diagnostics:
                code, line = "query_typecheck_error", _line(diagnostic)
                self._findings.error(code, address, diagnostic.message, file=path, line=line)

    # --- policies

    def _policy(self, policy: PolicyConfig) -> None:
        address, place = f"policy.{policy.name}", ("policies", policy.name, "file")
        scopes = policy.applies_to
        content = self._load(address, policy.file, "policy_file_missing", place, scopes)
        if content is None:
            return
        for message, line in policy_problems(content, policy.applies_to):
            self._findings.error("policy_invalid", address, message, file=policy.file, line=line)

    # --- pipelines

    def _pipeline(self, pipeline: PipelineConfig) -> None:
        address, place = f"pipeline.{pipeline.name}", ("pipelines", pipeline.name, "file")
        scopes = (pipeline.graph,)
        content = self._load(address, pipeline.file, "pipeline_file_missing", place, scopes)
        if content is None:
            return
        catalog = self._catalogs.get(pipeline.graph)
        report = report_for_bytes(content, pipeline.file, Code.PIPELINE_UNREADABLE)
        check_pipeline_file(report, (self._config.folder / pipeline.file).parent, catalog)
        self._report(report, "pipeline_invalid", address)

    # --- files

    def _load(
        self,
        address: str,
        path: str,
        code: str,
        place: YamlPath,
        scopes: tuple[str, ...] | None = None,
    ) -> bytes | None:
        """Read the file of a resource, and add the resource."""
        content = self._read(path, address, code, place)
        if content is not None:
            entry = LedgerEntry(content_digest(content), applies_to=scopes)
            kind = address.partition(".")[0]
            self._add(ClusterResource(address, kind, entry, path, content))
        return content

    def _read(self, path: str, address: str, code: str, place: YamlPath) -> bytes | None:
        try:
            return (self._config.folder / path).read_bytes()
        except OSError as error:
            self._config_error(code, address, f"cannot read {path}: {error.strerror}", place)
            return None

    def _config_error(self, code: str, address: str, message: str, place: YamlPath) -> None:
        line = self._config.document.line(place)
        self._findings.error(code, address, message, file=CONFIG_FILE, line=line)

    def _report(self, report: DiagnosticReport, code: str, address: str) -> None:
        for diagnostic in report.sorted():
            if diagnostic.severity == "error":
                file, line = report.source.name, _line(diagnostic)
                self._findings.error(code, address, diagnostic.message, file=file, line=line)


def _line(diagnostic: Diagnostic) -> int | None:
    if diagnostic.source is None or diagnostic.span is None:
        return None
    return diagnostic.source.position(diagnostic.span.start).line
