"""Read what a server serves: the applied revision of a cluster, checked as a whole.

An error of a shared part (the ledger, a content, a policy) refuses the whole cluster. An error of
one graph quarantines that graph, with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnigraph.errors import Category, OmniError
from omnigraph.maintain.retention import Retention
from omnigraph.policy import Policy
from omnigraph.service.cluster.config import CLUSTER, read_config
from omnigraph.service.cluster.diagnostics import (
    ClusterDiagnostic,
    ClusterDiagnostics,
    ClusterOperationRefused,
)
from omnigraph.service.cluster.ledger import (
    ClusterState,
    LedgerEntry,
    provider_digest,
    resource_names,
)
from omnigraph.service.cluster.recovery import read_intents
from omnigraph.service.cluster.store import ClusterStore
from omnigraph.storage import locate


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedGraph:
    """One graph: where it is, its stored queries as file text by name, and what it may use."""

    id: str
    uri: str
    queries: Mapping[str, str] = field(default_factory=dict)
    checks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Stored queries that are checks, each with its severity and perhaps its message."""
    embedding: Mapping[str, str] | None = None
    external_blobs: tuple[str, ...] = ()
    retention: Retention | None = None
    quarantine: str | None = None
    """Why the graph is not to be served; None when it is."""


@dataclass(frozen=True, slots=True)
class ServedPolicy:
    """A policy file and what it decides about: the cluster, or graphs by id."""

    name: str
    text: str
    cluster: bool
    graphs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedRevision:
    """The applied revision of a cluster."""

    root: str
    options: Mapping[str, str]
    """The storage options of every graph."""
    revision: int
    graphs: tuple[ServedGraph, ...]
    policies: tuple[ServedPolicy, ...] = ()

    @property
    def healthy(self) -> tuple[ServedGraph, ...]:
        """The graphs that are not quarantined."""
        return tuple(graph for graph in self.graphs if graph.quarantine is None)

    def policy_of(self, graph: str | None) -> ServedPolicy | None:
        """Return the policy of a graph, or of the cluster for None."""
        for policy in self.policies:
            if policy.cluster if graph is None else graph in policy.graphs:
                return policy
        return None


class ServingRefused(OmniError):
    """A cluster cannot be served; `findings` lists every reason."""

    def __init__(self, findings: Iterable[ClusterDiagnostic]) -> None:
        self.findings = tuple(findings)
        super().__init__(
            "\n".join(f"[{one.code}] {one.path}: {one.message}" for one in self.findings),
            code="cluster_not_servable",
            category=Category.UNAVAILABLE,
            details={"diagnostics": [finding.to_json() for finding in self.findings]},
        )


def open_store(source: str | os.PathLike[str], options: Mapping[str, str] | None) -> ClusterStore:
    """Return the storage of a cluster: an address with `://`, else that of the configuration."""
    text = os.fspath(source)
    if "://" in text:
        return ClusterStore(locate(text, options))
    findings = ClusterDiagnostics()
    config = read_config(Path(text), findings)
    if config is None or not findings.ok:
        raise ServingRefused(findings)
    return ClusterStore(locate(config.root, options))


def graph_policy(store: ClusterStore, state: ClusterState, graph: str) -> Policy | None:
    """Return the applied policy of a graph; None when no policy is bound to it.

    Raises:
        ServingRefused: the ledger names a policy whose content is missing or was changed.
    """
    findings = ClusterDiagnostics()
    policies = [p for p in _RevisionReader(store, state, findings).policies() if graph in p.graphs]
    if not findings.ok:
        raise ServingRefused(findings)
    return Policy.parse(policies[0].text, graph=graph) if policies else None


