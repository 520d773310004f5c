"""This module lists which route goes on from the answer of another, for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

GRAPH = "graph_id"
_GRAPH_OF_REQUEST = f"$request.path.{GRAPH}"


@dataclass(frozen=True, slots=True)
class Link:
    """One way on: what `operation` takes of the answer, as expressions of OpenAPI.

    `taken` are parameters, `body` members of the body. The graph stays the same unless it is said.
    """

    operation: str
    taken: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, str] = field(default_factory=dict)

    def described(self) -> dict[str, Any]:
        """Return the link as OpenAPI writes it."""
        parameters = {GRAPH: _GRAPH_OF_REQUEST, **self.taken}
        found: dict[str, Any] = {"operationId": self.operation, "parameters": parameters}
        return {**found, "requestBody": dict(self.body)} if self.body else found


def _of_body(path: str) -> str:
    return f"$response.body#/{path}"


def _of_branch(path: str) -> tuple[Link, ...]:
    """Return what one does with a branch."""
    branch = {"branch": _of_body(path)}
    read = ("cluster_getSnapshot", "cluster_listCommits", "cluster_pollChanges", "getBranch")
    written = ("cluster_query", "cluster_mutate", "cluster_load", "createTag")
    return (
        *(Link(operation, branch) for operation in read),
        *(Link(operation, body=branch) for operation in written),
        Link("cluster_mergeBranches", body={"source": _of_body(path)}),
        Link("cluster_deleteBranch", branch),
    )


def _of_commit(path: str) -> tuple[Link, ...]:
    """Return what one does with a commit."""
    commit, snapshot = {"commit_id": _of_body(path)}, {"snapshot": _of_body(path)}
    return (
        Link("cluster_getCommit", commit),
        Link("cluster_getCommitChanges", commit),
        Link("cluster_query", body=snapshot),
        Link("createTag", body=snapshot),
        Link("cluster_createBranch", body=snapshot),
        Link("revert", body=commit),
        Link("cherryPick", body=commit),
    )


def _of_tag(path: str) -> tuple[Link, ...]:
    """Return what one does with a tag."""
    tag = _of_body(path)
    return (Link("cluster_query", body={"snapshot": tag}), Link("deleteTag", {"tag": tag}))


_MADE = _of_commit("commit/graph_commit_id")
_SCHEMA = {"schema_source": _of_body("schema_source")}

LINKS: Mapping[str, tuple[Link, ...]] = {
    "listGraphs": (Link("cluster_getSnapshot", {GRAPH: _of_body("graphs/0/graph_id")}),),
    "cluster_query": (
        Link(
            "cluster_mutate_if_graph_commit",
            {"Omnigraph-If-Graph-Commit": _of_body("graph_commit_id")},
        ),
        Link(
            "cluster_invoke_query_if_graph_commit",
            {"Omnigraph-If-Graph-Commit": _of_body("graph_commit_id")},
        ),
    ),
    "cluster_mutate": _MADE,
    "cluster_mutate_if_graph_commit": _MADE,
    "cluster_load": _MADE,
    "cluster_loadNdjson": _MADE,
    "cluster_list_queries": tuple(
        Link("cluster_invoke_query", {"name": _of_body(f"queries/{number}/name")})
        for number in range(2)
    ),
    "cluster_invoke_query": _MADE,
    "cluster_invoke_query_if_graph_commit": _MADE,
    "cluster_getSchema": (
        Link("planSchema", body=_SCHEMA),
        Link("cluster_applySchema", body=_SCHEMA),
    ),
    "cluster_createBranch": _of_branch("name"),
    "cluster_listBranches": _of_branch("branches/0"),
    "cluster_deleteBranch": (Link("getBranch", {"branch": _of_body("name")}),),
    "cluster_listCommits": _of_commit("commits/0/graph_commit_id"),
    "cluster_getCommitChanges": (
        Link(
            "cluster_getCommitChanges",
            {"commit_id": "$request.path.commit_id", "page_token": _of_body("next_page_token")},
        ),
    ),
    "cluster_pollChanges": (Link("cluster_pollChanges", {"cursor": _of_body("cursor")}),),
    "createTag": _of_tag("name"),
    "listTags": _of_tag("tags/0/name"),
    "getMergeBase": (Link("cluster_getCommit", {"commit_id": _of_body("commit_ids/0")}),),
}
"""The ways on from an answer with status 200, by the operation that gave it."""
