"""The ledger of a cluster: what was applied, as a value and as strict JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from omnigraph.service.cluster.diagnostics import ClusterOperationRefused

# ----------------------------------------------------------------------
# Digests of resources: SHA-256 over their contents


def content_digest(data: bytes) -> str:
    """Return the digest of a file."""
    return hashlib.sha256(data).hexdigest()


def provider_digest(profile: Mapping[str, str]) -> str:
    """Return the digest of an embedding profile."""
    return content_digest(b"embedding-provider\0" + _canonical_json(profile))


def graph_digest(
    id_: str,
    schema: str,
    queries: Mapping[str, str],
    provider: tuple[str, str] | None,
    external_blobs: Mapping[str, Any] | None,
    settings: Mapping[str, Mapping[str, Any] | None],
) -> str:
    """Return the digest of a graph: over those of its schema, queries by name, and the rest.

    `provider` is the address and the digest of what embeds for the graph; `settings` are others,
    by name.
    """
    parts = [b"graph", id_.encode(), b"schema", schema.encode()]
    for name, digest in sorted(queries.items()):
        parts += [b"query", name.encode(), digest.encode()]
    if provider is not None:
        parts += [b"embedding_provider", provider[0].encode(), provider[1].encode()]
    if external_blobs is not None:
        parts += [b"external_blob_policy", _canonical_json(external_blobs)]
    for name, value in settings.items():
        if value is not None:
            parts += [name.encode(), _canonical_json(value)]
    return content_digest(b"".join(part + b"\0" for part in parts))


def config_digest(config: Mapping[str, Any], resources: Iterable[tuple[str, str]]) -> str:
    """Return the digest of a whole configuration and of all it names."""
    text = json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    listed = b"".join(f"{address}\0{digest}\0".encode() for address, digest in sorted(resources))
    return content_digest(b"cluster-config\0" + text.encode() + b"\0" + listed)


def _canonical_json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


LEDGER_VERSION = 1


class LedgerEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One applied resource: its digest, and the fields of its kind."""

    digest: str
    applies_to: tuple[str, ...] | None = None
    embedding_provider: str | None = None
    embedding_profile: dict[str, str] | None = None
    external_blob_policy: dict[str, Any] | None = None
    retention: dict[str, Any] | None = None
    checks: dict[str, dict[str, str]] | None = None


class ResourceStatus(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The status: pending, planned, applying, applied, drifted, blocked or error."""

    status: str
    conditions: tuple[str, ...] = ()
    message: str | None = None


class AppliedResources(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The resources that were applied, and the last configuration that was applied as a whole."""

    config_digest: str | None = None
    resources: dict[str, LedgerEntry] = {}


class _LedgerDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    state_revision: int = 0
    applied_revision: AppliedResources = AppliedResources()
    resource_statuses: dict[str, ResourceStatus] = {}
    approval_records: dict[str, dict[str, Any]] = {}
    recovery_records: dict[str, dict[str, Any]] = {}
    observations: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """Everything a ledger holds."""

    revision: int = 0
    config_digest: str | None = None
    resources: Mapping[str, LedgerEntry] = field(default_factory=dict)
    statuses: Mapping[str, ResourceStatus] = field(default_factory=dict)
    approvals: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    recoveries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    observations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def graph_ids(self) -> list[str]:
        """The graphs that were applied."""
        return sorted(resource_names(self.resources, "graph"))

    def queries(self, graph: str) -> dict[str, str]:
        """Return the stored queries of a graph by name, with their digests."""
        kind = f"query.{graph}"
        names = resource_names(self.resources, kind)
        return {name: self.resources[f"{kind}.{name}"].digest for name in names}

    def addresses_of(self, graph: str) -> list[str]:
        """Return the addresses of a graph, its schema and its queries."""
        own = (f"graph.{graph}", f"schema.{graph}")
        return [a for a in self.resources if a in own or a.startswith(f"query.{graph}.")]

    def graph_digest(self, graph: str) -> str | None:
        """Return the digest of a graph by the ledger entries of its parts."""
        entry = self.resources.get(f"graph.{graph}")
        schema = self.resources.get(f"schema.{graph}")
        if entry is None or schema is None:
            return None
        provider = None
        if entry.embedding_provider is not None:
            profile = self.resources.get(entry.embedding_provider)
            provider = (entry.embedding_provider, profile.digest if profile else "")
        blobs = entry.external_blob_policy
        settings = {"retention": entry.retention, "checks": entry.checks}
        queries = self.queries(graph)
        return graph_digest(graph, schema.digest, queries, provider, blobs, settings)

    def folded(self) -> ClusterState:
        """Return the state with the digest of every graph made of those of its parts."""
        resources = dict(self.resources)
        for graph in self.graph_ids:
            digest = self.graph_digest(graph)
            if digest is not None:
                address = f"graph.{graph}"
                resources[address] = msgspec.structs.replace(resources[address], digest=digest)
        return replace(self, resources=resources)


def resource_names(addresses: Iterable[str], kind: str) -> list[str]:
    """Return the names of the resources of one kind among addresses."""
    prefix = f"{kind}."
    return [address.removeprefix(prefix) for address in addresses if address.startswith(prefix)]


def read_state(text: bytes, path: str) -> ClusterState:
    """Read a ledger; raise if this version cannot read all of it."""
    try:
        version = json.loads(text)["version"]
    except (ValueError, KeyError, TypeError) as error:
        message = "the ledger is not a JSON object with a version; restore it from a backup"
        raise ClusterOperationRefused("invalid_state_json", path, message) from error
    if version != LEDGER_VERSION:
        message = (
            f"the ledger has version {version}, this program reads {LEDGER_VERSION}: upgrade it"
        )
        raise ClusterOperationRefused("unsupported_state_version", path, message)
    try:
        wire = msgspec.json.decode(text, type=_LedgerDocument)
    except msgspec.ValidationError as error:
        message = f"the ledger cannot be read: {error}"
        raise ClusterOperationRefused("invalid_state_json", path, message) from error
    return ClusterState(
        revision=wire.state_revision,
        config_digest=wire.applied_revision.config_digest,
        resources=wire.applied_revision.resources,
        statuses=wire.resource_statuses,
        approvals=wire.approval_records,
        recoveries=wire.recovery_records,
        observations=wire.observations,
    )


def write_state(state: ClusterState) -> bytes:
    """Return the text of a ledger."""
    facts = {
        "version": LEDGER_VERSION,
        "state_revision": state.revision,
        "applied_revision": {
            "config_digest": state.config_digest,
            "resources": to_wire_map(state.resources),
        },
        "resource_statuses": to_wire_map(state.statuses),
        "approval_records": to_wire_map(state.approvals),
        "recovery_records": to_wire_map(state.recoveries),
        "observations": to_wire_map(state.observations),
    }
    return (json.dumps(facts, indent=2, ensure_ascii=False) + "\n").encode()


def state_token(text: bytes) -> str:
    """Return the token of one text of a ledger, for a compare-and-swap."""
    return f"sha256:{content_digest(text)}"


def to_wire_map(values: Mapping[str, object]) -> dict[str, Any]:
    """Return entries, statuses or records by address, as plain JSON."""
    sorted_values = {address: values[address] for address in sorted(values)}
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(sorted_values))
    return plain
