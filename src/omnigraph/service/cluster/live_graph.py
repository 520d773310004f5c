"""Read the graphs of a cluster as they are in storage, without changing them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from omnigraph.errors import NotFound, OmniError
from omnigraph.graph import Graph
from omnigraph.graph import open as open_graph
from omnigraph.service.cluster.ledger import content_digest
from omnigraph.service.cluster.store import ClusterStore


@dataclass(frozen=True, slots=True)
class LiveGraph:
    """The content of the address of a graph: nothing, a graph, or one that does not open."""

    uri: str
    graph: Graph | None = None
    manifest_version: int | None = None
    schema: str | None = None
    error: str | None = None

    @property
    def exists(self) -> bool:
        """Return whether there is a graph, even a damaged one."""
        return self.graph is not None or self.error is not None

    def digest(self, text: str | None = None, digest: str | None = None) -> str | None:
        """Return the digest of the accepted schema.

        Where it means the same as the given text, that is the digest of the text: comments and
        layout are no part of what a graph accepts.
        """
        if self.schema is None:
            return None
        if text is not None and (self.schema == text or self._means(text)):
            return digest
        return content_digest(self.schema.encode())

    def _means(self, text: str) -> bool:
        assert self.graph is not None, "only a graph that opens has a schema"
        try:
            plan = self.graph.schema.plan(text)
        except OmniError:
            return False
        return plan.supported and not plan.steps

    def observation(self, address: str, declared: tuple[str, str] | None) -> dict[str, Any]:
        """Return the observation for the ledger; `declared` is a schema and its digest."""
        text, digest = declared or (None, None)
        digest_ = self.digest(text, digest)
        matches = None if digest_ is None or digest is None else digest_ == digest
        return {
            "kind": "graph",
            "address": address,
            "graph_uri": self.uri,
            "observed_at": utc_now_text(),
            "exists": self.exists,
            "graph_manifest_version": self.manifest_version,
            "schema_digest": digest_,
            "desired_schema_digest": digest,
            "schema_matches_desired": matches,
            "error": self.error,
        }


def inspect_graph(store: ClusterStore, id_: str) -> LiveGraph:
    """Inspect a graph of a cluster; nothing is written."""
    uri = store.graph_uri(id_)
    try:
        graph = open_graph(uri, mode="ro", storage_options=dict(store.root.options))
        snapshot = graph.snapshot()
    except NotFound as error:
        if error.code == "graph_not_found":
            return LiveGraph(uri)
        return LiveGraph(uri, error=error.message)
    except OmniError as error:
        return LiveGraph(uri, error=error.message)
    return LiveGraph(uri, graph, snapshot.manifest_version, snapshot.schema_source)


def utc_now_text() -> str:
    """Return the current time, in the format of records."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