def read_applied_revision(
    source: str | os.PathLike[str], options: Mapping[str, str] | None = None
) -> AppliedRevision:
    """Return what a server serves of a cluster.

    Raises:
        ServingRefused: the cluster as a whole cannot be served.
    """
    store = open_store(source, options)
    findings = ClusterDiagnostics()
    try:
        ledger = store.read()
        unfinished = {intent.graph_id: intent.kind for intent in read_intents(store)}
    except ClusterOperationRefused as error:
        raise ServingRefused(
            [ClusterDiagnostic(error.code, "error", error.path, error.message)]
        ) from error
    if ledger.text is None:
        message = "the cluster has no ledger: run `omnigraph cluster import` and `cluster apply`"
        findings.error("cluster_state_missing", store.state_path, message)
        raise ServingRefused(findings)
    reader = _RevisionReader(store, ledger.state, findings)
    graphs = tuple(reader.graph(id_, unfinished.get(id_)) for id_ in ledger.state.graph_ids)
    serving = AppliedRevision(
        root=store.root.uri,
        options=store.root.options,
        revision=ledger.state.revision,
        graphs=graphs,
        policies=tuple(reader.policies()),
    )
    if not graphs:
        findings.error("cluster_empty", store.state_path, "no graph was applied yet")
    elif not serving.healthy:
        reasons = "; ".join(f"{graph.id}: {graph.quarantine}" for graph in graphs)
        findings.error("cluster_no_healthy_graphs", store.state_path, reasons)
    if not findings.ok:
        raise ServingRefused(findings)
    return serving


class _RevisionReader:
    """Reads and checks what a ledger names."""

    def __init__(
        self, store: ClusterStore, state: ClusterState, findings: ClusterDiagnostics
    ) -> None:
        self._store = store
        self._state = state
        self._findings = findings

    def graph(self, id_: str, unfinished: str | None) -> ServedGraph:
        address = f"graph.{id_}"
        entry = self._state.resources[address]
        embedding = self._embedding(address, entry)
        if self._state.graph_digest(id_) != entry.digest:
            message = "the ledger entry of the graph does not match its digest"
            self._findings.error("external_blob_policy_digest_mismatch", address, message)
        sources = {}
        for name, digest in self._state.queries(id_).items():
            address_ = f"query.{id_}.{name}"
            with self._findings.catching(address_):
                sources[name] = self._store.payload(address_, digest).decode("utf-8", "replace")
        reason = None
        if unfinished is not None:
            reason = f"cluster_recovery_pending: {unfinished} was interrupted; apply settles it"
        return ServedGraph(
            id=id_,
            uri=self._store.graph_uri(id_),
            queries=sources,
            checks=entry.checks or {},
            embedding=embedding,
            external_blobs=_server_base_paths(entry.external_blob_policy),
            retention=None if entry.retention is None else Retention.parse(entry.retention),
            quarantine=reason,
        )

    def policies(self) -> list[ServedPolicy]:
        policies = []
        taken: dict[str, str] = {}
        for name in sorted(resource_names(self._state.resources, "policy")):
            address = f"policy.{name}"
            entry = self._state.resources[address]
            if not entry.applies_to:
                message = "the ledger does not list the scopes of the policy"
                self._findings.error("policy_bindings_missing", address, message)
                continue
            for scope in entry.applies_to:
                if scope in taken:
                    message = f"policy '{taken[scope]}' already applies to {scope}"
                    self._findings.error("duplicate_policy_binding", address, message)
                taken[scope] = name
            graphs = tuple(resource_names(entry.applies_to, "graph"))
            with self._findings.catching(address):
                text = self._store.payload(address, entry.digest).decode("utf-8", "replace")
                policies.append(ServedPolicy(name, text, CLUSTER in entry.applies_to, graphs))
        return policies

    def _embedding(self, address: str, entry: LedgerEntry) -> Mapping[str, str] | None:
        provider = entry.embedding_provider
        if provider is None:
            return None
        stated = self._state.resources.get(provider)
        if stated is None:
            message = f"the ledger has no entry for {provider}"
            self._findings.error("embedding_provider_missing", address, message)
            return None
        if stated.embedding_profile is None:
            message = "the ledger has no profile of the provider"
            self._findings.error("embedding_provider_profile_missing", provider, message)
            return None
        if provider_digest(stated.embedding_profile) != stated.digest:
            message = "the profile of the provider does not match its digest"
            self._findings.error("embedding_provider_digest_mismatch", provider, message)
        return stated.embedding_profile


def _server_base_paths(policy: Mapping[str, Any] | None) -> tuple[str, ...]:
    bases = [] if policy is None else policy["bases"]
    return tuple(base["uri"] for base in bases if base["scope"] == "server_safe")
