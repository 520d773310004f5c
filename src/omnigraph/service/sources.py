"""This module names graphs to be opened, each with its stored queries and its policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from omnigraph.policy import BundleScope, Policy
from omnigraph.policy.policy import read_text
from omnigraph.service.registry import GraphSource
from omnigraph.service.stored import StoredText, stored_texts

ALL = ""
"""In place of the id of a graph: every graph that has nothing of its own."""


def graph_sources(
    graphs: Mapping[str, str],
    *,
    queries: Mapping[str, str],
    policies: Mapping[str, str],
    external_blobs: Sequence[str] = (),
) -> list[GraphSource]:
    """Return graphs by id and address; `queries` and `policies` are folders and files by id."""
    return [
        GraphSource(
            id=graph_id,
            uri=uri,
            queries=_queries(queries.get(graph_id, queries.get(ALL))),
            policy=_policy(policies.get(graph_id, policies.get(ALL)), graph_id),
            external_blobs=external_blobs,
        )
        for graph_id, uri in graphs.items()
    ]


def server_policy(file: str | None) -> Policy | None:
    """Return the policy of the server itself, if there is one."""
    if file is None:
        return None
    return Policy.parse(read_text(Path(file)), BundleScope.SERVER)


def _queries(folder: str | None) -> Callable[[], Sequence[StoredText]]:
    return tuple if folder is None else partial(stored_texts, Path(folder))


def _policy(file: str | None, graph_id: str) -> Callable[[], Policy] | None:
    return None if file is None else partial(_graph_policy, Path(file), graph_id)


def _graph_policy(file: Path, graph_id: str) -> Policy:
    return Policy.parse(read_text(file), BundleScope.GRAPH, graph=graph_id)
